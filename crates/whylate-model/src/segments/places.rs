//! Where the columns of a segment are: found by their names and read by their types, whoever wrote the file.
//!
//! Users filter segments with their own tools, which put other annotations on the same types, write other
//! columns beside them or in another order, let values be absent where none is, and by the first version of
//! the format keep unsigned numbers of 32 bits in 64.

use parquet::basic::{LogicalType, Repetition, Type};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

/// A column of a segment as it is in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    /// Its number among the columns of the file.
    pub(super) index: usize,
    /// The level of a value that is there.
    pub(super) present: i16,
    /// The level of a list that is there and empty.
    pub(super) empty: i16,
    /// Numbers of 32 bits are kept in 64.
    pub(super) wide: Option<Sign>,
}

/// What numbers of 32 bits there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Signed,
    Unsigned,
}

/// Finds each wanted column; the error says which is none, what there is and what is needed.
pub(super) fn places(
    wanted: &SchemaDescriptor,
    found: &SchemaDescriptor,
) -> Result<Vec<Place>, String> {
    wanted.columns().iter().map(|column| place(column, found)).collect()
}

fn place(wanted: &ColumnDescriptor, found: &SchemaDescriptor) -> Result<Place, String> {
    let name = root(wanted);
    let mut leaves = found.columns().iter().enumerate().filter(|(_, column)| root(column) == name);
    let (index, column) = match (leaves.next(), leaves.next()) {
        (Some(one), None) => one,
        (None, _) => {
            return Err(format!("it has no column `{name}`, and needs one of {}", kind(wanted)));
        }
        (Some(_), Some(_)) => {
            return Err(format!("column `{name}` is a group, and needs to be {}", kind(wanted)));
        }
    };
    let is_list = |column: &ColumnDescriptor| column.max_rep_level() == 1;
    let nested = column.max_rep_level() == 0 && column.path().parts().len() > 1;
    let types = (wanted.physical_type(), column.physical_type());
    let wide = (types == (Type::INT32, Type::INT64)).then(|| sign(wanted));
    let same = (types.0 == types.1 || wide.is_some())
        && column.max_rep_level() <= 1
        && is_list(column) == is_list(wanted)
        && !nested;
    if !same {
        return Err(format!(
            "column `{name}` is {}, and needs to be {}",
            kind(column),
            kind(wanted)
        ));
    }
    let of_root = found.get_column_root(index).get_basic_info();
    let optional = of_root.has_repetition() && of_root.repetition() == Repetition::OPTIONAL;
    let present = column.max_def_level();
    Ok(Place { name: name.to_owned(), index, present, empty: i16::from(optional), wide })
}

fn sign(column: &ColumnDescriptor) -> Sign {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(of)) if !of.is_signed => Sign::Unsigned,
        _ => Sign::Signed,
    }
}

fn root(column: &ColumnDescriptor) -> &str {
    column.path().parts().first().map_or("", String::as_str)
}

/// What a column holds, in the words of the format.
fn kind(column: &ColumnDescriptor) -> String {
    let of = column.physical_type().to_string();
    match (column.max_rep_level(), column.path().parts().len()) {
        (0, 1) => of,
        (0, _) => format!("a group of {of}"),
        (1, _) => format!("a list of {of}"),
        _ => format!("lists of lists of {of}"),
    }
}
