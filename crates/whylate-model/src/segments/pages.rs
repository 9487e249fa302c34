//! Distrust of a Parquet file: checked before the reader of the `parquet` crate sees it.
//!
//! That reader takes sizes and counts in page headers at their word, and allocates for them; a
//! damaged or hostile file of a few bytes could make it ask for gigabytes, or panic over a
//! dictionary that never came. So the headers are walked here first, and only files like those that
//! whylate writes go through: data pages of version 1, few encodings, bounded sizes. The headers are
//! structures of Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>) as
//! `parquet.thrift` of the Parquet format defines them.

use std::path::Path;

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::rows::MOST_ROWS;
use crate::error::ModelError;

/// First and last bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// The magic twice, and the length of the footer.
const SMALLEST_FILE: usize = 12;
/// Most bytes that all pages of a file may have when uncompressed.
const MOST_UNCOMPRESSED: i64 = 128 << 20;
/// Most values of one column: more than rows where they are lists.
const MOST_VALUES: i64 = 1 << 22;
/// Deepest nesting of structures: page headers have three levels.
const DEEPEST: usize = 8;

/// Begins and ends the file as Parquet does?
pub(super) fn check_frame(path: &Path, file: &[u8]) -> std::result::Result<(), ModelError> {
    let truncated = |place: String| ModelError::Truncated { path: path.to_owned(), place };
    if file.len() < SMALLEST_FILE {
        return Err(truncated(format!("after {} bytes", file.len())));
    }
    if !file.starts_with(MAGIC) {
        return Err(ModelError::malformed(path, "it does not begin as a Parquet file does"));
    }
    if !file.ends_with(MAGIC) {
        return Err(truncated(format!("after {} bytes, without the footer", file.len())));
    }
    Ok(())
}

/// Walks all pages of all columns. The file's schema is already known to be ours.
pub(super) fn check_columns(metadata: &ParquetMetaData, file: &[u8]) -> Result<()> {
    let mut rows = 0_i64;
    let mut uncompressed = 0_i64;
    for group in metadata.row_groups() {
        if group.num_rows() < 0 {
            return Err(damaged("a negative number of rows"));
        }
        rows = rows.saturating_add(group.num_rows());
        if rows > MOST_ROWS as i64 {
            return Err(damaged("more rows than a segment may have"));
        }
        for column in group.columns() {
            uncompressed = uncompressed.saturating_add(check_column(column, file)?);
            if uncompressed > MOST_UNCOMPRESSED {
                return Err(damaged("more data than a segment may have"));
            }
        }
    }
    Ok(())
}

fn check_column(column: &ColumnChunkMetaData, file: &[u8]) -> Result<i64> {
    let compression = column.compression();
    let in_column =
        |what: &str| damaged(&format!("column `{}` {what}", column.column_path().string()));
    if !matches!(compression, Compression::SNAPPY | Compression::UNCOMPRESSED) {
        let what =
            format!("is compressed by {compression}, and needs to be by SNAPPY or not at all");
        return Err(in_column(&what));
    }
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = usize::try_from(start).ok().zip(usize::try_from(column.compressed_size()).ok());
    let pages = range.and_then(|(start, length)| file.get(start..start.checked_add(length)?));
    let pages = pages.ok_or_else(|| in_column("lies outside the file"))?;
    check_pages(pages).map_err(|why| match why {
        ParquetError::General(what) => in_column(&format!("has {what}")),
        other => other,
    })
}

/// Walks the pages of one column; returns their uncompressed size.
fn check_pages(mut rest: &[u8]) -> Result<i64> {
    let mut dictionary = false;
    let (mut uncompressed, mut values) = (0_i64, 0_i64);
    while !rest.is_empty() {
        let (header, length) = PageHeader::read(rest)?;
        header.check(dictionary)?;
        dictionary |= header.kind == PageHeader::DICTIONARY;
        uncompressed = uncompressed.saturating_add(header.uncompressed);
        values = values.saturating_add(header.values);
        if uncompressed > MOST_UNCOMPRESSED || values > MOST_VALUES {
            return Err(damaged("a page larger than a segment may have"));
        }
        let page =
            usize::try_from(header.compressed).ok().and_then(|page| page.checked_add(length));
        rest = page
            .and_then(|page| rest.get(page..))
            .ok_or_else(|| damaged("a page beyond its column"))?;
    }
    Ok(uncompressed)
}

/// What matters of a page header.
#[derive(Debug, Default)]
struct PageHeader {
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    values: i64,
    encoding: i64,
}

impl PageHeader {
    const DATA: i64 = 0;
    const DICTIONARY: i64 = 2;

    const PLAIN: i64 = 0;
    const PLAIN_DICTIONARY: i64 = 2;
    const RLE: i64 = 3;
    const DELTA_BINARY_PACKED: i64 = 5;
    const RLE_DICTIONARY: i64 = 8;

    fn read(bytes: &[u8]) -> Result<(Self, usize)> {
        // The kind is required: one that is absent must not pass for a data page.
        let mut header = Self { kind: -1, values: -1, encoding: -1, ..Self::default() };
        let mut thrift = Thrift { bytes, at: 0 };
        thrift.structure(0, &mut Vec::new(), &mut |path, value| match path {
            [1] => header.kind = value,
            [2] => header.uncompressed = value,
            [3] => header.compressed = value,
            // Field 5 describes a data page, field 7 a dictionary.
            [5 | 7, 1] => header.values = value,
            [5 | 7, 2] => header.encoding = value,
            _ => {}
        })?;
        Ok((header, thrift.at))
    }

    fn check(&self, dictionary: bool) -> Result<()> {
        let encoding_fits = match (self.kind, self.encoding) {
            (Self::DICTIONARY, Self::PLAIN | Self::PLAIN_DICTIONARY) => !dictionary,
            (Self::DATA, Self::PLAIN | Self::RLE | Self::DELTA_BINARY_PACKED) => true,
            (Self::DATA, Self::PLAIN_DICTIONARY | Self::RLE_DICTIONARY) => dictionary,
            _ => false,
        };
        if !encoding_fits {
            return Err(damaged(
                "a page of a kind that whylate does not read: it reads data pages of version 1",
            ));
        }
        if self.uncompressed < 0 || self.compressed < 0 || self.values < 0 {
            return Err(damaged("a page of negative size"));
        }
        Ok(())
    }
}

/// A walk over a structure of the compact protocol.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    /// Walks one structure and hands every integer in it to `found`, with the field numbers that
    /// lead to it.
    fn structure(
        &mut self,
        depth: usize,
        path: &mut Vec<i64>,
        found: &mut dyn FnMut(&[i64], i64),
    ) -> Result<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => self.zigzag()?,
                step => field.saturating_add(i64::from(step)),
            };
            path.push(field);
            match head & 0x0f {
                // The two booleans are types without a value.
                1 | 2 => {}
                kind => self.value(kind, depth, path, found)?,
            }
            path.pop();
        }
    }

    fn value(
        &mut self,
        kind: u8,
        depth: usize,
        path: &mut Vec<i64>,
        found: &mut dyn FnMut(&[i64], i64),
    ) -> Result<()> {
        if depth > DEEPEST {
            return Err(damaged("a page header nested too deeply"));
        }
        match kind {
            1..=3 => self.skip(1),
            4..=6 => {
                let value = self.zigzag()?;
                found(path, value);
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(usize::try_from(length).unwrap_or(usize::MAX))
            }
            12 => self.structure(depth + 1, path, found),
            // No page header holds a list, set or map.
            _ => Err(damaged("a page header with an unknown field")),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).ok_or_else(|| damaged("a page header cut short"))?;
        self.at += 1;
        Ok(*byte)
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        match self.at.checked_add(length) {
            Some(at) if at <= self.bytes.len() => {
                self.at = at;
                Ok(())
            }
            _ => Err(damaged("a page header cut short")),
        }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("a number that does not end"))
    }

    fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: i64 = i32::MAX as i64;

    // Types of the compact protocol.
    const I32: u8 = 0x05;
    const TEXT: u8 = 0x08;
    const LIST: u8 = 0x09;
    const STRUCTURE: u8 = 0x0c;

    fn zigzag(value: i64) -> Vec<u8> {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        let mut bytes = Vec::new();
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    /// A page header and as many bytes of content as it states.
    fn page(kind: i64, uncompressed: i64, compressed: i64, values: i64, encoding: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in [kind, uncompressed, compressed] {
            bytes.push(1 << 4 | I32);
            bytes.extend(zigzag(value));
        }
        let step = if kind == PageHeader::DICTIONARY { 4 } else { 2 };
        bytes.push(step << 4 | STRUCTURE);
        for value in [values, encoding] {
            bytes.push(1 << 4 | I32);
            bytes.extend(zigzag(value));
        }
        bytes.extend([0, 0]);
        bytes.extend(std::iter::repeat_n(0xaa, compressed.clamp(0, 1000) as usize));
        bytes
    }

    fn dictionary() -> Vec<u8> {
        page(PageHeader::DICTIONARY, 20, 10, 3, PageHeader::PLAIN)
    }

    fn data(encoding: i64) -> Vec<u8> {
        page(PageHeader::DATA, 30, 10, 7, encoding)
    }

    #[test]
    fn pages_as_whylate_writes_them_go_through() {
        let pages = [dictionary(), data(PageHeader::RLE_DICTIONARY), data(PageHeader::PLAIN)];
        assert_eq!(check_pages(&pages.concat()).ok(), Some(80));
        assert_eq!(check_pages(&data(PageHeader::DELTA_BINARY_PACKED)).ok(), Some(30));
        assert_eq!(check_pages(&[]).ok(), Some(0));
    }

    #[test]
    fn pages_that_would_take_too_much_or_panic_are_refused() {
        let nested = [[1 << 4 | STRUCTURE].repeat(50), vec![0; 51]].concat();
        let cases = [
            ("a large dictionary", page(PageHeader::DICTIONARY, 20, 10, HUGE, PageHeader::PLAIN)),
            ("a large page", page(PageHeader::DATA, HUGE, 10, 7, PageHeader::PLAIN)),
            ("many values", page(PageHeader::DATA, 30, 10, HUGE, PageHeader::PLAIN)),
            ("a negative size", page(PageHeader::DATA, -1, 10, 7, PageHeader::PLAIN)),
            ("a negative length", page(PageHeader::DATA, 30, -10, 7, PageHeader::PLAIN)),
            ("a page beyond its column", page(PageHeader::DATA, 30, 5000, 7, PageHeader::PLAIN)),
            ("no dictionary", data(PageHeader::RLE_DICTIONARY)),
            ("two dictionaries", [dictionary(), dictionary()].concat()),
            ("an unknown encoding", data(77)),
            ("a page of version 2", page(3, 30, 10, 7, PageHeader::PLAIN)),
            ("an empty header", vec![0]),
            ("an endless number", vec![0xff; 64]),
            ("deep nesting", nested),
            ("a list", vec![1 << 4 | LIST, 0xf5, 0xff, 0xff, 0x7f]),
            ("a text beyond the end", vec![1 << 4 | TEXT, 0xff, 0xff, 0x7f]),
        ];
        for (what, pages) in cases {
            assert!(check_pages(&pages).is_err(), "{what} went through");
        }
        let many: Vec<u8> = (0..5).flat_map(|_| page(0, 30 << 20, 10, 7, 0)).collect();
        assert!(check_pages(&many).is_err(), "150 MiB in one column went through");
    }
}
