//! Columns of a segment: filled row by row, written and read as a whole.
//!
//! Unsigned numbers are stored in Parquet's signed types of the same width, bit for bit; the schema
//! says that they are unsigned. Numbers of 32 bits are read from columns of 64, too.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;

use super::places::{Place, Sign};

/// Most bytes of one text: the kernel's names have 16, those of interrupt handlers a few more.
const LONGEST_TEXT: usize = 256;

/// A type of values of a column.
pub(super) trait Stored: DataType {
    /// The value that a wider column holds; none where it has none of this type.
    fn from_wide(_: i64, _: Sign) -> Option<Self::T> {
        None
    }
}

impl Stored for BoolType {}
impl Stored for ByteArrayType {}
impl Stored for Int64Type {}

impl Stored for Int32Type {
    fn from_wide(value: i64, sign: Sign) -> Option<i32> {
        match sign {
            Sign::Signed => i32::try_from(value).ok(),
            Sign::Unsigned => u32::try_from(value).ok().map(u32::cast_signed),
        }
    }
}

/// A column with a value in every row.
pub(super) struct Required<T: Stored> {
    pub(super) values: Vec<T::T>,
}

/// A column in which a value may be absent.
pub(super) struct Optional<T: Stored> {
    values: Vec<T::T>,
    present: Vec<i16>,
}

/// A column of lists of CPU numbers, in which a list may be absent.
#[derive(Default)]
pub(super) struct Lists {
    values: Vec<i32>,
    depths: Vec<i16>,
    repeats: Vec<i16>,
}

/// A column of short texts, each different one kept once.
#[derive(Default)]
pub(super) struct Texts {
    known: HashMap<Box<str>, u32>,
    distinct: Vec<ByteArray>,
    rows: Vec<Option<u32>>,
}

// Levels of a list column as whylate writes it: absent, empty, with an element.
const ABSENT: i16 = 0;
const EMPTY: i16 = 1;
const ELEMENT: i16 = 2;

impl<T: Stored> Default for Required<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Stored> Default for Optional<T> {
    fn default() -> Self {
        Self { values: Vec::new(), present: Vec::new() }
    }
}

impl<T: Stored> Required<T> {
    pub(super) fn push(&mut self, value: T::T) {
        self.values.push(value);
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
    }

    pub(super) fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        write::<T, W>(group, &self.values, None, None)
    }

    pub(super) fn read(columns: &mut Columns<'_>) -> Result<Self> {
        let (raw, place) = columns.next::<T>()?;
        if raw.values.len() != columns.rows {
            return Err(if place.present > 0 { without_value(place) } else { uneven() });
        }
        Ok(Self { values: raw.values })
    }
}

impl<T: Stored> Optional<T> {
    pub(super) fn push(&mut self, value: Option<T::T>) {
        self.present.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.present.clear();
    }

    pub(super) fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        write::<T, W>(group, &self.values, Some(&self.present), None)
    }

    /// One entry per row.
    pub(super) fn read(columns: &mut Columns<'_>) -> Result<Vec<Option<T::T>>> {
        let (raw, place) = columns.next::<T>()?;
        let mut values = raw.values.into_iter();
        let rows: Vec<_> = if place.present == 0 {
            values.map(Some).collect()
        } else {
            let is_there = |level: &i16| *level == place.present;
            raw.defined.iter().map(|of| is_there(of).then(|| values.next()).flatten()).collect()
        };
        if rows.len() == columns.rows { Ok(rows) } else { Err(uneven()) }
    }
}

impl Lists {
    pub(super) fn push(&mut self, list: Option<impl IntoIterator<Item = u32>>) {
        let Some(list) = list else {
            self.depths.push(ABSENT);
            self.repeats.push(0);
            return;
        };
        let before = self.values.len();
        for value in list {
            self.repeats.push(i16::from(self.values.len() > before));
            self.depths.push(ELEMENT);
            self.values.push(value.cast_signed());
        }
        if self.values.len() == before {
            self.depths.push(EMPTY);
            self.repeats.push(0);
        }
    }

    /// Elements of all lists.
    pub(super) fn elements(&self) -> usize {
        self.values.len()
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.depths.clear();
        self.repeats.clear();
    }

    pub(super) fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        write::<Int32Type, W>(group, &self.values, Some(&self.depths), Some(&self.repeats))
    }

    pub(super) fn read(columns: &mut Columns<'_>) -> Result<Vec<Option<Vec<u32>>>> {
        let (raw, place) = columns.next::<Int32Type>()?;
        let mut values = raw.values.into_iter();
        let mut rows: Vec<Option<Vec<u32>>> = Vec::new();
        for (depth, repeat) in raw.defined.iter().zip(&raw.repeated) {
            if *repeat == 0 {
                rows.push((*depth >= place.empty).then(Vec::new));
            }
            if *depth == place.present {
                let list = rows.last_mut().and_then(Option::as_mut).ok_or_else(uneven)?;
                list.push(values.next().ok_or_else(uneven)?.cast_unsigned());
            } else if *depth > place.empty {
                return Err(without_value(place));
            }
        }
        if rows.len() == columns.rows { Ok(rows) } else { Err(uneven()) }
    }
}

impl Texts {
    /// Adds a text, or its absence.
    ///
    /// A text longer than a reader takes is cut: no name of the kernel is.
    pub(super) fn push(&mut self, text: Option<&str>) {
        let row = text.map(|text| {
            let text = cut(text);
            if let Some(index) = self.known.get(text) {
                return *index;
            }
            let index = self.distinct.len() as u32;
            self.distinct.push(ByteArray::from(text.as_bytes().to_vec()));
            self.known.insert(text.into(), index);
            index
        });
        self.rows.push(row);
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.distinct.clear();
        self.rows.clear();
    }

    pub(super) fn write<W: Write + Send>(
        &self,
        group: &mut Group<'_, W>,
        presence: Presence,
    ) -> Result<()> {
        let values: Vec<ByteArray> = self
            .rows
            .iter()
            .flatten()
            .map(|index| self.distinct[*index as usize].clone())
            .collect();
        match presence {
            Presence::Always => write::<ByteArrayType, W>(group, &values, None, None),
            Presence::Sometimes => {
                let present: Vec<i16> =
                    self.rows.iter().map(|row| i16::from(row.is_some())).collect();
                write::<ByteArrayType, W>(group, &values, Some(&present), None)
            }
        }
    }

    pub(super) fn read(
        columns: &mut Columns<'_>,
        presence: Presence,
    ) -> Result<Vec<Option<ByteArray>>> {
        match presence {
            Presence::Always => {
                let column = Required::<ByteArrayType>::read(columns)?;
                Ok(column.values.into_iter().map(Some).collect())
            }
            Presence::Sometimes => Optional::<ByteArrayType>::read(columns),
        }
    }
}

/// The texts of a column, each different one once, and which of them each row has.
pub(super) struct Distinct {
    pub(super) texts: Vec<Arc<str>>,
    pub(super) rows: Vec<Option<u32>>,
}

/// Texts that are looked for by where they lie before what they say is: rows share those of a dictionary.
const MOST_PLACES: usize = 32;

impl Distinct {
    pub(super) fn read(columns: &mut Columns<'_>) -> Result<Self> {
        let (raw, place) = columns.next::<ByteArrayType>()?;
        let mut texts = Vec::new();
        let mut known: HashMap<Arc<str>, u32> = HashMap::new();
        // All values stay where they are meanwhile: what lies in the same place is the same text.
        let mut places: Vec<(*const u8, usize, u32)> = Vec::new();
        let mut index = |value: &ByteArray| -> Result<u32> {
            let (at, length) = (value.data().as_ptr(), value.len());
            if let Some(found) = places.iter().find(|of| (of.0, of.1) == (at, length)) {
                return Ok(found.2);
            }
            let said = text(value)?;
            let index = known.get(said).copied().unwrap_or_else(|| {
                let (index, shared) = (texts.len() as u32, Arc::<str>::from(said));
                known.insert(Arc::clone(&shared), index);
                texts.push(shared);
                index
            });
            if places.len() < MOST_PLACES {
                places.push((at, length, index));
            }
            Ok(index)
        };
        let rows: Vec<Option<u32>> = if place.present == 0 {
            raw.values.iter().map(|value| index(value).map(Some)).collect::<Result<_>>()?
        } else {
            let mut values = raw.values.iter();
            let mut row = |level: &i16| match (*level == place.present).then(|| values.next()) {
                Some(Some(value)) => index(value).map(Some),
                _ => Ok(None),
            };
            raw.defined.iter().map(&mut row).collect::<Result<_>>()?
        };
        if rows.len() == columns.rows { Ok(Self { texts, rows }) } else { Err(uneven()) }
    }
}

/// Has a text column a value in every row?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Always,
    Sometimes,
}

/// The text behind a value of a text column.
pub(super) fn text(value: &ByteArray) -> Result<&str> {
    if value.len() > LONGEST_TEXT {
        return Err(ParquetError::General(format!(
            "a text of {} bytes, and the longest has {LONGEST_TEXT}",
            value.len()
        )));
    }
    value.as_utf8()
}

/// The longest text that a reader takes from the beginning of this one.
fn cut(text: &str) -> &str {
    let end = (0..=LONGEST_TEXT.min(text.len())).rfind(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// A row group that is being written.
pub(super) type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write<T: Stored, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &[T::T],
    defined: Option<&[i16]>,
    repeated: Option<&[i16]>,
) -> Result<()> {
    let mut column = group.next_column()?.ok_or_else(uneven)?;
    column.typed::<T>().write_batch(values, defined, repeated)?;
    column.close()
}

/// The columns of a row group, read one after another.
pub(super) struct Columns<'a> {
    group: &'a dyn RowGroupReader,
    /// Those that are not read yet.
    left: std::slice::Iter<'a, Place>,
    rows: usize,
}

struct Raw<T> {
    values: Vec<T>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(group: &'a dyn RowGroupReader, rows: usize, places: &'a [Place]) -> Self {
        Self { group, left: places.iter(), rows }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Passes over so many columns.
    pub(super) fn skip(&mut self, columns: usize) {
        self.left.by_ref().take(columns).for_each(drop);
    }

    /// Reads the next column. Its place was found by its type: that is right.
    fn next<T: Stored>(&mut self) -> Result<(Raw<T::T>, &'a Place)> {
        let place = self.left.next().ok_or_else(uneven)?;
        let Some(sign) = place.wide else { return Ok((self.raw::<T>(place)?, place)) };
        let Raw { values, defined, repeated } = self.raw::<Int64Type>(place)?;
        let values: Option<Vec<_>> =
            values.into_iter().map(|value| T::from_wide(value, sign)).collect();
        let values = values.ok_or_else(|| too_large(place))?;
        Ok((Raw { values, defined, repeated }, place))
    }

    fn raw<T: DataType>(&self, place: &Place) -> Result<Raw<T::T>> {
        let column = self.group.get_column_reader(place.index)?;
        let mut reader = get_typed_column_reader::<T>(column);
        let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        reader.read_records(self.rows, Some(&mut defined), Some(&mut repeated), &mut values)?;
        Ok(Raw { values, defined, repeated })
    }
}

fn too_large(place: &Place) -> ParquetError {
    let needed = match place.wide {
        Some(Sign::Unsigned) => "0 to 2^32 - 1",
        _ => "-2^31 to 2^31 - 1",
    };
    ParquetError::General(format!(
        "column `{}` holds a number of more than 32 bits, and needs to hold {needed}",
        place.name
    ))
}

fn without_value(place: &Place) -> ParquetError {
    ParquetError::General(format!("column `{}` lacks a value, and needs all", place.name))
}

fn uneven() -> ParquetError {
    ParquetError::General("columns of different length".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_wider_column_is_that_number_or_none() {
        let cases = [
            (7, Sign::Unsigned, Some(7)),
            (i64::from(u32::MAX), Sign::Unsigned, Some(-1)),
            (1 << 32, Sign::Unsigned, None),
            (-1, Sign::Unsigned, None),
            (-1, Sign::Signed, Some(-1)),
            (1 << 31, Sign::Signed, None),
        ];
        for (wide, sign, expected) in cases {
            assert_eq!(Int32Type::from_wide(wide, sign), expected, "{wide} {sign:?}");
        }
    }
}
