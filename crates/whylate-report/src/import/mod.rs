//! Result files of other tools, as distributions that stand beside those of this one.
//!
//! Guarantees: what a file counts in buckets stays in buckets, so that no value of it is told finer
//! than the file tells it; what a tool halves is called halved and is never doubled unasked; a file
//! that is not what it is said to be is refused with the line that shows it.
//!
//! Formats are those of the tools' own sources and output: sockperf 3.7 (`--full-log` and what it
//! prints), TRex (stateless statistics), MoonGen (`histogram:save`), Spirent TestCenter (the bins of
//! its stream results). Of Ixia's exports none could be checked: its edges and counts are taken in a
//! plain form.

mod buckets;
mod moongen;
mod sockperf;
mod spirent;
mod trex;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use whylate_model::{Nanos, Printable};

pub use buckets::{Buckets, Cell};
pub use sockperf::SockperfStretch;

/// Largest file that is read: some million lines of a log.
const MOST_BYTES: u64 = 512 << 20;
/// Characters of a file that a message repeats.
const MOST_SHOWN: usize = 40;

/// A reader of one tool's files.
pub trait Importer: Sync {
    /// Its word: `trex`.
    fn name(&self) -> &'static str;

    /// Do its files leave open in what unit they count?
    fn needs_unit(&self) -> bool {
        false
    }

    /// Reads a whole file; `unit_ns` is the unit of its edges in nanoseconds, where one was told.
    ///
    /// # Errors
    /// The first line that is not of this format, or that nothing is in the file.
    fn read(&self, text: &str, unit_ns: Option<f64>) -> Result<Vec<Imported>, ImportError>;
}

/// All of them, in the order in which they are named.
pub const IMPORTERS: [&dyn Importer; 5] =
    [&sockperf::Sockperf, &trex::Trex, &moongen::Moongen, &spirent::Spirent, &spirent::Ixia];

/// A distribution of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The tool, and which of several in one file.
    pub label: String,
    /// What its numbers are.
    pub measures: Measures,
    /// Values closer than this are not told apart, in nanoseconds.
    pub granularity_ns: f64,
    /// What was counted; empty where the file has percentiles alone.
    pub buckets: Buckets,
    /// Percentiles that the tool computed itself, in ascending order: percent and nanoseconds.
    pub stated: Vec<(f64, f64)>,
    /// Samples that those rest on, where it says; else those of the buckets.
    pub samples: Option<u64>,
    /// What else there is to know, a sentence each.
    pub notes: Vec<String>,
}

/// What a tool's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measures {
    /// From sending to receiving, by ports of one clock.
    OneWay,
    /// From a request to its reply.
    RoundTrip,
    /// Half of that: the tool divides by two.
    HalfRoundTrip,
}

impl Measures {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::OneWay => "one way",
            Self::RoundTrip => "round trip",
            Self::HalfRoundTrip => "half of the round trip: the tool divides by two",
        }
    }
}

/// Why a file is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// The file, safe to print.
        path: String,
        /// Why not.
        why: String,
    },
    /// A line is not of the format.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it, safe to print.
        what: String,
    },
    /// The file as a whole is not.
    #[error("{0}")]
    File(String),
    /// The words that name the file.
    #[error("{0}")]
    Words(String),
}

impl ImportError {
    fn line(line: u64, what: impl Into<String>) -> Self {
        Self::Line { line, what: what.into() }
    }
}

/// A file that is to be imported: `trex=FILE`, or `spirent:10ns=FILE` where its unit must be told.
#[derive(Clone)]
pub struct Wanted {
    importer: &'static dyn Importer,
    unit_ns: Option<f64>,
    path: PathBuf,
}

impl Wanted {
    /// The tool's word.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.importer.name()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    ///
    /// # Errors
    /// The file cannot be read, or is not of the format.
    pub fn read(&self) -> Result<Vec<Imported>, ImportError> {
        self.importer.read(&text(&self.path)?, self.unit_ns)
    }
}

/// What of a log of sockperf was sent within a stretch of it, which begins so long behind its first packet.
///
/// # Errors
/// The file cannot be read, is no log of sockperf, or has no packet within the stretch.
pub fn sockperf_stretch(
    path: &Path,
    after: Nanos,
    length: Nanos,
) -> Result<SockperfStretch, ImportError> {
    sockperf::stretch_of(&text(path)?, after.0, length.0)
}

/// A whole file of text.
fn text(path: &Path) -> Result<String, ImportError> {
    let failed = |why: String| ImportError::Read {
        path: Printable(&path.display().to_string()).to_string(),
        why,
    };
    let file = std::fs::File::open(path).map_err(|why| failed(why.to_string()))?;
    let mut bytes = Vec::new();
    let mut reader = file.take(MOST_BYTES + 1);
    reader.read_to_end(&mut bytes).map_err(|why| failed(why.to_string()))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(failed(format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|why| {
        let bytes = why.as_bytes();
        let good = &bytes[..why.utf8_error().valid_up_to()];
        // One more than there are ends of lines.
        let line = good.split(|byte| *byte == b'\n').count();
        ImportError::line(line as u64, "it is no text")
    })
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted")
            .field("tool", &self.tool())
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl FromStr for Wanted {
    type Err = ImportError;

    fn from_str(text: &str) -> Result<Self, ImportError> {
        let names: Vec<&str> = IMPORTERS.iter().map(|of| of.name()).collect();
        let names = names.join(", ");
        let refused = |what: String| Err(ImportError::Words(what));
        let Some((tool, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
            return refused(format!("write TOOL=FILE, where TOOL is one of {names}"));
        };
        let (name, unit) = tool.split_once(':').map_or((tool, None), |(a, b)| (a, Some(b)));
        let Some(importer) = IMPORTERS.into_iter().find(|of| of.name() == name) else {
            return refused(format!("no files of `{}` are understood: {names}", shown(name)));
        };
        let unit_ns = match (unit, importer.needs_unit()) {
            (None, false) => None,
            (Some(unit), true) => Some(unit_of(unit)?),
            (Some(_), false) => {
                return refused(format!("files of {name} say their unit themselves: {name}=FILE"));
            }
            (None, true) => {
                return refused(format!(
                    "files of {name} do not say in what unit their edges are: write {name}:1us=FILE \
                     or {name}:10ns=FILE"
                ));
            }
        };
        Ok(Self { importer, unit_ns, path: PathBuf::from(path) })
    }
}

/// `10ns`, `us`: a unit of edges in nanoseconds.
fn unit_of(text: &str) -> Result<f64, ImportError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let times = if number.is_empty() { Some(1) } else { number.parse::<u32>().ok() };
    let one = match unit {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        _ => None,
    };
    times
        .filter(|times| *times > 0)
        .zip(one)
        .map(|(times, one)| f64::from(times) * one)
        .ok_or_else(|| ImportError::Words(format!("`{}` is no unit: 1us, 10ns", shown(text))))
}

/// A piece of a file in a message: short, and safe to print.
fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(MOST_SHOWN).collect();
    if start.len() < text.len() {
        start.push_str("...");
    }
    Printable(&start).to_string()
}

/// A decimal number without sign as a whole number of its last digit's unit: `2.5` with three
/// decimals is 2500. None for anything else, and for more digits than there is room for.
fn fixed(text: &str, decimals: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > decimals || !digits(whole) || !digits(part) {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(decimals).ok()?)?;
    let below = format!("{part:0<decimals$}");
    let below: u64 = if decimals == 0 { 0 } else { below.parse().ok()? };
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(below)
}

/// Lines with their numbers from 1, without what is empty.
fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let numbered = (1_u64..).zip(text.lines());
    numbered.map(|(number, line)| (number, line.trim())).filter(|(_, line)| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of all formats, good ones and bad ones.
    const PIECES: [&str; 34] = [
        "\n",
        ",",
        "packet, txTime(sec), rxTime(sec), latency(usec)\n",
        "packet, txTime(sec), rxTime(sec), rtt(usec)\n",
        "0, 2.438528073, 2.438538758, 5.342\n",
        "1, 2.438528073, 2.438538758, 10.685\n",
        "2, 9.5, 2.438538758, 5.342\n",
        "-----\n",
        "sockperf: Summary: Latency is 5.754 usec\n",
        "sockperf: Summary: Round trip is 5.754 usec\n",
        "sockperf: \u{1b}[2;35mTotal 30000 observations\u{1b}[0m; each has some\n",
        "sockperf: ---> percentile 99.000 =    5.569\n",
        "sockperf: ---> percentile 90.000 =    7.001\n",
        "sockperf: ---> percentile 50.000 =    5.372\n",
        "sockperf: ---> percentile 1e-300 =    0.001\n",
        "# dropped messages = 2; more\n",
        "10,2\n",
        "20,1\n",
        "2478.8,3\n",
        "0,1\n",
        "-0,1\n",
        "nan,1\n",
        "86400000000001,1\n",
        "1e-310,281474976645120\n",
        "low,high,count\n",
        "0,10,5\n",
        "10,,2\n",
        "10,1e308,18446744073709551615\n",
        "HistBin1Name,HistBin1Count,HistBin2Name,HistBin2Count\n",
        "x < 2,7,x >= 2,1\n",
        "x < 2,18446744073709551615,\"2 <= x < 6\",1\n",
        "x < 6,1,2 <= x < 4,1\n",
        "{\"histogram\": {\"20\": 3}}",
        "{\"histogram\": {\"21\": 3}}\n",
    ];

    /// Texts of such pieces with others between them.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            6 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
            1 => ".{0,6}",
            1 => any::<u64>().prop_map(|number| number.to_string()),
            1 => any::<f64>().prop_map(|number| number.to_string()),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// A latency stream of TRex, with keys that may be none of its buckets.
    fn streams() -> impl Strategy<Value = String> {
        let bucket = (0_u64..12, 0_u32..7, prop_oneof![4 => 0..1_000_u64, 1 => any::<u64>()])
            .prop_map(|(digit, zeros, count)| {
                format!("\"{}\": {count}", digit * 10_u64.pow(zeros))
            });
        let buckets = || proptest::collection::vec(bucket.clone(), 0..8);
        (buckets(), proptest::option::of(buckets())).prop_map(|(coarse, fine)| {
            let coarse = coarse.join(", ");
            let fine = fine.map(|fine| format!(", \"histogram100ns\": {{{}}}", fine.join(", ")));
            let fine = fine.unwrap_or_default();
            format!("{{\"7\": {{\n\"total_max\": 1e300, \"histogram\": {{{coarse}}}{fine}}}}}")
        })
    }

    proptest! {
        #[test]
        fn any_text_is_a_distribution_or_a_reason_that_is_safe_to_print(
            text in prop_oneof![pieces(), streams()],
        ) {
            for importer in IMPORTERS {
                let unit_ns = importer.needs_unit().then_some(10.0);
                match importer.read(&text, unit_ns) {
                    Ok(all) => {
                        prop_assert!(!all.is_empty());
                        for imported in &all {
                            let cells = imported.buckets.cells().iter();
                            let counted: u64 = cells.map(|cell| cell.count).sum();
                            prop_assert_eq!(counted, imported.buckets.samples());
                            let drawn = imported.distribution("x", 1);
                            let rises = drawn.points.is_sorted_by(|a, b| a.value_ns <= b.value_ns);
                            prop_assert!(rises, "{}: {:?}", importer.name(), drawn.points);
                            let mut shares = drawn.points.iter().map(|point| point.share);
                            prop_assert!(shares.all(|share| share > 0.0 && share <= 1.0));
                        }
                    }
                    Err(error) => {
                        let told = error.to_string();
                        prop_assert!(told.len() < 2_000, "{}", told.len());
                        prop_assert!(!told.chars().any(char::is_control), "{told:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_is_named_with_its_tool_and_a_unit_where_the_file_has_none() {
        let wanted: Wanted = "trex=a=b.json".parse().unwrap();
        assert_eq!((wanted.tool(), wanted.path()), ("trex", Path::new("a=b.json")));
        let wanted: Wanted = "spirent:10ns=x.csv".parse().unwrap();
        assert_eq!(wanted.unit_ns, Some(10.0));
        for (words, told) in [
            ("trex", "write TOOL=FILE"),
            ("trex=", "write TOOL=FILE"),
            ("iperf=x", "no files of `iperf`"),
            ("spirent=x.csv", "spirent:1us=FILE"),
            ("spirent:0ns=x.csv", "is no unit"),
            ("spirent:5parsec=x.csv", "is no unit"),
            ("trex:us=x", "say their unit themselves"),
        ] {
            let error = words.parse::<Wanted>().unwrap_err().to_string();
            assert!(error.contains(told), "{words}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_no_text_is_told() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.csv");
        let wanted: Wanted = format!("moongen={}", path.display()).parse().unwrap();
        assert!(wanted.read().unwrap_err().to_string().starts_with("cannot read"));
        std::fs::write(&path, b"10,2\n20,1\n\xff\n").unwrap();
        assert_eq!(wanted.read().unwrap_err().to_string(), "line 3: it is no text");
        std::fs::write(&path, b"10,2\n20,1\n").unwrap();
        assert_eq!(wanted.read().unwrap()[0].buckets.samples(), 3);
    }

    #[test]
    fn decimals_are_read_without_rounding_and_nothing_else_is() {
        assert_eq!(fixed("2.438528073", 9), Some(2_438_528_073));
        assert_eq!([fixed("5.3", 3), fixed("5", 3)], [Some(5_300), Some(5_000)]);
        assert_eq!(fixed("7", 0), Some(7));
        for wrong in ["", ".", ".5", "-1", "1.2345", "1e3", "nan", "99999999999999999999"] {
            assert_eq!(fixed(wrong, 3), None, "{wrong}");
        }
    }
}
