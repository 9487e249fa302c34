//! The name of a network interface, in place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest name of an interface (`IFNAMSIZ` less the zero behind it).
const LONGEST: usize = 15;

/// The name of a network interface. A name costs no allocation: there is one in most events of the
/// network, and these come by the hundred thousand a second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct DeviceName {
    bytes: [u8; LONGEST],
    length: u8,
}

impl DeviceName {
    /// From the bytes up to the first zero; what no interface can have behind that is left out.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(LONGEST);
        let mut name = Self { length: end as u8, ..Self::default() };
        name.bytes[..end].copy_from_slice(&bytes[..end]);
        name
    }

    /// As text; empty where it is none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl From<&str> for DeviceName {
    fn from(name: &str) -> Self {
        Self::from_bytes(name.as_bytes())
    }
}

impl From<String> for DeviceName {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for DeviceName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DeviceName".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_are_kept_in_place_and_what_cannot_be_one_is_cut() {
        for (bytes, text) in [
            (&b"lo\0\0"[..], "lo"),
            (b"", ""),
            (b"fifteen-letters", "fifteen-letters"),
            (b"fifteen-letters-and-more", "fifteen-letters"),
            (b"\xff\xfe", ""),
        ] {
            assert_eq!(DeviceName::from_bytes(bytes).as_str(), text);
        }
        let name = DeviceName::from("veth0");
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(text, "\"veth0\"");
        assert_eq!(serde_json::from_str::<DeviceName>(&text).unwrap(), name);
    }
}
