//! Digests of the files of a run: a file that was damaged, changed or mixed up is noticed when it is read.
//!
//! XXH3 of 128 bits, by <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>: it finds damage
//! and mix-ups, and is no seal against somebody who means to deceive.
//!
//! `run.json`, and the `paper.json` of a repeated paper, hold their own: each begins with the field `digest_kind` and ends with the
//! field `digest`, which is that of all bytes before it. A changed byte can hide one of the two names, never both.

use std::fmt;
use std::io::{self, Read};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

/// Bytes that are read at once.
const PIECE: usize = 1 << 18;
/// Characters of a digest.
const LENGTH: usize = 32;

/// How a file with its own digest begins.
const HEAD: &[u8] = b"{\n  \"digest_kind\": \"XXH3-128\",\n";
/// What stands before its digest.
const BEFORE: &[u8] = b",\n  \"digest\": \"";
/// What stands behind it.
const BEHIND: &[u8] = b"\"\n}\n";
/// How JSON of an object begins and ends where it has no digest.
const OPENING: &[u8] = b"{\n";
const CLOSING: &[u8] = b"\n}";

/// The digest of some bytes; 32 hexadecimal digits where it is written.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Digest(u128);

impl Digest {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::oneshot(bytes))
    }

    /// That of all that can be read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let (mut digesting, mut piece) = (Digesting::default(), vec![0; PIECE]);
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(digesting.digest()),
                Ok(length) => digesting.add(&piece[..length]),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let digits = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let text = str::from_utf8(text).ok()?;
        let fits = text.len() == LENGTH && text.as_bytes().iter().all(digits);
        fits.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(text.as_bytes())
            .ok_or_else(|| format!("a digest has {LENGTH} hexadecimal digits, in small letters"))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// The digest of bytes that come one after another.
#[derive(Clone)]
pub(crate) struct Digesting(Hasher);

impl Default for Digesting {
    fn default() -> Self {
        Self(Hasher::new())
    }
}

impl Digesting {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// That of all so far.
    pub(crate) fn digest(&self) -> Digest {
        Digest(self.0.finish_128())
    }
}

impl fmt::Debug for Digesting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.digest(), f)
    }
}

/// Is a file that may hold its own digest as it was written?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// It is.
    Whole,
    /// It has a digest, and that of another content.
    Changed,
    /// It has none.
    No,
}

/// The pretty JSON of an object with its digest in it.
pub(crate) fn seal(json: &[u8]) -> Vec<u8> {
    let fields = json.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(CLOSING));
    let fields = fields.expect("invariant: what is sealed has fields, and its JSON is pretty");
    let mut sealed = [HEAD, fields, BEFORE].concat();
    let digest = Digest::of(&sealed);
    sealed.extend(digest.to_string().into_bytes());
    sealed.extend(BEHIND);
    sealed
}

/// Has the content of a file a digest, and is it that of what it holds?
pub(crate) fn sealed(json: &[u8]) -> Sealed {
    #[derive(Deserialize)]
    struct Names {
        digest_kind: Option<IgnoredAny>,
        digest: Option<IgnoredAny>,
    }
    let whole = || {
        let body = json.strip_suffix(BEHIND)?;
        let (before, digest) = body.split_at_checked(body.len().checked_sub(LENGTH)?)?;
        let framed = before.starts_with(HEAD) && before.ends_with(BEFORE);
        (framed && Digest::parse(digest)? == Digest::of(before)).then_some(())
    };
    if whole().is_some() {
        return Sealed::Whole;
    }
    match serde_json::from_slice(json) {
        Ok(Names { digest_kind: None, digest: None }) => Sealed::No,
        _ => Sealed::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of XXH3: nothing at all, by the default secret.
    #[test]
    fn a_digest_is_that_of_xxh3() {
        let nothing = "99aa06d3014798d86001c324468d497f";
        assert_eq!(Digest::of(b"").to_string(), nothing);
        let mut digesting = Digesting::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(700_000).collect();
        for piece in bytes.chunks(999) {
            digesting.add(piece);
        }
        assert_eq!(digesting.digest(), Digest::of(&bytes));
        assert_eq!(Digest::read(&bytes[..]).unwrap(), Digest::of(&bytes));
    }

    #[test]
    fn a_digest_is_read_as_it_is_written_and_nothing_else_is_one() {
        let digest = Digest::of(b"some");
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
        for other in ["", "12", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33)] {
            assert!(serde_json::from_str::<Digest>(&format!("\"{other}\"")).is_err(), "{other}");
        }
    }

    #[test]
    fn every_other_byte_in_a_sealed_file_is_noticed_or_makes_it_no_json() {
        let json = serde_json::json!({ "seed": 7, "words": ["a b", "c"], "share": 0.25 });
        let whole = seal(&serde_json::to_vec_pretty(&json).unwrap());
        assert_eq!(sealed(&whole), Sealed::Whole);
        for place in 0..whole.len() {
            for byte in 0..=255 {
                let mut changed = whole.clone();
                changed[place] = byte;
                let expected = if changed == whole { Sealed::Whole } else { Sealed::Changed };
                assert_eq!(sealed(&changed), expected, "{place}: {byte}");
            }
        }
        assert_eq!(sealed(&serde_json::to_vec_pretty(&json).unwrap()), Sealed::No);
        assert_eq!(sealed(json.to_string().as_bytes()), Sealed::No);
    }
}
