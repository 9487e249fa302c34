//! Addresses of Ethernet.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// A hardware address: six bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mac(pub [u8; 6]);

/// Text that is no hardware address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no hardware address: six bytes like 02:00:00:00:00:01")]
pub struct NoMac(String);

impl Mac {
    /// Everybody on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// Nobody, or not known.
    pub const NONE: Self = Self([0; 6]);

    /// Is it for several receivers?
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The group of the link that stands for this group of IPv6 (RFC 2464, section 7).
    #[must_use]
    pub fn of_group(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl FromStr for Mac {
    type Err = NoMac;

    fn from_str(text: &str) -> Result<Self, NoMac> {
        let none = || NoMac(text.chars().take(40).flat_map(char::escape_default).collect());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
            let part = part.filter(|part| part.bytes().all(|b| b.is_ascii_hexdigit()));
            *byte = part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or_else(none)?;
        }
        if parts.next().is_some() { Err(none()) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardware_address_is_read_as_it_is_shown_and_nothing_else_is() {
        let mac = Mac([2, 0xab, 0, 1, 0xff, 9]);
        assert_eq!(mac.to_string(), "02:ab:00:01:ff:09");
        assert_eq!(mac.to_string().parse(), Ok(mac));
        for wrong in ["", "02:00", "2:0:0:0:0:0:1", "02:00:00:00:00:0g", "+2:0:0:0:0:0"] {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
        let told = "\u{1b}[2J".parse::<Mac>().unwrap_err().to_string();
        assert!(told.chars().all(|c| !c.is_control()), "{told}");
    }

    #[test]
    fn groups_of_ipv6_are_groups_of_the_link() {
        let group = Mac::of_group("ff02::1:ff12:3456".parse().unwrap());
        assert_eq!(group.to_string(), "33:33:ff:12:34:56");
        assert!(group.is_group() && Mac::BROADCAST.is_group() && !Mac([2; 6]).is_group());
    }
}
