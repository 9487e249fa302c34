//! Tables that another tool wrote again: the same names and types are read, whatever else is different; of
//! what is not, the column is named, with what it has and what is needed.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Type};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use whylate_model::segments::{Limits, Writer, decode_events, decode_gaps};
use whylate_model::{RunDir, Ticks};

use crate::segments::{event_of, gap_at, gaps_both_ways, segment_files};

const ROWS: u64 = 40;

/// How a table is written again.
#[derive(Clone, Copy, Default)]
struct Again {
    /// The schema in place of this.
    schema: Option<fn(&str) -> String>,
    /// These two columns under each other's name.
    swapped: Option<[&'static str; 2]>,
    /// The first value of this column is absent.
    absent: Option<&'static str>,
    /// Pages are of version 2.
    pages_v2: bool,
    gzip: bool,
}

impl Again {
    fn write(self, file: &[u8]) -> Vec<u8> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(file.to_vec())).unwrap();
        let before = reader.metadata().file_metadata().schema_descr();
        let mut text = Vec::new();
        print_schema(&mut text, before.root_schema());
        let text = String::from_utf8(text).unwrap();
        let text = self.schema.map_or(text.clone(), |change| change(&text));
        let schema = Arc::new(parse_message_type(&text).unwrap());
        let after = SchemaDescriptor::new(schema.clone());
        let (version, compression) = (
            if self.pages_v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 },
            if self.gzip {
                Compression::GZIP(GzipLevel::default())
            } else {
                Compression::UNCOMPRESSED
            },
        );
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_compression(compression)
            .build();
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        let from = reader.get_row_group(0).unwrap();
        let mut into = writer.next_row_group().unwrap();
        for column in after.columns() {
            let name = self.before(column);
            let index = before.columns().iter().position(|of| of.path().string() == name).unwrap();
            let was = before.column(index);
            let of = |column: &ColumnDescriptor| column.physical_type();
            match (of(&was), of(column)) {
                (Type::BOOLEAN, Type::BOOLEAN) => {
                    self.copy::<BoolType, BoolType>(&*from, index, &mut into, column, |of| of);
                }
                (Type::INT32, Type::INT32) => {
                    self.copy::<Int32Type, Int32Type>(&*from, index, &mut into, column, |of| of);
                }
                (Type::INT32, Type::INT64) => {
                    let wider = if is_unsigned(&was) {
                        |of: i32| i64::from(of.cast_unsigned())
                    } else {
                        |of: i32| i64::from(of)
                    };
                    self.copy::<Int32Type, Int64Type>(&*from, index, &mut into, column, wider);
                }
                (Type::INT64, Type::INT64) => {
                    self.copy::<Int64Type, Int64Type>(&*from, index, &mut into, column, |of| of);
                }
                (Type::INT64, Type::INT32) => {
                    let cut = |of: i64| of as i32;
                    self.copy::<Int64Type, Int32Type>(&*from, index, &mut into, column, cut);
                }
                (Type::BYTE_ARRAY, Type::BYTE_ARRAY) => {
                    self.copy::<ByteArrayType, ByteArrayType>(
                        &*from,
                        index,
                        &mut into,
                        column,
                        |of| of,
                    );
                }
                other => panic!("no column of ours has the types {other:?}"),
            }
        }
        into.close().unwrap();
        writer.into_inner().unwrap()
    }

    /// What the column was called.
    fn before(self, column: &ColumnDescriptor) -> String {
        let name = column.path().string();
        match self.swapped {
            Some([one, other]) if name == one => other.to_owned(),
            Some([one, other]) if name == other => one.to_owned(),
            _ => name,
        }
    }

    fn copy<Was: DataType, Is: DataType>(
        self,
        from: &dyn RowGroupReader,
        index: usize,
        into: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        column: &ColumnDescriptor,
        turned: fn(Was::T) -> Is::T,
    ) {
        let (mut values, mut levels, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = get_typed_column_reader::<Was>(from.get_column_reader(index).unwrap());
        let rows = ROWS as usize;
        reader.read_records(rows, Some(&mut levels), Some(&mut repeats), &mut values).unwrap();
        let was = from.metadata().column(index).column_descr().max_def_level();
        let is = column.max_def_level();
        if was == 0 {
            levels = vec![0; values.len()];
        }
        for level in levels.iter_mut().filter(|level| **level == was) {
            *level = is;
        }
        if self.absent == Some(column.name()) {
            values.remove(0);
            levels[0] = 0;
        }
        let values: Vec<Is::T> = values.into_iter().map(turned).collect();
        let mut writer = into.next_column().unwrap().unwrap();
        let (levels, repeats) =
            ((is > 0).then_some(&levels[..]), (column.max_rep_level() > 0).then_some(&repeats[..]));
        writer.typed::<Is>().write_batch(&values, levels, repeats).unwrap();
        writer.close().unwrap();
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let of = column.logical_type_ref();
    matches!(of, Some(LogicalType::Integer(of)) if !of.is_signed)
}

/// Tables of gaps and of events with some rows.
fn tables() -> [Vec<u8>; 2] {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for number in 0..ROWS {
        writer.push_gap(&gap_at(number)).unwrap();
        writer.push_event(&event_of(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let files = segment_files(&directory);
    [&files[1], &files[0]].map(|file| std::fs::read(file).unwrap())
}

/// The schema as a tool writes it that lets everything be absent.
fn all_optional(schema: &str) -> String {
    schema.replace("REQUIRED", "OPTIONAL")
}

/// The same without what says that numbers have no sign and bytes are text.
fn bare(schema: &str) -> String {
    let line = |line: &str| match line.split_once(" (") {
        Some((before, _)) if line.ends_with(';') => format!("{before};\n"),
        _ => format!("{line}\n"),
    };
    all_optional(schema).lines().map(line).collect()
}

/// The schema by the first version of the format, which has no unsigned number of 32 bits.
fn wide(schema: &str) -> String {
    let line = |line: &str| match line.split_once(" (") {
        Some((before, of)) if of.replace(' ', "").starts_with("INTEGER(32,false)") => {
            format!("{};\n", before.replace("INT32", "INT64"))
        }
        _ => format!("{line}\n"),
    };
    all_optional(schema).lines().map(line).collect()
}

/// All numbers of 32 bits in 64, those with a sign, too.
fn widest(schema: &str) -> String {
    bare(schema).replace("INT32", "INT64")
}

/// The columns from the last to the first.
fn reversed(schema: &str) -> String {
    let mut lines: Vec<&str> = schema.trim_end().lines().collect();
    let last = lines.len() - 1;
    lines[1..last].reverse();
    lines.join("\n")
}

fn without_start(schema: &str) -> String {
    schema.lines().filter(|line| !line.contains(" start ")).collect()
}

#[test]
fn a_table_of_the_same_types_is_read_whoever_wrote_it() {
    type Rewrite = fn(&str) -> String;
    let [gaps, events] = tables();
    let path = Path::new("table");
    let ways: [Option<Rewrite>; 5] =
        [None, Some(all_optional), Some(bare), Some(wide), Some(widest)];
    for (number, schema) in ways.into_iter().enumerate() {
        for (pages_v2, gzip) in [(false, false), (false, true), (true, false), (true, true)] {
            let again = Again { schema, pages_v2, gzip, ..Again::default() };
            let how = format!("{number}, version 2: {pages_v2}, gzip: {gzip}");
            let back =
                gaps_both_ways(path, again.write(&gaps)).unwrap_or_else(|e| panic!("{how}: {e}"));
            assert_eq!(back, (0..ROWS).map(gap_at).collect::<Vec<_>>(), "{how}");
            let back =
                decode_events(path, again.write(&events)).unwrap_or_else(|e| panic!("{how}: {e}"));
            assert_eq!(back, (0..ROWS).map(event_of).collect::<Vec<_>>(), "{how}");
        }
    }
    let again = Again { schema: Some(reversed), ..Again::default() };
    assert_eq!(gaps_both_ways(path, again.write(&gaps)).unwrap().len() as u64, ROWS);
}

#[test]
fn a_table_that_cannot_be_read_says_which_column_has_what_and_needs_what() {
    let [gaps, _] = tables();
    let cases = [
        (
            Again { schema: Some(without_start), ..Again::default() },
            "no column `start`, and needs one of INT64",
        ),
        (
            Again { schema: Some(swapped), swapped: Some(["thread", "start"]), ..Again::default() },
            "column `start` is INT32, and needs to be INT64",
        ),
        (
            Again { schema: Some(all_optional), absent: Some("end"), ..Again::default() },
            "column `end` lacks a value, and needs all",
        ),
    ];
    for (again, expected) in cases {
        let error = decode_gaps(Path::new("gaps-0001.parquet"), again.write(&gaps)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("gaps-0001.parquet") && said.contains(expected), "{said}");
    }
}

fn swapped(schema: &str) -> String {
    let bare = bare(schema);
    bare.replace("INT32 thread", "INT32 x")
        .replace("INT64 start", "INT64 thread")
        .replace("INT32 x", "INT32 start")
}
