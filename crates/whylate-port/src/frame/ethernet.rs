//! The link's header: addresses, tags, what is carried.

use crate::frame::{Defect, Mac, Tag, TagKind, Tags};

/// A link's header and what it carries. Where the frame was padded to its shortest length, the
/// padding is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet<'a> {
    /// To whom.
    pub destination: Mac,
    /// From whom.
    pub source: Mac,
    /// In which networks.
    pub tags: Tags,
    /// EtherType of what it carries.
    pub kind: u16,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Ethernet<'a> {
    /// Reads it; `stripped` is the outer tag where the kernel took it out.
    #[inline]
    pub fn parse(bytes: &'a [u8], stripped: Option<Tag>) -> Result<Self, Defect> {
        let short = Defect::Truncated("Ethernet");
        let (destination, rest) = bytes.split_first_chunk::<6>().ok_or(short)?;
        let (source, mut rest) = rest.split_first_chunk::<6>().ok_or(short)?;
        let mut tags = Tags::default();
        if let Some(tag) = stripped {
            tags = tags.and(tag).ok_or(Defect::TooManyTags)?;
        }
        let kind = loop {
            let (number, after) = rest.split_first_chunk::<2>().ok_or(short)?;
            rest = after;
            let number = u16::from_be_bytes(*number);
            let Some(kind) = TagKind::of(number) else { break number };
            let (control, after) = rest.split_first_chunk::<2>().ok_or(short)?;
            rest = after;
            let tag = Tag { kind, control: u16::from_be_bytes(*control) };
            tags = tags.and(tag).ok_or(Defect::TooManyTags)?;
        };
        let (destination, source) = (Mac(*destination), Mac(*source));
        Ok(Self { destination, source, tags, kind, payload: rest })
    }
}

/// Writes a link's header to the front of `frame`; how many bytes it took. What does not fit is left
/// out, and the length tells.
#[must_use]
pub fn write_link(frame: &mut [u8], to: Mac, from: Mac, tags: Tags, kind: u16) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(place) = frame.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
            at += bytes.len();
        }
    };
    put(&to.0);
    put(&from.0);
    for tag in tags.iter() {
        put(&tag.bytes());
    }
    put(&kind.to_be_bytes());
    at
}
