//! Distrust of a Parquet file: checked before the reader of the `parquet` crate sees it.
//!
//! That reader takes sizes and counts in page headers at their word, and allocates for them; a
//! damaged or hostile file of a few bytes could make it ask for gigabytes, or panic over a
//! dictionary that never came. So the headers are walked here first, and only files like those that
//! whylate and usual tools write go through: data pages of version 1 and 2, few encodings, bounded
//! sizes, which a page that is compressed by gzip is seen to keep: its reader would go on to its end.
//! The headers are structures of Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>) as
//! `parquet.thrift` of the Parquet format defines them.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
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
    let read = matches!(
        compression,
        Compression::SNAPPY | Compression::UNCOMPRESSED | Compression::GZIP(_)
    );
    if !read {
        let what = format!(
            "is compressed by {compression}, and needs to be by SNAPPY, by GZIP or not at all"
        );
        return Err(in_column(&what));
    }
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = usize::try_from(start).ok().zip(usize::try_from(column.compressed_size()).ok());
    let pages = range.and_then(|(start, length)| file.get(start..start.checked_add(length)?));
    let pages = pages.ok_or_else(|| in_column("lies outside the file"))?;
    check_pages(pages, compression).map_err(|why| match why {
        ParquetError::General(what) => in_column(&format!("has {what}")),
        other => other,
    })
}

/// Walks the pages of one column; returns their uncompressed size.
fn check_pages(mut rest: &[u8], compression: Compression) -> Result<i64> {
    let mut dictionary = false;
    let (mut uncompressed, mut values) = (0_i64, 0_i64);
    while !rest.is_empty() {
        let (header, length) = PageHeader::read(rest)?;
        header.check(dictionary)?;
        dictionary |= header.kind == PageHeader::DICTIONARY;
        uncompressed = uncompressed.saturating_add(header.uncompressed);
        values = values.saturating_add(header.of.values);
        if uncompressed > MOST_UNCOMPRESSED || values > MOST_VALUES {
            return Err(damaged("a page larger than a segment may have"));
        }
        let end = usize::try_from(header.compressed).ok().and_then(|page| page.checked_add(length));
        let (page, behind) = end
            .and_then(|end| rest.split_at_checked(end))
            .ok_or_else(|| damaged("a page beyond its column"))?;
        if matches!(compression, Compression::GZIP(_)) {
            header.check_gzip(&page[length..])?;
        }
        rest = behind;
    }
    Ok(uncompressed)
}

/// What matters of a page header.
#[derive(Debug)]
struct PageHeader {
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    of: Described,
}

/// What a header says of a page of its kind.
#[derive(Debug, Clone, Copy)]
struct Described {
    values: i64,
    encoding: i64,
    /// Values that are absent, of version 2.
    nulls: i64,
    rows: i64,
    /// Bytes of levels, which version 2 does not compress.
    levels: [i64; 2],
    /// Are the values of version 2 compressed?
    compressed: bool,
}

impl PageHeader {
    const DATA: i64 = 0;
    const DICTIONARY: i64 = 2;
    const DATA_V2: i64 = 3;

    const PLAIN: i64 = 0;
    const PLAIN_DICTIONARY: i64 = 2;
    const RLE: i64 = 3;
    const DELTA_BINARY_PACKED: i64 = 5;
    const RLE_DICTIONARY: i64 = 8;

    fn read(bytes: &[u8]) -> Result<(Self, usize)> {
        // The kind is required: one that is absent must not pass for a data page.
        let (mut kind, mut uncompressed, mut compressed) = (-1, 0, 0);
        let none = Described {
            values: -1,
            encoding: -1,
            nulls: 0,
            rows: 0,
            levels: [0; 2],
            compressed: true,
        };
        let (mut data, mut dictionary, mut data_v2) = (none, none, none);
        let mut thrift = Thrift { bytes, at: 0 };
        thrift.structure(0, &mut Vec::new(), &mut |path, value| match path {
            [1] => kind = value,
            [2] => uncompressed = value,
            [3] => compressed = value,
            [5, 1] => data.values = value,
            [5, 2] => data.encoding = value,
            [7, 1] => dictionary.values = value,
            [7, 2] => dictionary.encoding = value,
            [8, 1] => data_v2.values = value,
            [8, 2] => data_v2.nulls = value,
            [8, 3] => data_v2.rows = value,
            [8, 4] => data_v2.encoding = value,
            [8, 5] => data_v2.levels[0] = value,
            [8, 6] => data_v2.levels[1] = value,
            [8, 7] => data_v2.compressed = value != 0,
            _ => {}
        })?;
        // A header may hold what describes a page of another kind, too.
        let of = match kind {
            Self::DATA => data,
            Self::DICTIONARY => dictionary,
            Self::DATA_V2 => data_v2,
            _ => none,
        };
        Ok((Self { kind, uncompressed, compressed, of }, thrift.at))
    }

    fn check(&self, dictionary: bool) -> Result<()> {
        let encoding_fits = match (self.kind, self.of.encoding) {
            (Self::DICTIONARY, Self::PLAIN | Self::PLAIN_DICTIONARY) => !dictionary,
            (Self::DATA | Self::DATA_V2, Self::PLAIN | Self::RLE | Self::DELTA_BINARY_PACKED) => {
                true
            }
            (Self::DATA | Self::DATA_V2, Self::PLAIN_DICTIONARY | Self::RLE_DICTIONARY) => {
                dictionary
            }
            _ => false,
        };
        if !encoding_fits {
            return Err(damaged(
                "a page of a kind or an encoding that whylate does not read: write it with a dictionary",
            ));
        }
        let Described { values, nulls, rows, levels, .. } = self.of;
        let counts =
            [self.uncompressed, self.compressed, values, nulls, rows, levels[0], levels[1]];
        if counts.iter().any(|count| *count < 0) {
            return Err(damaged("a page of negative size"));
        }
        if nulls > values || rows > values {
            return Err(damaged("a page with fewer values than rows"));
        }
        if self.levels() > self.uncompressed.min(self.compressed) {
            return Err(damaged("a page shorter than its levels"));
        }
        Ok(())
    }

    fn levels(&self) -> i64 {
        self.of.levels[0].saturating_add(self.of.levels[1])
    }

    /// Is a page as long as it says, once it is no longer compressed?
    fn check_gzip(&self, page: &[u8]) -> Result<()> {
        let values = usize::try_from(self.levels()).ok().and_then(|levels| page.get(levels..));
        let (true, Some(values)) = (self.of.compressed, values) else { return Ok(()) };
        let wanted = (self.uncompressed - self.levels()).unsigned_abs();
        if wanted == 0 {
            return Ok(());
        }
        // One byte more tells a page that is longer.
        let mut inside = MultiGzDecoder::new(values).take(wanted + 1);
        match io::copy(&mut inside, &mut io::sink()) {
            Ok(length) if length == wanted => Ok(()),
            _ => Err(damaged("a page that is not as long as it says, or no gzip")),
        }
    }
}

/// A walk over a structure of the compact protocol.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    /// Walks one structure and hands every integer and boolean in it to `found`, with the field numbers
    /// that lead to it.
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
                1 | 2 => found(path, i64::from(head & 0x0f == 1)),
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
    use std::io::Write;

    use flate2::write::GzEncoder;
    use parquet::basic::GzipLevel;

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

    /// The header of a page of version 2, then what it holds.
    fn page_v2(uncompressed: i64, fields: [i64; 6], compressed: bool, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in [PageHeader::DATA_V2, uncompressed, content.len() as i64] {
            bytes.push(1 << 4 | I32);
            bytes.extend(zigzag(value));
        }
        bytes.push(5 << 4 | STRUCTURE);
        for value in fields {
            bytes.push(1 << 4 | I32);
            bytes.extend(zigzag(value));
        }
        bytes.push(1 << 4 | if compressed { 1 } else { 2 });
        bytes.extend([0, 0]);
        bytes.extend(content);
        bytes
    }

    fn gzipped(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn plain(pages: &[u8]) -> Result<i64> {
        check_pages(pages, Compression::SNAPPY)
    }

    fn gzip(pages: &[u8]) -> Result<i64> {
        check_pages(pages, Compression::GZIP(GzipLevel::default()))
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
        assert_eq!(plain(&pages.concat()).ok(), Some(80));
        assert_eq!(plain(&data(PageHeader::DELTA_BINARY_PACKED)).ok(), Some(30));
        assert_eq!(plain(&[]).ok(), Some(0));
    }

    #[test]
    fn pages_of_version_2_go_through_compressed_or_not() {
        let fields = [7, 1, 7, PageHeader::RLE_DICTIONARY, 3, 0];
        for compressed in [true, false] {
            let pages = [dictionary(), page_v2(30, fields, compressed, &[0xaa; 10])].concat();
            assert_eq!(plain(&pages).ok(), Some(50), "{compressed}");
        }
    }

    #[test]
    fn a_page_by_gzip_is_as_long_as_it_says() {
        let inside = [7_u8; 5_000];
        let fields = [7, 0, 7, PageHeader::PLAIN, 2, 1];
        let with_levels = [&[1, 2, 3][..], &gzipped(&inside)].concat();
        for (length, fits) in [(5_003, true), (5_002, false), (5_004, false), (30, false)] {
            let page = page_v2(length, fields, true, &with_levels);
            assert_eq!(gzip(&page).ok(), fits.then_some(length), "{length}");
        }
        let raw = page_v2(5_003, fields, false, &[&[1, 2, 3][..], &inside].concat());
        assert_eq!(gzip(&raw).ok(), Some(5_003), "levels and values as they are");
        assert!(gzip(&page(PageHeader::DATA, 30, 10, 7, PageHeader::PLAIN)).is_err(), "no gzip");
    }

    #[test]
    fn pages_that_would_take_too_much_or_panic_are_refused() {
        let nested = [[1 << 4 | STRUCTURE].repeat(50), vec![0; 51]].concat();
        // The header of a data page, in which a dictionary of few values is described, too.
        let two_kinds = {
            let mut bytes = page(PageHeader::DATA, 30, 10, HUGE, PageHeader::PLAIN);
            bytes.truncate(bytes.len() - 11);
            bytes.extend([2 << 4 | STRUCTURE, 1 << 4 | I32, 14, 1 << 4 | I32, 0, 0, 0]);
            bytes.extend([0xaa; 10]);
            bytes
        };
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
            ("a page of version 2 that says nothing", page(3, 30, 10, 7, PageHeader::PLAIN)),
            ("fewer values than absent", page_v2(30, [7, 8, 7, 0, 0, 0], true, &[0; 10])),
            ("fewer values than rows", page_v2(30, [7, 0, 8, 0, 0, 0], true, &[0; 10])),
            ("levels longer than the page", page_v2(30, [7, 0, 7, 0, 6, 5], true, &[0; 10])),
            ("negative levels", page_v2(30, [7, 0, 7, 0, -1, 5], true, &[0; 10])),
            ("many values of version 2", page_v2(30, [HUGE, 0, 7, 0, 0, 0], true, &[0; 10])),
            ("many values behind those of another kind", two_kinds),
            ("an empty header", vec![0]),
            ("an endless number", vec![0xff; 64]),
            ("deep nesting", nested),
            ("a list", vec![1 << 4 | LIST, 0xf5, 0xff, 0xff, 0x7f]),
            ("a text beyond the end", vec![1 << 4 | TEXT, 0xff, 0xff, 0x7f]),
        ];
        for (what, pages) in cases {
            assert!(plain(&pages).is_err(), "{what} went through");
        }
        let many: Vec<u8> = (0..5).flat_map(|_| page(0, 30 << 20, 10, 7, 0)).collect();
        assert!(plain(&many).is_err(), "150 MiB in one column went through");
    }
}
