//! Fields found once and read many times: a place in a record, and how to take the value there.
//!
//! Reading allocates nothing and gives `None` where the record is too short.

use whylate_model::CpuId;
use whylate_model::event::DeviceName;

use crate::error::TraceError;
use crate::format::{EventFormat, Field, Storage};

/// The most bytes of a CPU mask that are read: kernels are built for at most 8192 CPUs.
const LARGEST_MASK: usize = 8192 / 8;

/// A whole number in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    offset: usize,
    width: Width,
    signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Number {
    /// The field of that name, which has to be a number.
    pub(crate) fn of(format: &EventFormat, name: &'static str) -> Result<Self, TraceError> {
        let field = find(format, name)?;
        if field.storage != Storage::Scalar {
            return Err(unfit(format, name, "is no single number"));
        }
        let width = match field.size {
            1 => Width::One,
            2 => Width::Two,
            4 => Width::Four,
            8 => Width::Eight,
            _ => return Err(unfit(format, name, "has a size that no number has")),
        };
        Ok(Self { offset: field.offset as usize, width, signed: field.signed })
    }

    /// The same where a kernel may lack the field.
    pub(crate) fn of_optional(
        format: &EventFormat,
        name: &'static str,
    ) -> Result<Option<Self>, TraceError> {
        format.field(name).map(|_| Self::of(format, name)).transpose()
    }

    /// The number, extended to 64 bits by its sign where it has one.
    #[inline]
    pub(crate) fn read(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..)?;
        Some(match (self.width, self.signed) {
            (Width::One, false) => u64::from(*bytes.first()?),
            (Width::One, true) => i64::from(*bytes.first()? as i8) as u64,
            (Width::Two, false) => u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            (Width::Two, true) => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)) as u64,
            (Width::Four, false) => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            (Width::Four, true) => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)) as u64,
            (Width::Eight, _) => u64::from_le_bytes(*bytes.first_chunk()?),
        })
    }

    /// The number where it is known to fit 32 bits, as thread ids, priorities and CPUs do.
    #[inline]
    pub(crate) fn read_i32(self, record: &[u8]) -> Option<i32> {
        self.read(record).map(|value| value as i32)
    }

    /// The number as a CPU.
    #[inline]
    pub(crate) fn read_cpu(self, record: &[u8]) -> Option<CpuId> {
        self.read(record).map(|value| CpuId(value as u32))
    }
}

/// Bytes in a record: an array in the field, or one that the field points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Of fixed length, here.
    Here { offset: usize, size: usize },
    /// The field holds length (high 16 bits) and place (low 16 bits), which counts from `base`.
    Elsewhere { offset: usize, base: usize },
}

impl Bytes {
    /// The field of that name, which has to hold an array.
    pub(crate) fn of(format: &EventFormat, name: &'static str) -> Result<Self, TraceError> {
        let field = find(format, name)?;
        let (offset, size) = (field.offset as usize, field.size as usize);
        let base = match field.storage {
            Storage::Array => return Ok(Self::Here { offset, size }),
            Storage::DataLoc => 0,
            Storage::RelLoc => offset + size,
            Storage::Scalar => return Err(unfit(format, name, "is a single number")),
        };
        if size != 4 {
            return Err(unfit(format, name, "points elsewhere with other than 4 bytes"));
        }
        Ok(Self::Elsewhere { offset, base })
    }

    /// The bytes.
    #[inline]
    pub(crate) fn read(self, record: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Here { offset, size } => record.get(offset..offset + size),
            Self::Elsewhere { offset, base } => {
                let word = u32::from_le_bytes(*record.get(offset..)?.first_chunk()?);
                let start = base + (word & 0xffff) as usize;
                record.get(start..start + (word >> 16) as usize)
            }
        }
    }

    /// The bytes up to the first zero, as text. What is not UTF-8 is replaced: a thread may call
    /// itself anything.
    #[inline]
    pub(crate) fn read_text(self, record: &[u8]) -> Option<String> {
        let bytes = self.read(record)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// The bytes up to the first zero, as the name of an interface.
    #[inline]
    pub(crate) fn read_device(self, record: &[u8]) -> Option<DeviceName> {
        self.read(record).map(DeviceName::from_bytes)
    }

    /// The bits set, lowest first; `None` as well where the mask is larger than any kernel's.
    pub(crate) fn read_mask(self, record: &[u8]) -> Option<Vec<CpuId>> {
        let bytes = self.read(record)?;
        if bytes.len() > LARGEST_MASK {
            return None;
        }
        let set = |(index, byte): (usize, &u8)| {
            let byte = *byte;
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| index as u32 * 8 + bit)
        };
        Some(bytes.iter().enumerate().flat_map(set).map(CpuId).collect())
    }
}

fn find<'a>(format: &'a EventFormat, name: &'static str) -> Result<&'a Field, TraceError> {
    format
        .field(name)
        .ok_or_else(|| TraceError::FieldMissing { event: format.name.clone(), field: name })
}

fn unfit(format: &EventFormat, field: &'static str, why: &'static str) -> TraceError {
    TraceError::FieldUnfit { event: format.name.clone(), field, why }
}
