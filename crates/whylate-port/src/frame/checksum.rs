//! The checksum of the internet (RFC 1071): the complement of the ones' complement sum of all words.
//!
//! A sum can be taken in the machine's own byte order and turned round at the end (RFC 1071, 2.B),
//! and in any order: so a constant part is added up once and kept.

use std::net::IpAddr;

/// A sum under way, of words in the machine's own order. Room for 2^32 words of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// With these bytes; an odd one at the end counts as if a zero followed it. All that comes before
    /// must have had an even number of bytes.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(self.0 + sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// With a word of 16 bits.
    #[must_use]
    #[inline]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// The sum as 16 bits, in the machine's own meaning.
    #[must_use]
    #[inline]
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        // Each round takes 16 bits off: four rounds at most.
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::from_be(sum as u16)
    }

    /// The checksum: what makes the sum of everything all ones.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Is it right? The sum went over everything, the checksum included.
    #[must_use]
    #[inline]
    pub fn is_right(self) -> bool {
        self.folded() == 0xffff
    }
}

/// What UDP and ICMPv6 sum up beside themselves: addresses and protocol, without the length.
///
/// Both lengths, of IPv4's 16 and of IPv6's 32 bits, add the same to the sum.
#[must_use]
#[inline]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8) -> Sum {
    let sum = Sum::default().word(protocol.into());
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => sum.bytes(&from.octets()).bytes(&to.octets()),
        (IpAddr::V6(from), IpAddr::V6(to)) => sum.bytes(&from.octets()).bytes(&to.octets()),
        // No packet has one of each.
        _ => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Word by word, as the RFC has it.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_the_rfc_comes_out() {
        let sum = Sum::default().bytes(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.checksum()), (0xddf2, 0x220d));
    }

    #[test]
    fn sums_by_four_bytes_are_sums_by_two() {
        let bytes: Vec<u8> = (0..2_000_u32).map(|at| (at * 7 + at / 5) as u8).collect();
        for length in 0..bytes.len() {
            let sum = Sum::default().bytes(&bytes[..length]);
            assert_eq!(sum.folded(), plain(&bytes[..length]), "{length}");
            let even = length / 4 * 2;
            let parts = Sum::default().bytes(&bytes[..even]).bytes(&bytes[even..length]);
            assert_eq!(parts.folded(), sum.folded(), "{length} at {even}");
        }
        assert_eq!(Sum::default().word(0x1234).folded(), 0x1234);
        let full = vec![0xff; 65_535];
        assert_eq!(Sum::default().bytes(&full).folded(), plain(&full));
    }
}
