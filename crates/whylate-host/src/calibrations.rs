//! What was found out about how far measurements of this host may be trusted, backend by backend.
//!
//! One file of this user, `whylate/calibrations.json` beside that of the last run, replaced as a whole.
//! Each calibration is kept with the host as it was read back then. A later recording asks for that of its
//! backend; where the host has changed since, the answer names what changed. A file that cannot be read, is
//! damaged, or was written by another version is an error to whoever asks, and decides nothing.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use whylate_model::host::{Difference, Fingerprint};
use whylate_model::lab::BedKind;
use whylate_model::{Nanos, thousands_apart as count};

use crate::error::HostError;
use crate::files::open_plain;
use crate::last_run::{place, replace};

/// The file's name.
const FILE: &str = "calibrations.json";
/// Version of its format.
const VERSION: u32 = 1;
/// Largest file that is read: some ten KiB for each host that is kept, and as many again to spare.
const MAX_BYTES: u64 = 16 << 20;
/// Calibrations that are kept; of more the oldest go.
const MOST_KEPT: usize = 256;
/// States of hosts that are kept beside them.
const MOST_HOSTS: usize = 64;
/// Changes that are named; more are counted.
const MOST_NAMED: usize = 3;
/// A rate is another one beyond this share of it, as for curves that are compared.
const SAME_RATE: f64 = 0.01;
/// What a test network was called once, and is called.
const BED: &str = " lab bed";
const TEST_NETWORK: &str = " test network";
/// Calibrations of before this was kept do not know what their numbers were of.
const UNKNOWN_WAY: &str = "whether it was calibrated for one-way latency or for round trips, and over which path, is not known";

/// One backend of one host in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// What carried the messages, and how the client waited: `udp spin`.
    pub backend: String,
    /// Up to which percentile its times may be trusted as they are; none: not even at the lowest.
    pub limit_raw: Option<f64>,
    /// The same when the base path has been taken off.
    pub limit_compensated: Option<f64>,
    /// The base path, measured back to back, that was taken off; none where it was not measured.
    pub base: Option<Nanos>,
    /// The error that counts as none.
    pub tolerance: Nanos,
    /// Messages a second that were sent.
    pub per_second: f64,
    /// Bytes of each.
    pub bytes: u32,
    /// What its numbers count, and over which path; none of a calibration of before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// When, nanoseconds since 1970.
    pub at_ns: u64,
    /// The run directory.
    pub run: String,
}

/// What numbers count, and over which path they were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// What a number is: `one-way`, `rtt`.
    pub definition: String,
    /// Over what the messages went, in words: `loopback`, `an open test network`.
    pub over: String,
    /// What the delay line in the path was set to; none where it is not known of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
}

/// A bed as a path has it; its kind is not known where its notes cannot be read.
#[must_use]
pub fn over_bed(kind: Option<BedKind>) -> String {
    let words = match kind {
        Some(BedKind::Direct) => "a test network whose ends are back to back",
        Some(BedKind::Bridge) => "a test network with a bridge",
        Some(BedKind::Ovs) => "a test network with Open vSwitch",
        Some(BedKind::Open) => "an open test network",
        None => "a test network of a kind that is not known",
    };
    words.to_owned()
}

impl Way {
    /// What its numbers count, in words.
    fn counts(&self) -> &str {
        match self.definition.as_str() {
            "one-way" => "one-way latency",
            "rtt" => "round trips",
            other => other,
        }
    }

    /// The same numbers over the same path, as far as both are known? Delays are no part of it: what a
    /// client adds is looked for, and nobody knows what is in the path of another measurement.
    fn is_like(&self, other: &Self) -> bool {
        self.definition == other.definition && self.over == other.over
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.counts(), self.over)?;
        match &self.delay {
            Some(delay) => write!(f, " (delay line at {delay})"),
            None => Ok(()),
        }
    }
}

/// A calibration that fits what was asked, and how far it still holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    /// It.
    pub of: &'a Calibrated,
    /// Why it may hold no longer: what of the host changed since; none where it is as it was.
    pub stale: Option<String>,
    /// In what rate, size, definition and path are others than those that were calibrated.
    pub other: Vec<String>,
}

/// Conditions of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked<'a> {
    /// What carried its messages, and how its client waited: `udp spin`.
    pub backend: &'a str,
    /// Messages a second; none where that was not asked for.
    pub per_second: Option<f64>,
    /// Bytes of each.
    pub bytes: u32,
    /// What its numbers count, and over which path.
    pub way: &'a Way,
}

/// All calibrations of this user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Store {
    format_version: u32,
    /// Hosts, each as it was read back once.
    hosts: Vec<Fingerprint>,
    /// Calibrations with the index of their host, oldest first.
    kept: Vec<(usize, Calibrated)>,
}

impl Store {
    /// Reads what is kept. A file that is there and cannot be used is an error; none is an empty store.
    pub fn load() -> Result<Self, HostError> {
        place(FILE).map_or_else(|| Ok(Self::default()), |path| Self::load_from(&path))
    }

    fn load_from(path: &Path) -> Result<Self, HostError> {
        let unusable = |why: String| HostError::NoCalibrations { path: path.to_owned(), why };
        let mut bytes = Vec::new();
        let read =
            open_plain(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(unusable(why.to_string())),
            Ok(_) if bytes.len() as u64 > MAX_BYTES => {
                return Err(unusable(format!("it has more than {MAX_BYTES} bytes")));
            }
            Ok(_) => {}
        }
        let mut store: Self =
            serde_json::from_slice(&bytes).map_err(|why| unusable(why.to_string()))?;
        if store.format_version != VERSION {
            return Err(unusable(format!("it has format version {}", store.format_version)));
        }
        if store.kept.iter().any(|(host, _)| *host >= store.hosts.len()) {
            return Err(unusable("it names a machine that it has not".to_owned()));
        }
        // A path is the same by whatever name it was kept.
        for way in store.kept.iter_mut().filter_map(|(_, of)| of.way.as_mut()) {
            way.over = way.over.replacen(BED, TEST_NETWORK, 1);
        }
        Ok(store)
    }

    /// The calibration of this backend on this host that fits best: of the state in which the host is, at
    /// the same rate and size, of the same way, if there is one; of several the one nearest in rate, of those
    /// the one with the smallest tolerance, of those the newest. None where the backend was never calibrated
    /// here.
    #[must_use]
    pub fn find(&self, host: &Fingerprint, asked: Asked<'_>) -> Option<Found<'_>> {
        let here = self.kept.iter().filter(|(index, of)| {
            let there = self.hosts.get(*index);
            of.backend == asked.backend && there.is_some_and(|there| same_host(there, host))
        });
        let judged = here.map(|(index, of)| {
            let changed = self.hosts.get(*index).map(|then| then.differences(host));
            let conditions = other_conditions(of, asked);
            (changed.unwrap_or_default(), conditions, of)
        });
        let best = judged.min_by(|(changed, other, of), (than_changed, than_other, than)| {
            let rates = rate_apart(of, asked).total_cmp(&rate_apart(than, asked));
            (changed.len(), other.len())
                .cmp(&(than_changed.len(), than_other.len()))
                .then(rates)
                .then(of.tolerance.cmp(&than.tolerance))
                .then(than.at_ns.cmp(&of.at_ns))
        });
        let (changed, other, of) = best?;
        let stale = (!changed.is_empty()).then(|| told(&changed).join("; "));
        Some(Found { of, stale, other })
    }

    /// Adds calibrations of this host; of the same backend, rate, size, tolerance and way in the same state
    /// the new one takes the place of the old, and of one whose way is not known.
    pub fn add(&mut self, host: &Fingerprint, new: impl IntoIterator<Item = Calibrated>) {
        let known = self.hosts.iter().position(|known| known == host);
        let index = known.unwrap_or_else(|| {
            self.hosts.push(host.clone());
            self.hosts.len() - 1
        });
        for of in new {
            self.kept.retain(|(there, old)| {
                let ways = old.way.as_ref().zip(of.way.as_ref());
                let same = old.backend == of.backend
                    && old.bytes == of.bytes
                    && old.tolerance == of.tolerance
                    && same_rate(old.per_second, of.per_second)
                    && ways.is_none_or(|(old, new)| old.is_like(new));
                *there != index || !same
            });
            self.kept.push((index, of));
        }
        let surplus = self.kept.len().saturating_sub(MOST_KEPT);
        self.kept.drain(..surplus);
        self.forget_hosts();
    }

    /// Hosts that no calibration names go, and the oldest where there are too many.
    fn forget_hosts(&mut self) {
        let mut wanted: Vec<usize> = Vec::new();
        for (index, _) in self.kept.iter().rev() {
            if !wanted.contains(index) && wanted.len() < MOST_HOSTS {
                wanted.push(*index);
            }
        }
        wanted.sort_unstable();
        let hosts = wanted.iter().filter_map(|index| self.hosts.get(*index).cloned()).collect();
        let renamed = |(index, of): (usize, Calibrated)| {
            Some((wanted.iter().position(|wanted| *wanted == index)?, of))
        };
        self.kept = std::mem::take(&mut self.kept).into_iter().filter_map(renamed).collect();
        self.hosts = hosts;
    }

    /// All that is kept, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Calibrated> {
        self.kept.iter().map(|(_, of)| of)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let store = Self { format_version: VERSION, ..self.clone() };
        let json = serde_json::to_vec_pretty(&store).map_err(io::Error::other)?;
        replace(path, &json)
    }
}

/// Remembers calibrations of this host in the state in which it was read back. A file that cannot be used
/// is moved aside, never overwritten.
pub fn remember(
    host: &Fingerprint,
    new: impl IntoIterator<Item = Calibrated>,
) -> Result<(), HostError> {
    let path = place(FILE).ok_or_else(|| HostError::NotCalibrated {
        path: PathBuf::from("whylate").join(FILE),
        source: io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME is set"),
    })?;
    remember_at(&path, host, new)
}

fn remember_at(
    path: &Path,
    host: &Fingerprint,
    new: impl IntoIterator<Item = Calibrated>,
) -> Result<(), HostError> {
    let failed = |source| HostError::NotCalibrated { path: path.to_owned(), source };
    let aside = || fs::rename(path, path.with_extension("json.unusable"));
    let mut store =
        Store::load_from(path).or_else(|_| aside().map(|()| Store::default()).map_err(failed))?;
    store.add(host, new);
    store.write(path).map_err(failed)
}

/// Is it the same machine, whatever was changed on it?
fn same_host(one: &Fingerprint, other: &Fingerprint) -> bool {
    one.hostname == other.hostname && one.architecture == other.architecture
}

fn same_rate(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_RATE * one.abs().max(other.abs())
}

/// How far the rate is from the one asked for, in steps of what counts as the same one; zero where none was
/// asked for.
fn rate_apart(of: &Calibrated, asked: Asked<'_>) -> f64 {
    let apart = |rate: f64| {
        let most = of.per_second.abs().max(rate.abs());
        if same_rate(of.per_second, rate) {
            0.0
        } else {
            ((of.per_second - rate).abs() / (SAME_RATE * most)).floor()
        }
    };
    asked.per_second.map_or(0.0, apart)
}

/// What changed, each with both values; of many the first ones and their number.
fn told(changed: &[Difference]) -> Vec<String> {
    let name = |of: &Difference| format!("{} was {} and is {}", of.name, of.left, of.right);
    let mut told: Vec<String> = changed.iter().take(MOST_NAMED).map(name).collect();
    if changed.len() > MOST_NAMED {
        told.push(format!("{} more changed", changed.len() - MOST_NAMED));
    }
    told
}

/// In what the conditions of the calibration are others.
fn other_conditions(of: &Calibrated, asked: Asked<'_>) -> Vec<String> {
    let mut other = Vec::new();
    if of.bytes != asked.bytes {
        let [calibrated, bytes] = [of.bytes, asked.bytes].map(|of| count(of.into()));
        other.push(format!("calibrated with {calibrated} bytes, not {bytes}"));
    }
    let calibrated = count(of.per_second.round() as u64);
    match asked.per_second {
        Some(rate) if same_rate(of.per_second, rate) => {}
        Some(rate) => {
            let rate = count(rate.round() as u64);
            other.push(format!("calibrated at {calibrated}/s, not {rate}/s"));
        }
        None => other.push(format!("calibrated at {calibrated}/s")),
    }
    match &of.way {
        None => other.push(UNKNOWN_WAY.to_owned()),
        Some(way) if way.is_like(asked.way) => {}
        Some(way) => other.push(format!("calibrated for {way}, not for {}", asked.way)),
    }
    other
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use whylate_model::host::Knob;

    use super::*;

    fn host(kernel: &str, governor: &str) -> Fingerprint {
        Fingerprint {
            hostname: "box".to_owned(),
            kernel: kernel.to_owned(),
            knobs: [("governor".to_owned(), Knob::Value(governor.to_owned()))].into(),
            ..Fingerprint::default()
        }
    }

    fn of(backend: &str, limit: f64, at_ns: u64) -> Calibrated {
        Calibrated {
            backend: backend.to_owned(),
            limit_raw: None,
            limit_compensated: Some(limit),
            base: Some(Nanos(4_000)),
            tolerance: Nanos(1_000),
            per_second: 10_000.0,
            bytes: 64,
            way: Some(calibrated_way()),
            at_ns,
            run: "/runs/one".to_owned(),
        }
    }

    /// As every calibration of ours is made.
    fn calibrated_way() -> Way {
        Way { delay: Some("20.0us".to_owned()), ..way("one-way", "an open test network") }
    }

    fn way(definition: &str, over: &str) -> Way {
        Way { definition: definition.to_owned(), over: over.to_owned(), delay: None }
    }

    /// What is in the path of a later measurement nobody knows.
    static LATER: LazyLock<Way> = LazyLock::new(|| way("one-way", "an open test network"));

    fn asked(backend: &str) -> Asked<'_> {
        Asked { backend, per_second: Some(10_000.0), bytes: 64, way: &LATER }
    }

    #[test]
    fn a_calibration_is_found_by_its_backend_on_its_host_and_by_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/whylate").join(FILE);
        assert_eq!(Store::load_from(&path).unwrap(), Store::default());
        let here = host("6.1", "performance");
        remember_at(&path, &here, [of("udp spin", 99.0, 1), of("xdp spin", 99.9, 1)]).unwrap();
        let store = Store::load_from(&path).unwrap();
        let found = store.find(&here, asked("xdp spin")).unwrap();
        assert_eq!((found.of.limit_compensated, found.stale), (Some(99.9), None));
        assert_eq!(store.find(&here, asked("packet spin")), None);
        let other = Fingerprint { hostname: "other".to_owned(), ..here.clone() };
        assert_eq!(store.find(&other, asked("xdp spin")), None);
        remember_at(&path, &here, [of("xdp spin", 99.99, 2)]).unwrap();
        let store = Store::load_from(&path).unwrap();
        let found = store.find(&here, asked("xdp spin")).unwrap();
        assert_eq!(
            found.of.limit_compensated,
            Some(99.99),
            "the new one takes the old one's place"
        );
        assert_eq!(store.all().count(), 2);
    }

    #[test]
    fn a_changed_host_makes_a_calibration_stale_and_the_change_is_named() {
        let mut store = Store::default();
        let then = host("6.1", "performance");
        store.add(&then, [of("udp spin", 99.0, 1)]);
        let now = host("6.2", "powersave");
        let found = store.find(&now, asked("udp spin")).unwrap();
        let stale = found.stale.unwrap();
        assert!(stale.contains("kernel was 6.1 and is 6.2"), "{stale}");
        assert!(stale.contains("governor was performance and is powersave"), "{stale}");
        // Calibrated again: what was found then does not come back.
        store.add(&now, [of("udp spin", 90.0, 2)]);
        let found = store.find(&now, asked("udp spin")).unwrap();
        assert_eq!((found.of.limit_compensated, found.stale), (Some(90.0), None));
        // And as the host was, the old one holds.
        assert_eq!(store.find(&then, asked("udp spin")).unwrap().of.limit_compensated, Some(99.0));
    }

    #[test]
    fn another_rate_or_size_is_told_and_the_one_that_fits_is_preferred() {
        let mut store = Store::default();
        let here = host("6.1", "performance");
        let large = Calibrated { bytes: 1_400, ..of("udp spin", 90.0, 5) };
        store.add(&here, [of("udp spin", 99.0, 1), large]);
        let at = |per_second, bytes| {
            let asked = Asked { per_second, bytes, ..asked("udp spin") };
            let found = store.find(&here, asked).unwrap();
            assert_eq!(found.stale, None, "the host is the same");
            (found.of.bytes, found.other.join("; "))
        };
        assert_eq!(at(Some(10_050.0), 64), (64, String::new()));
        assert_eq!(at(Some(10_000.0), 1_400), (1_400, String::new()));
        let (_, other) = at(Some(20_000.0), 64);
        assert_eq!(other, "calibrated at 10,000/s, not 20,000/s");
        let (_, other) = at(None, 512);
        assert_eq!(other, "calibrated with 1,400 bytes, not 512; calibrated at 10,000/s");
    }

    #[test]
    fn a_wide_tolerance_takes_no_place_of_a_narrow_one_and_the_narrowest_at_the_nearest_rate_is_used()
     {
        let mut store = Store::default();
        let here = host("6.1", "performance");
        let wide = |at_ns| Calibrated { tolerance: Nanos(50_000), ..of("udp spin", 99.99, at_ns) };
        store.add(&here, [of("udp spin", 90.0, 1)]);
        store.add(&here, [wide(2)]);
        let taken = |store: &Store, per_second| {
            let asked = Asked { per_second, ..asked("udp spin") };
            let of = store.find(&here, asked).unwrap().of;
            (of.tolerance, of.per_second, of.at_ns)
        };
        assert_eq!(store.all().count(), 2);
        // The wide one is newer, and its limit is higher.
        for rate in [Some(10_000.0), Some(40_000.0), None] {
            assert_eq!(taken(&store, rate), (Nanos(1_000), 10_000.0, 1), "{rate:?}");
        }
        store.add(&here, [wide(3)]);
        assert_eq!(store.all().count(), 2, "of the same tolerance the new one takes the place");
        // Neither rate is the one asked for: the nearer one counts, and only then the tolerance.
        store.add(&here, [Calibrated { per_second: 38_000.0, ..wide(4) }]);
        assert_eq!(taken(&store, Some(40_000.0)), (Nanos(50_000), 38_000.0, 4));
        assert_eq!(taken(&store, Some(9_000.0)), (Nanos(1_000), 10_000.0, 1));
    }

    #[test]
    fn a_path_is_the_same_by_the_name_that_it_had_once() {
        let here = host("6.1", "performance");
        let mut store = Store::default();
        let bridged = way("one-way", &over_bed(Some(BedKind::Bridge)));
        store.add(&here, [Calibrated { way: Some(bridged.clone()), ..of("udp spin", 90.0, 2) }]);
        store.format_version = VERSION;
        let json = serde_json::to_string(&store).unwrap().replace("test network", "lab bed");
        assert!(json.contains("a lab bed with a bridge"), "{json}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, json).unwrap();
        let store = Store::load_from(&path).unwrap();
        let found = store.find(&here, Asked { way: &bridged, ..asked("udp spin") }).unwrap();
        assert!(found.other.is_empty(), "{found:?}");
    }

    #[test]
    fn another_way_is_told_with_both_and_one_of_before_ways_were_kept_is_not_known() {
        let here = host("6.1", "performance");
        let mut store = Store::default();
        store.add(&here, [of("udp spin", 99.0, 1)]);
        let other = |store: &Store, way: &Way| {
            let found = store.find(&here, Asked { way, ..asked("udp spin") }).unwrap();
            found.other.join("; ")
        };
        assert_eq!(other(&store, &LATER), "", "the delay of the line is no difference");
        assert_eq!(
            other(&store, &way("rtt", "loopback")),
            "calibrated for one-way latency over an open test network (delay line at 20.0us), not for round \
             trips over loopback"
        );
        assert!(
            other(&store, &way("rtt", "an open test network")).contains("round trips over an open")
        );
        let bridged = way("one-way", &over_bed(Some(BedKind::Bridge)));
        assert!(
            other(&store, &bridged)
                .ends_with("not for one-way latency over a test network with a bridge")
        );
        // Of another way it is another calibration, and the one that fits is taken.
        let both = Calibrated { way: Some(bridged.clone()), ..of("udp spin", 90.0, 2) };
        store.add(&here, [both]);
        assert_eq!((store.all().count(), other(&store, &bridged).as_str()), (2, ""));
        // What an earlier version wrote is read, and says that it does not know.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let mut old = Store::default();
        old.add(&here, [of("udp spin", 99.0, 1)]);
        old.format_version = VERSION;
        let mut json = serde_json::to_value(&old).unwrap();
        let fields = json["kept"][0][1].as_object_mut().unwrap();
        assert!(fields.remove("way").is_some());
        fs::write(&path, json.to_string()).unwrap();
        let mut old = Store::load_from(&path).unwrap();
        assert_eq!(other(&old, &LATER), UNKNOWN_WAY);
        old.add(&here, [of("udp spin", 99.0, 3)]);
        assert_eq!((old.all().count(), other(&old, &LATER).as_str()), (1, ""));
    }

    #[test]
    fn the_store_keeps_the_newest_and_no_host_that_nothing_names() {
        let mut store = Store::default();
        for number in 0..(MOST_HOSTS as u64 + 40) {
            store.add(&host(&number.to_string(), "performance"), [of("udp spin", 99.0, number)]);
        }
        assert_eq!((store.hosts.len(), store.kept.len()), (MOST_HOSTS, MOST_HOSTS));
        assert_eq!(store.all().next().unwrap().at_ns, 40);
        let last = MOST_HOSTS as u64 + 39;
        let found = store.find(&host(&last.to_string(), "performance"), asked("udp spin")).unwrap();
        assert_eq!((found.of.at_ns, found.stale), (last, None));
    }

    #[test]
    fn a_file_of_rubbish_is_told_and_moved_aside_by_the_next_calibration() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let hostless = "{\"format_version\":1,\"hosts\":[],\"kept\":[[7,{}]]}";
        for text in ["", "{}", "[[[[", "{\"format_version\":9,\"hosts\":[],\"kept\":[]}", hostless]
        {
            fs::write(&path, text).unwrap();
            assert!(Store::load_from(&path).is_err(), "{text}");
        }
        let here = host("6.1", "performance");
        remember_at(&path, &here, [of("udp spin", 99.0, 1)]).unwrap();
        assert_eq!(Store::load_from(&path).unwrap().all().count(), 1);
        let aside = fs::read_to_string(path.with_extension("json.unusable")).unwrap();
        assert_eq!(aside, hostless, "what it was is kept");
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_and_nothing_breaks(
            bytes in prop::collection::vec(any::<u8>(), 1..200),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(FILE);
            fs::write(&path, &bytes).unwrap();
            prop_assert!(Store::load_from(&path).is_err());
        }
    }
}
