//! Settings of a recording, as used: each a value of its own kind, and in words only where it is shown.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::CpuList;
use crate::units::{CpuId, Nanos};

/// Settings by name.
pub type Settings = BTreeMap<String, Setting>;

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A length of time.
    TimeNs(Nanos),
    /// How many.
    Count(u64),
    /// Is it in force?
    On(bool),
    /// CPUs; an empty list where none is left for it.
    Cpus(Vec<CpuId>),
    /// A word or a sentence.
    Words(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeNs(time) => time.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::On(on) => f.pad(if *on { "yes" } else { "no" }),
            Self::Cpus(cpus) if cpus.is_empty() => f.pad("none left"),
            Self::Cpus(cpus) => CpuList(cpus).fmt(f),
            Self::Words(words) => f.pad(words),
        }
    }
}

impl Setting {
    /// What version 1 stored in words, as far as they say exactly what it was.
    pub(crate) fn of_words(name: &str, words: &str) -> Self {
        let number = words.parse::<u64>().ok().filter(|number| number.to_string() == words);
        match (words, number) {
            ("yes", _) => Self::On(true),
            ("no", _) => Self::On(false),
            (_, Some(number)) if CPUS.contains(&name) => match u32::try_from(number) {
                Ok(cpu) => Self::Cpus(vec![CpuId(cpu)]),
                Err(_) => Self::Words(words.to_owned()),
            },
            (_, Some(number)) => Self::Count(number),
            (_, None) => Self::Words(words.to_owned()),
        }
    }
}

/// Settings that are CPUs.
const CPUS: [&str; 2] = ["cpu", "housekeeping"];

macro_rules! from {
    ($($kind:ty => $arm:expr),+ $(,)?) => {
        $(impl From<$kind> for Setting {
            fn from(value: $kind) -> Self {
                $arm(value)
            }
        })+
    };
}

from! {
    Nanos => Self::TimeNs,
    u64 => Self::Count,
    bool => Self::On,
    String => Self::Words,
    Vec<CpuId> => Self::Cpus,
}

impl From<&str> for Setting {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<usize> for Setting {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<u32> for Setting {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_in_words_reads_as_it_did_and_is_a_value_where_that_is_exact() {
        let cases = [
            ("hold idle states", "yes", Setting::On(true)),
            ("move tasks", "no", Setting::On(false)),
            ("competitors", "3", Setting::Count(3)),
            ("housekeeping", "0", Setting::Cpus(vec![CpuId(0)])),
            ("housekeeping", "none left", "none left".into()),
            // It was rounded to three digits.
            ("duration", "1.60s", "1.60s".into()),
            ("records", "007", "007".into()),
            ("cpu", "99999999999", "99999999999".into()),
        ];
        for (name, words, expected) in cases {
            let setting = Setting::of_words(name, words);
            assert_eq!(setting, expected, "{name}");
            assert_eq!(setting.to_string(), words, "{name}");
        }
    }

    #[test]
    fn a_setting_is_stored_with_its_kind_and_its_unit() {
        let stored = |setting: Setting| serde_json::to_string(&setting).unwrap();
        assert_eq!(stored(Nanos(1_000).into()), "{\"time_ns\":1000}");
        assert_eq!(stored(true.into()), "{\"on\":true}");
        assert_eq!(stored(vec![CpuId(3)].into()), "{\"cpus\":[3]}");
        assert_eq!(stored(7_u64.into()), "{\"count\":7}");
    }
}
