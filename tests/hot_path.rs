//! The measuring loops, and the path of forwarded frames, as compiled into the program; and no clock that can be
//! set where latencies are taken.

use std::path::Path;
use std::sync::OnceLock;

use crate::listing::{self, Shape, functions, unfit};
use crate::{needs, program};

/// The inner loop is ten instructions; more than twice that is another loop.
const LONGEST: usize = 20;

#[test]
fn the_chain_loop_reads_the_counter_once_and_calls_nothing() {
    reads_once_and_calls_nothing(&["hot::chain>:", "hot::chain::<"]);
}

#[test]
fn the_loop_of_a_runner_reads_the_counter_once_and_calls_nothing() {
    reads_once_and_calls_nothing(&["switch_cost::hot::run>:", "switch_cost::hot::run::<"]);
}

/// What a burst takes is one call of the other port, in the row of either size.
const TABLES: usize = 2;
/// Ports that both of these are compiled for: packet and xdp.
const PORTS: usize = 2;
/// Instructions of either at least: it has loops over frames, and was not put into its callers.
const SHORTEST: usize = 40;

#[test]
fn a_burst_is_gathered_by_one_call_of_the_other_port_and_nothing_is_allocated_or_stamped() {
    let Some(listing) = all() else { return };
    // By each port that frames come by.
    all_are(listing, "gather", |of| (1..=TABLES).contains(&of.by_table));
}

#[test]
fn a_burst_is_taken_in_without_a_table_and_nothing_is_allocated_or_stamped() {
    let Some(listing) = all() else { return };
    // Frames are copied, and no other port is asked.
    all_are(listing, "take_in", |of| of.by_table == 0 && of.calls > 0);
}

/// Every function of this name does what is right, and nothing that no hot path may do; there is one for each
/// port, and it is the function itself that was looked at. What each consists of is printed.
fn all_are(listing: &str, name: &str, right: impl Fn(Shape) -> bool) {
    let headlines = [format!("passing::hot::{name}>:"), format!("passing::hot::{name}::<")];
    let found = headlines.iter().flat_map(|headline| functions(listing, headline));
    let found: Vec<Vec<&str>> = found.collect();
    assert!(found.len() >= PORTS, "{} functions {name} were found in the program", found.len());
    for lines in &found {
        let shape = Shape::of(lines);
        println!("{name}: {shape:?}");
        let whole = shape.instructions >= SHORTEST && shape.returns > 0;
        assert!(whole, "this is no function over frames: {shape:?} {lines:#?}");
        assert!(shape.unfit == 0 && right(shape), "{shape:?}, {:?}: {lines:#?}", unfit(lines));
    }
}

/// The listing of the program; none where it cannot be read.
fn all() -> Option<&'static str> {
    static LISTING: OnceLock<String> = OnceLock::new();
    if !cfg!(target_arch = "x86_64") {
        needs::absent("the listing is read for x86-64 only");
        return None;
    }
    let objdump = needs::program("objdump")?;
    Some(LISTING.get_or_init(|| listing::of(&objdump, program::path())))
}

/// Of all functions with such a headline one has a loop that does nothing but read the counter.
fn reads_once_and_calls_nothing(headlines: &[&str]) {
    let Some(listing) = all() else { return };
    let loops: Vec<Vec<&str>> = headlines
        .iter()
        .flat_map(|headline| functions(listing, headline))
        .filter_map(|function| innermost(&function))
        .collect();
    assert!(!loops.is_empty(), "no loop around the counter was found in the program");
    let pure = loops.iter().filter(|lines| {
        let count = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
        lines.len() <= LONGEST && count("rdtsc") == 1 && count("call") == 0
    });
    assert!(pure.count() >= 1, "every loop calls something or is long:\n{loops:#?}");
}

/// The shortest backward jump that spans a reading of the counter.
fn innermost<'a>(function: &[&'a str]) -> Option<Vec<&'a str>> {
    let address = |line: &str| u64::from_str_radix(line.split(':').next()?.trim(), 16).ok();
    let spans = function.iter().enumerate().filter_map(|(end, line)| {
        let mut words = line.split(':').nth(1)?.split_whitespace();
        let jump = words.next()?.starts_with('j');
        let target = u64::from_str_radix(words.next()?, 16).ok().filter(|_| jump)?;
        let begin = function[..end].iter().position(|line| address(line) == Some(target))?;
        let lines = &function[begin..=end];
        lines.iter().any(|line| line.contains("rdtsc")).then(|| lines.to_vec())
    });
    spans.min_by_key(Vec::len)
}

/// Where a clock that can be set is read on purpose: dates of recordings and of beds, the end of a capture,
/// and the stamps of the kernel, which are by no other clock: what is made of them is watched against the
/// counter.
const MAY_READ_WALL_TIME: [&str; 6] = [
    "whylate-record/src/lib.rs",
    "whylate-record/src/rtt/tap.rs",
    "whylate-record/src/rtt/tap/tests.rs",
    "whylate-net/src/forward/stamps.rs",
    "whylate-net/src/lab/make.rs",
    "whylate-net/src/lab/fan_in.rs",
];

#[test]
fn no_latency_is_taken_from_a_clock_that_can_be_set() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read = 0;
    for name in ["whylate-net", "whylate-port", "whylate-record"] {
        let mut folders = vec![crates.join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                read += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                let may = MAY_READ_WALL_TIME.iter().any(|one| path.ends_with(one));
                let reads = text.contains("Clock::Realtime") || text.contains("SystemTime");
                assert!(may || !reads, "{} reads wall time", path.display());
            }
        }
    }
    assert!(read > 80, "{read} files");
}
