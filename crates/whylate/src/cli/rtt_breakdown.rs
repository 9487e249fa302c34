//! Where requests spend their time, in words: `stamps,trace,told`.

use std::fmt;
use std::str::FromStr;

use clap::Args;

use super::TapArgs;

/// What whoever names none is given.
const USUAL: &str = "stamps,trace,told,tap";

/// Where requests spend their time.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where requests spend their time")]
pub(crate) struct RttBreakdown {
    /// Take each request apart into application, stack, driver, wire, other end and wake-up, from
    /// these sources: stamps (kernel timestamps at the sockets), trace (kernel tracepoints, as
    /// root), told (readings of the reflector that whylate starts), tap (that of the test network,
    /// where it has one)
    #[arg(
        help = "Where requests spend time: stamps,trace,told,tap",
        long_help,
        long,
        value_name = "SOURCES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = USUAL,
        conflicts_with_all = ["compare_backends", "one_way"]
    )]
    pub(crate) breakdown: Option<SourceList>,
    /// What a tap between both ends writes.
    #[command(flatten)]
    pub(crate) tap: TapArgs,
    /// Take a transmit timestamp of one in this many requests: cards have one or four registers for
    /// it
    #[arg(
        help = "Take a transmit timestamp of one request in N",
        long_help,
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "breakdown",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) stamp_every: u32,
    /// Measure the cost of the breakdown: afterwards, for as long again, rounds of the same
    /// requests unobserved, with timestamps, with the trace and with both, in turns; every second
    /// round in reverse order
    #[arg(
        help = "Measure the cost of the breakdown afterwards",
        long_help,
        long,
        requires = "breakdown",
        conflicts_with = "runs",
        group = "in_rounds"
    )]
    pub(crate) breakdown_cost: bool,
}

/// Who tells of requests, each named once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each source is named or not, by itself")]
pub(crate) struct SourceList {
    pub(crate) stamps: bool,
    pub(crate) trace: bool,
    pub(crate) told: bool,
    pub(crate) tap: bool,
}

impl FromStr for SourceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for word in text.split(',').map(str::trim) {
            let place = match word {
                "stamps" => &mut list.stamps,
                "trace" => &mut list.trace,
                "told" => &mut list.told,
                "tap" => &mut list.tap,
                _ => {
                    return Err(format!(
                        "`{word}` is not a source: use stamps, trace, told or tap"
                    ));
                }
            };
            if *place {
                return Err(format!("`{word}` is there twice"));
            }
            *place = true;
        }
        Ok(list)
    }
}

impl fmt::Display for SourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.stamps, "stamps"),
            (self.trace, "trace"),
            (self.told, "told"),
            (self.tap, "tap"),
        ];
        let named: Vec<&str> = all.iter().filter(|(on, _)| *on).map(|(_, word)| *word).collect();
        f.write_str(&named.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_named_once_each_and_what_is_none_is_refused_by_name() {
        let read = |text: &str| text.parse::<SourceList>();
        let all = SourceList { stamps: true, trace: true, told: true, tap: true };
        assert_eq!(read(USUAL), Ok(all));
        assert_eq!(read(" trace "), Ok(SourceList { trace: true, ..SourceList::default() }));
        assert_eq!(read("told,stamps").unwrap().to_string(), "stamps,told");
        for (text, part) in [
            ("", "`` is not a source"),
            ("stamps,", "`` is not a source"),
            ("trace,trace", "`trace` is there twice"),
            ("hardware", "use stamps, trace, told or tap"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
