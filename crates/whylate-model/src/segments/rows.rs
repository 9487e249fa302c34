//! What the two kinds of rows have in common, and how rows become a Parquet file and back.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, TypePtr};

use super::column::{Columns, Group};
use super::guarded::guarded;
use super::pages;
use super::places::{self, Place};
use crate::digest::Digest;
use crate::error::ModelError;
use crate::units::Ticks;

/// Key of the format version in a segment's metadata.
const VERSION_KEY: &str = "whylate.format_version";
/// The format of tables that this version writes and the newest it reads.
const TABLES_VERSION: u32 = 1;
/// Key of the tick that the run's tables count from.
const EPOCH_KEY: &str = "whylate.epoch_ticks";

/// Key of the digest of the version of the same segment that a file took the place of.
const BEFORE_KEY: &str = "whylate.before";

/// Most rows of a file, written or read. A reader holds all of them in memory.
pub(super) const MOST_ROWS: usize = 1 << 18;

/// Rows of one kind, collected for a segment.
pub(super) trait Rows: Default {
    type Row;

    /// First part of the file's name.
    const KIND: &'static str;
    /// The columns, in the order in which they are written and read.
    const SCHEMA: &'static str;
    /// Columns of ticks, which mostly rise from row to row.
    const RISING: &'static [&'static str];

    fn push(&mut self, row: &Self::Row);
    /// Rows pushed since the last `clear`.
    fn len(&self) -> usize;
    /// Do the rows take more memory than their number tells?
    fn heavy(&self) -> bool {
        false
    }
    /// First and last tick of a row.
    fn span(row: &Self::Row) -> (Ticks, Ticks);
    fn clear(&mut self);
    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()>;
    fn read(columns: &mut Columns<'_>) -> Result<Vec<Self::Row>>;
}

/// The file that holds `rows`, in the place of one that had the digest `before`.
pub(super) fn encode<R: Rows>(rows: &R, epoch: Ticks, before: Option<Digest>) -> Result<Vec<u8>> {
    let mut metadata = vec![
        KeyValue::new(VERSION_KEY.to_owned(), TABLES_VERSION.to_string()),
        KeyValue::new(EPOCH_KEY.to_owned(), epoch.0.to_string()),
    ];
    metadata.extend(before.map(|of| KeyValue::new(BEFORE_KEY.to_owned(), of.to_string())));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("whylate {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata))
        .set_offset_index_disabled(true)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::Chunk);
    for name in R::RISING {
        let column = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let mut file =
        SerializedFileWriter::new(Vec::new(), schema::<R>()?, Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    rows.write(&mut group)?;
    group.close()?;
    file.into_inner()
}

/// The rows of a segment whose content is `file`; `path` names it in errors.
pub(super) fn decode<R: Rows>(
    path: &Path,
    file: Vec<u8>,
) -> std::result::Result<Vec<R::Row>, ModelError> {
    let mut rows = Vec::new();
    decode_by::<R>(path, file, &mut |columns| {
        rows.append(&mut R::read(columns)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Has `read` take in each row group of such a segment.
pub(super) fn decode_by<R: Rows>(
    path: &Path,
    file: Vec<u8>,
    read: &mut dyn FnMut(&mut Columns<'_>) -> Result<()>,
) -> std::result::Result<(), ModelError> {
    let file = Bytes::from(file);
    let broken = |why: ParquetError| ModelError::malformed(path, why.to_string());
    pages::check_frame(path, &file)?;
    let reader = guarded(|| SerializedFileReader::new(file.clone())).map_err(broken)?;
    check_version(path, reader.metadata())?;
    let wanted = SchemaDescriptor::new(schema::<R>().map_err(broken)?);
    let places = places::places(&wanted, reader.metadata().file_metadata().schema_descr())
        .map_err(|what| {
            ModelError::malformed(path, format!("its columns are not those of {}: {what}", R::KIND))
        })?;
    pages::check_columns(reader.metadata(), &file).map_err(broken)?;
    guarded(|| read_groups(&reader, &places, read)).map_err(broken)
}

fn read_groups(
    reader: &SerializedFileReader<Bytes>,
    places: &[Place],
    read: &mut dyn FnMut(&mut Columns<'_>) -> Result<()>,
) -> Result<()> {
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let count = group.metadata().num_rows() as usize;
        read(&mut Columns::new(&*group, count, places))?;
    }
    Ok(())
}

/// A value that no writer writes.
pub(super) fn bad_value(column: &str) -> ParquetError {
    ParquetError::General(format!("column `{column}` holds a value that it cannot have"))
}

fn schema<R: Rows>() -> Result<TypePtr> {
    parse_message_type(R::SCHEMA).map(Arc::new)
}

/// Does this segment go on from the version of it that has this digest? What a run that was killed wrote
/// after its last checkpoint does.
pub(crate) fn goes_on_from(path: &Path, file: Vec<u8>, before: Digest) -> bool {
    let file = Bytes::from(file);
    let reader = pages::check_frame(path, &file)
        .ok()
        .and_then(|()| guarded(|| SerializedFileReader::new(file)).ok());
    let before = before.to_string();
    reader.is_some_and(|reader| value_of(reader.metadata(), BEFORE_KEY) == Some(&before))
}

fn value_of<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

fn check_version(path: &Path, metadata: &ParquetMetaData) -> std::result::Result<(), ModelError> {
    // A table that another tool wrote may state none: it is read by its types.
    let Some(version) = value_of(metadata, VERSION_KEY) else { return Ok(()) };
    match version.parse::<u32>().ok() {
        None | Some(0) => Err(ModelError::malformed(path, "it states no format version")),
        Some(found) if found > TABLES_VERSION => {
            Err(ModelError::NewerFormat { path: path.to_owned(), found, newest: TABLES_VERSION })
        }
        Some(_) => Ok(()),
    }
}
