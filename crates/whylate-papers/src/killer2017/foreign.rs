//! Other tools: sockperf through the same device, where it is installed, and files of results.

use std::time::Duration;

use whylate_model::paper::Scenario;
use whylate_model::{Nanos, Printable};
use whylate_net::lab::{Bed, Role};
use whylate_record::child::Program;
use whylate_report::import::{Imported, Measures, SockperfStretch, Wanted, sockperf_stretch};
use whylate_stats::Histogram;

use super::protocol::{MESSAGE, Protocol};
use super::site::Site;
use crate::PaperError;
use crate::bench::Bench;

/// Port of its server inside a bed.
const PORT: u16 = 11_111;
/// Its server listens after so long.
const LISTENS: Duration = Duration::from_millis(300);
/// Its server ends within so long.
const ENDS: Duration = Duration::from_secs(5);
/// What its client takes beyond its time, at most.
const MORE: Duration = Duration::from_secs(60);
/// What it leaves out of its own time at both ends, rounded up to what its words can ask for.
const LEFT_OUT: Nanos = Nanos::SECOND;
/// A request and its reply: both pass the device.
const FRAMES_EACH: f64 = 2.0;
/// Largest value of a result that is counted: a day.
const MOST_NS: f64 = 86_400e9;

/// A file of results and what is in it.
#[derive(Debug, Clone)]
pub(super) struct ImportedFile {
    pub(super) name: String,
    pub(super) all: Vec<Imported>,
}

/// Reads all files that are to be imported.
pub(super) fn imported(wanted: &[Wanted]) -> Result<Vec<ImportedFile>, PaperError> {
    let read = |of: &Wanted| {
        let name = Printable(&of.path().display().to_string()).to_string();
        match of.read() {
            Ok(all) => Ok(ImportedFile { name, all }),
            Err(why) => Err(PaperError::Import { file: name, why }),
        }
    };
    wanted.iter().map(read).collect()
}

/// What sockperf measured through the device, and what is to be said of it.
pub(super) struct Sockperf {
    pub(super) values: Histogram,
    /// Frames a second that passed the device, both ways together, by its own log of the time that counts.
    pub(super) per_second: Option<f64>,
    pub(super) notes: Vec<String>,
}

/// One run of sockperf between the ends of a bed, both of which sleep on the client's CPU: the box has
/// the other one. It has no warm-up that can be asked for: it runs for that time more, and of its log, which
/// lies beside the run directories, the first part is left out.
pub(super) fn sockperf(
    bench: &mut Bench<'_>,
    site: &Site,
    part: &str,
    protocol: Protocol,
    scenario: &mut Scenario,
) -> Result<Sockperf, PaperError> {
    bench.go_on()?;
    let bed = site.bed();
    let address = Bed::address(Role::Server);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let server = Program::foreign("sockperf", words(&format!("server -i {address} -p {PORT}")));
    let server = server.inside(bed, Role::Server).on(&[site.client]);
    let log = bench.place(&format!("{part}.csv"));
    let seconds = seconds_of(protocol);
    let asked = format!(
        "ping-pong -i {address} -p {PORT} -t {seconds} --mps {:.0} -m {MESSAGE} --full-log",
        Protocol::asked_per_second() / 2.0
    );
    let mut client = words(&asked);
    client.push(log.display().to_string());
    let client = Program::foreign("sockperf", client).inside(bed, Role::Client).on(&[site.client]);
    let inside = |role: &str, command: &str| {
        format!("nsenter --net=/run/netns/whylate-{}-{role} {command}", bed.name())
    };
    let running = server.start()?;
    scenario.commands.push(inside("server", server.named()));
    scenario.commands.push(inside("client", &format!("sockperf {asked} {part}.csv")));
    std::thread::sleep(LISTENS);
    let most = Duration::from_secs(seconds) + MORE;
    let ended = client.run(bench.stop, Some(most)).and_then(|ended| ended.with_one_of(&[0]));
    // Ctrl-C is how it is meant to end.
    running.end(ENDS)?;
    ended?;
    let failed = |why| PaperError::Import { file: format!("{part}.csv"), why };
    let read = sockperf_stretch(&log, protocol.warmup, protocol.duration).map_err(failed)?;
    Ok(told(part, protocol, &read))
}

/// How long it runs: the warm-up, what is measured, and what it leaves out itself.
fn seconds_of(protocol: Protocol) -> u64 {
    let all = protocol.warmup.0 + protocol.duration.0 + LEFT_OUT.0;
    all.div_ceil(Nanos::SECOND.0)
}

/// What is counted of its log, and what is to be said of it.
fn told(part: &str, protocol: Protocol, of: &SockperfStretch) -> Sockperf {
    let mut values = Histogram::new();
    counted(&of.imported, &mut values);
    let mut notes = vec![format!(
        "sockperf has no warm-up to ask for: it ran for {} s, and of its log {} from {} behind its first packet on \
         are counted",
        seconds_of(protocol),
        protocol.duration,
        protocol.warmup
    )];
    if !of.whole {
        notes.push(format!(
            "{part}: its log ends before {}: it has fewer samples than were asked for",
            Nanos(protocol.warmup.0 + protocol.duration.0)
        ));
    }
    if of.imported.measures == Measures::HalfRoundTrip {
        notes.push(
            "sockperf: half of its round trip, as it divides by two itself: twice the device and both of \
             its ends, halved. That is neither the one nor the other way, and it hides how they differ"
                .to_owned(),
        );
    }
    let per_second = of.per_second.map(|requests| FRAMES_EACH * requests);
    Sockperf { values, per_second, notes }
}

/// Values of buckets that are one value wide.
fn counted(imported: &Imported, into: &mut Histogram) {
    for cell in imported.buckets.cells() {
        into.record_n(cell.low_ns.clamp(0.0, MOST_NS).round() as u64, cell.count);
    }
}

/// What stands beside curves of files, once.
pub(super) fn note(files: &[ImportedFile], scenario: &mut Scenario) {
    for file in files {
        for imported in &file.all {
            scenario.notes.push(format!(
                "{} of {}: {}; granularity {}ns. It is of a device of its own, so that no distance from this \
                 one's truth is claimed",
                imported.label,
                file.name,
                imported.measures.words(),
                imported.granularity_ns
            ));
            scenario.notes.extend(imported.notes.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_is_refused_by_its_name_before_anything_is_measured() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trex.json");
        std::fs::write(&path, "{\n\"histogram\": {\"15\": 1}}").unwrap();
        let wanted: Wanted = format!("trex={}", path.display()).parse().unwrap();
        let error = imported(std::slice::from_ref(&wanted)).unwrap_err().to_string();
        assert!(error.contains("trex.json: line 2: 15 is no bucket"), "{error}");
        std::fs::write(&path, "{\"histogram\": {\"20\": 7}}").unwrap();
        let files = imported(&[wanted]).unwrap();
        let mut scenario = crate::empty("fig2", "x");
        note(&files, &mut scenario);
        assert!(scenario.notes[0].contains("no distance from this one's truth"), "{scenario:?}");
    }

    #[test]
    fn sockperf_has_the_warm_up_of_all_tools_and_the_rate_of_what_is_counted() {
        let protocol = Protocol::QUICK;
        assert_eq!(seconds_of(Protocol::USUAL), 151, "30 s, 120 s, and what it leaves out itself");
        // A request each 100us for 5 s: slow in its first second, of which nothing is counted.
        let mut log = String::from("packet, txTime(sec), rxTime(sec), latency(usec)\n");
        for n in 0_u64..50_000 {
            let (sent, took) = (n * 100_000, if n < 10_000 { 50_000 } else { 5_000 });
            let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            let line = format!(
                "{n}, {}, {}, {}.000\n",
                seconds(sent),
                seconds(sent + 2 * took),
                took / 1_000
            );
            log.push_str(&line);
        }
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.csv");
        std::fs::write(&path, &log).unwrap();
        let read = sockperf_stretch(&path, protocol.warmup, protocol.duration).unwrap();
        let of = told("x", protocol, &read);
        assert_eq!((of.values.len(), of.values.max()), (30_000, Some(5_000)));
        // Both ways of 10 000 requests a second: what all tools are asked for.
        let rate = of.per_second.unwrap();
        assert!((rate - Protocol::asked_per_second()).abs() < 1e-6, "{rate}");
        assert!(of.notes[0].contains("it ran for 5 s"), "{:?}", of.notes);
        assert!(!of.notes.iter().any(|note| note.contains("ends before")), "{:?}", of.notes);
        let cut: String = log.split_inclusive('\n').take(30_001).collect();
        std::fs::write(&path, &cut).unwrap();
        let read = sockperf_stretch(&path, protocol.warmup, protocol.duration).unwrap();
        let of = told("x", protocol, &read);
        assert!(
            of.notes.iter().any(|note| note.contains("x: its log ends before")),
            "{:?}",
            of.notes
        );
    }

    #[test]
    fn what_sockperf_logged_is_counted_as_it_is() {
        let text = "packet, txTime(sec), rxTime(sec), latency(usec)\n\
                    0, 2.438528073, 2.438538758, 5.342\n1, 2.438538811, 2.438549555, 5.372\n";
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.csv");
        std::fs::write(&path, text).unwrap();
        let wanted: Wanted = format!("sockperf={}", path.display()).parse().unwrap();
        let mut values = Histogram::new();
        counted(&wanted.read().unwrap()[0], &mut values);
        assert_eq!((values.len(), values.min(), values.max()), (2, Some(5_342), Some(5_372)));
    }
}
