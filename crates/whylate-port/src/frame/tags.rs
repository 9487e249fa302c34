//! VLAN tags (IEEE 802.1Q), one or two.

use std::fmt;
use std::str::FromStr;

/// Bits of a tag that are the network's number; the upper four are priority and drop eligibility.
const ID: u16 = 0x0fff;
/// The highest number of a network; 4095 is reserved.
const MOST: u16 = 4_094;

/// Which kind of tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagKind {
    /// Of a customer, the usual one (0x8100).
    Customer,
    /// Of a provider, outside of the customer's (0x88a8, IEEE 802.1ad).
    Service,
}

impl TagKind {
    /// Its EtherType.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Customer => 0x8100,
            Self::Service => 0x88a8,
        }
    }

    /// The kind of this EtherType; none where it is no tag's.
    #[must_use]
    #[inline]
    pub fn of(number: u16) -> Option<Self> {
        match number {
            0x8100 => Some(Self::Customer),
            0x88a8 => Some(Self::Service),
            _ => None,
        }
    }
}

/// One tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Which kind.
    pub kind: TagKind,
    /// Priority (3 bits), drop eligibility (1), number of the network (12).
    pub control: u16,
}

impl Tag {
    /// The number of the network; 0 stands for none, and the tag then carries a priority only.
    #[must_use]
    #[inline]
    pub fn id(self) -> u16 {
        self.control & ID
    }

    /// As it stands in a frame: kind and control.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.kind.number().to_be_bytes(), self.control.to_be_bytes());
        [a, b, c, d]
    }
}

/// No tag, one, or two with the outer one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags {
    outer: Option<Tag>,
    inner: Option<Tag>,
}

impl Tags {
    /// One tag of a customer.
    #[must_use]
    pub fn one(id: u16) -> Self {
        let tag = Tag { kind: TagKind::Customer, control: id & ID };
        Self { outer: Some(tag), inner: None }
    }

    /// A provider's tag, and a customer's within.
    #[must_use]
    pub fn two(outer: u16, inner: u16) -> Self {
        let outer = Tag { kind: TagKind::Service, control: outer & ID };
        Self { outer: Some(outer), inner: Self::one(inner).outer }
    }

    /// One more, inside of those there are; none where there is no room.
    #[must_use]
    #[inline]
    pub fn and(self, tag: Tag) -> Option<Self> {
        match self {
            Self { outer: None, .. } => Some(Self { outer: Some(tag), inner: None }),
            Self { inner: None, .. } => Some(Self { inner: Some(tag), ..self }),
            _ => None,
        }
    }

    /// How many.
    #[must_use]
    #[inline]
    pub fn count(self) -> usize {
        usize::from(self.outer.is_some()) + usize::from(self.inner.is_some())
    }

    /// Each, the outer one first.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        self.outer.into_iter().chain(self.inner)
    }

    /// Do both name the same networks? Priorities do not matter, nor tags that carry nothing else.
    #[must_use]
    #[inline]
    pub fn same_network(self, other: Self) -> bool {
        self.networks() == other.networks()
    }

    fn networks(self) -> [u16; 2] {
        let id = |tag: Option<Tag>| tag.map_or(0, Tag::id);
        match [id(self.outer), id(self.inner)] {
            [0, inner] => [inner, 0],
            both => both,
        }
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.iter().map(|tag| tag.id().to_string()).collect();
        f.pad(&ids.join("."))
    }
}

/// Text that names no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a VLAN: use a number from 1 to 4094, or two as OUTER.INNER")]
pub struct NoTags(String);

impl FromStr for Tags {
    type Err = NoTags;

    fn from_str(text: &str) -> Result<Self, NoTags> {
        let none = || NoTags(text.chars().take(40).flat_map(char::escape_default).collect());
        let id = |part: &str| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            let id = part.parse::<u16>().ok().filter(|id| digits && (1..=MOST).contains(id));
            id.ok_or_else(none)
        };
        match text.split_once('.') {
            None => Ok(Self::one(id(text)?)),
            Some((outer, inner)) => Ok(Self::two(id(outer)?, id(inner)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_they_are_shown() {
        for (text, count) in [("1", 1), ("4094", 1), ("100.7", 2)] {
            let tags: Tags = text.parse().unwrap();
            assert_eq!((tags.to_string(), tags.count()), (text.to_owned(), count));
        }
        for wrong in ["", "0", "4095", "1.", "1.2.3", "+5", "1.0", "x"] {
            assert!(wrong.parse::<Tags>().is_err(), "{wrong}");
        }
        let outer = Tags::two(100, 7).iter().next().unwrap();
        assert_eq!(outer.bytes(), [0x88, 0xa8, 0, 100]);
    }

    #[test]
    fn priorities_do_not_make_another_network_and_numbers_do() {
        let urgent = Tag { kind: TagKind::Customer, control: 0xe000 | 7 };
        let only_urgent = Tag { kind: TagKind::Customer, control: 0xe000 };
        let none = Tags::default();
        assert!(none.and(urgent).unwrap().same_network(Tags::one(7)));
        assert!(none.and(only_urgent).unwrap().same_network(none));
        assert!(none.and(only_urgent).unwrap().and(urgent).unwrap().same_network(Tags::one(7)));
        assert!(!Tags::one(7).same_network(Tags::one(8)));
        assert!(!Tags::one(7).same_network(none) && !Tags::two(1, 7).same_network(Tags::one(7)));
        assert!(Tags::two(1, 7).and(urgent).is_none());
    }
}
