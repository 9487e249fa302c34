//! The text of `events/SYSTEM/EVENT/format`: where the fields of an event lie in its record.
//!
//! Only what decoding needs is kept: name, number, fields, and the print format as one string.

use crate::error::TraceError;

/// The longest format text that is read. The longest of a 6.18 kernel has 6 KiB.
const LONGEST_FORMAT: usize = 1 << 20;
/// The most fields one event may have. Kernels have at most about 40.
const MOST_FIELDS: usize = 512;
/// A record lies within one sub-buffer, so nothing in it lies further out than this.
const FURTHEST_BYTE: u32 = 1 << 20;

/// The most values of a field that are known by name. The longest table of a 6.18 kernel, why a
/// frame was dropped, has about 120.
const MOST_NAMES: usize = 512;

/// The format of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Name of the event, without its system.
    pub name: String,
    /// Number of the event: the value of `common_type` in its records. It changes from boot to
    /// boot where modules are loaded.
    pub id: u16,
    /// All fields, those common to all events first.
    pub fields: Vec<Field>,
    /// The part behind `print fmt:`, empty where there is none.
    pub print_format: String,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Where the value lies, seen from the field.
    pub storage: Storage,
    /// First byte in the record.
    pub offset: u32,
    /// Bytes in the record. For values that lie elsewhere, the bytes of the pointer to them.
    pub size: u32,
    /// A negative value is possible.
    pub signed: bool,
}

/// Where the value of a field lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the field: one number or pointer.
    Scalar,
    /// In the field: an array of fixed length.
    Array,
    /// Elsewhere in the record, counted from the record's start (`__data_loc`).
    DataLoc,
    /// Elsewhere in the record, counted from the field's end (`__rel_loc`).
    RelLoc,
}

impl EventFormat {
    /// Reads the text of one `format` file.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        if text.len() > LONGEST_FORMAT {
            return Err(TraceError::FormatTooLong { bytes: text.len(), limit: LONGEST_FORMAT });
        }
        let mut name = None;
        let mut id = None;
        let mut fields: Vec<Field> = Vec::new();
        let mut print_format = String::new();
        let mut lines = 0;
        for (index, line) in text.lines().enumerate() {
            lines = index + 1;
            let malformed = |why| TraceError::FormatMalformed { line: lines, why };
            let line = line.trim();
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("ID:") {
                let number = value.trim().parse();
                id = Some(number.map_err(|_| malformed("the number is not one of 16 bits"))?);
            } else if let Some(value) = line.strip_prefix("field:") {
                let field = Field::parse(value).map_err(malformed)?;
                if fields.len() == MOST_FIELDS {
                    return Err(malformed("more fields than any event has"));
                }
                if fields.iter().any(|other| other.name == field.name) {
                    return Err(malformed("a second field of the same name"));
                }
                fields.push(field);
            } else if let Some(value) = line.strip_prefix("print fmt:") {
                value.trim().clone_into(&mut print_format);
            }
        }
        let lacks = |why| TraceError::FormatMalformed { line: lines + 1, why };
        let name = name.filter(|name| !name.is_empty()).ok_or(lacks("no `name:`"))?;
        let id = id.ok_or(lacks("no `ID:`"))?;
        Ok(Self { name, id, fields, print_format })
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The bits that the print format gives a name to when it prints `field` as flags; `None`
    /// where it does not print it so.
    pub(crate) fn named_flags(&self, field: &str) -> Option<u64> {
        let flags = self.print_format.split("__print_flags(REC->").skip(1).find(|flags| {
            flags.strip_prefix(field).is_some_and(|rest| !rest.starts_with(in_identifier))
        })?;
        let table = flags.split("})").next()?;
        let mut values = table.split('{').skip(1).peekable();
        values.peek()?;
        values.try_fold(0, |all, value| Some(all | parse_number(value.split(',').next()?.trim())?))
    }

    /// The values that the print format gives a name to when it prints `field` as one of several;
    /// empty where it does not print it so.
    pub(crate) fn named_values(&self, field: &str) -> Vec<(u64, String)> {
        let named = self.print_format.split("__print_symbolic(REC->").skip(1).find(|named| {
            named.strip_prefix(field).is_some_and(|rest| !rest.starts_with(in_identifier))
        });
        let table = named.and_then(|named| named.split("})").next()).unwrap_or_default();
        let pair = |text: &str| {
            let (value, name) = text.split_once(',')?;
            let name = name.split('"').nth(1)?;
            Some((parse_number(value.trim())?, name.to_owned()))
        };
        table.split('{').skip(1).take(MOST_NAMES).filter_map(pair).collect()
    }
}

impl Field {
    /// Reads the part of a line behind `field:`, also used by the page's own header.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next().ok_or("a field without a declaration")?;
        let (mut offset, mut size, mut signed) = (None, None, None);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", value)) => offset = value.parse().ok(),
                Some(("size", value)) => size = value.parse().ok(),
                Some(("signed", value)) => signed = Some(value != "0"),
                _ => {}
            }
        }
        let offset: u32 = offset.ok_or("a field without an offset")?;
        let size: u32 = size.ok_or("a field without a size")?;
        if offset.checked_add(size).is_none_or(|end| end > FURTHEST_BYTE) {
            return Err("a field further out than a record reaches");
        }
        let (name, storage) = declared(declaration)?;
        // Kernels before 2.6.30 did not say; those had only unsigned types there.
        Ok(Self { name: name.to_owned(), storage, offset, size, signed: signed.unwrap_or(false) })
    }
}

/// Name and storage from a C declaration such as `char comm[16]` or `__data_loc char[] name`.
fn declared(declaration: &str) -> Result<(&str, Storage), &'static str> {
    let (rest, is_array) = match declaration.strip_suffix(']').and_then(|d| d.rsplit_once('[')) {
        Some((rest, _length)) => (rest.trim_end(), true),
        None => (declaration, false),
    };
    let kind = rest.trim_end_matches(in_identifier);
    let name = &rest[kind.len()..];
    if name.is_empty() || kind.trim().is_empty() {
        return Err("a field whose declaration has no type or no name");
    }
    let storage = match kind.split_whitespace().next() {
        Some("__data_loc") => Storage::DataLoc,
        Some("__rel_loc") => Storage::RelLoc,
        _ if is_array => Storage::Array,
        _ => Storage::Scalar,
    };
    Ok((name, storage))
}

fn in_identifier(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
