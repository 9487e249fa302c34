//! `whylate delay` between hosts of network namespaces: what is set is what frames are held back for, the
//! truth of each is told, and losses, duplicates and order are exactly those that come out. Nothing
//! outside of the namespaces is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use whylate_clock::{Calibrator, HardwareCounter};
use whylate_model::delay::{DelayEnd, DelayLine, Fate, Truth, TruthSums};
use whylate_model::directory::RunDir;
use whylate_model::run::RunState;
use whylate_model::segments::read_truths;
use whylate_model::series::Definition;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_port::{End, LinkOptions, Setup, Threads, Transport, Wait};
use whylate_stats::rng::Rng;
use whylate_sys::namespace;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::signal::send_to_process;

use crate::between::{Bed, Place};
use crate::delaying::{Delaying, Orders, closes, truths};
use crate::needs;
use crate::program::{self, said, two_at_once, until, whylate};
use crate::requests::{SIGKILL, logged, series};

const BACKENDS: [&str; 2] = ["packet", "xdp"];
/// What is set, in nanoseconds, and how many messages go through.
const STEPS: [(u64, u32); 3] = [(1_000, 100), (100_000, 100), (10_000_000, 10)];
/// Where the server listens, and how its socket keeps up with floods.
const SERVER: &str = "198.18.0.2:7000";
const BUFFER: usize = 64 << 20;
/// Nothing comes any more after so long.
const SILENCE: Duration = Duration::from_secs(2);
/// What cannot come at all is waited for as long.
const NOTHING: Duration = Duration::from_millis(500);
/// What is there comes at once.
const LOOK: Duration = Duration::from_millis(4);
/// What must come has come after so long, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// The last CPU, where a line has it for itself.
fn last() -> CpuId {
    whylate_sys::affinity::get().last().copied().unwrap_or(CpuId(0))
}

/// Sends so many datagrams there, each when the one before has come.
fn there((client, server): &(UdpSocket, UdpSocket), times: u32) {
    let mut buffer = [0; 64];
    for number in 0..times {
        client.send_to(&number.to_le_bytes(), SERVER).unwrap();
        let length = server.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], &number.to_le_bytes()[..]);
    }
}

/// The error that a line tells at its start, in ns: `error 4.44 µs`.
fn error_of(said: &str) -> f64 {
    let told = said.split_once("error ").and_then(|(_, told)| {
        let mut words = told.split_whitespace();
        Some((words.next()?.replace(',', "").parse::<f64>().ok()?, words.next()?))
    });
    match told {
        Some((ns, "ns")) => ns,
        Some((us, "us" | "µs")) => us * 1e3,
        Some((ms, "ms")) => ms * 1e6,
        _ => panic!("no error is told: {said}"),
    }
}

#[test]
fn at_each_step_no_frame_leaves_before_it_is_due_and_the_line_prints_its_error_at_its_start() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let [directory, control] = ["run", "control"].map(|name| home.path().join(name));
        // There is room for the longest.
        let (longest, orders) = (STEPS[STEPS.len() - 1].0, control.display());
        let line = format!("--port {backend} --delay {longest}ns --control {orders}");
        let delaying = Delaying::new(&bed, &format!("{line} -o {}", directory.display()));
        let mut orders = Orders::at(&control);
        let sockets = bed.sockets();
        for (set, messages) in STEPS {
            let told = orders.give(&format!("delay there {set}ns"));
            assert!(told.starts_with("set: there "), "{told}");
            there(&sockets, messages);
        }
        let said = delaying.said.clone();
        let line = delaying.stop();
        closes(&line);
        let apart = error_of(&said) - line.base.error.0 as f64;
        assert!(apart.abs() <= 0.01 * line.base.error.0 as f64, "{}: {said}", line.base.error);
        let sent: u32 = STEPS.iter().map(|(_, messages)| messages).sum();
        assert_eq!(line.directions[0].counts.passed_on, u64::from(sent), "{line:?}");
        let all = truths(&directory);
        assert_eq!(all.len(), sent as usize);
        let hz = program::read(&directory).clock.hz;
        let steps = STEPS.iter().flat_map(|(set, messages)| (0..*messages).map(move |_| *set));
        for (truth, set) in all.iter().zip(steps) {
            let held = truth.due.since(truth.arrival).to_nanos(hz).0;
            assert!(held.abs_diff(set) <= 1, "{set}: {truth:?}");
            assert!(truth.departure.is_some_and(|at| at >= truth.due), "{set}: {truth:?}");
        }
    });
}

/// CPU time of each thread of a process so far, in ticks of the kernel's own clock for that.
fn cpu_times(pid: whylate_model::Pid) -> BTreeMap<String, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", pid.0)).unwrap().flatten();
    let time = |path: std::path::PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        // User and system time are the 14th and 15th fields; names may have blanks in them.
        let (_, rest) = stat.rsplit_once(')')?;
        let of = rest.split_whitespace().skip(11).take(2);
        Some(of.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>())
    };
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    tasks.filter_map(|task| Some((name(&task.path())?, time(task.path())?))).collect()
}

#[test]
fn no_more_than_two_threads_of_a_line_spin_and_one_where_it_has_one_cpu() {
    let _alone = program::alone();
    for backend in needs::offered(BACKENDS) {
        let Some(bed) = Bed::new() else { return };
        let words = format!("--port {backend} --delay 10us");
        for (words, most) in [(words.clone(), 2), (format!("{words} --cpu {}", last()), 1)] {
            let delaying = Delaying::new(&bed, &words);
            let before = cpu_times(delaying.pid());
            let had = |after: &BTreeMap<String, u64>| -> Vec<u64> {
                let had = |(thread, now): (&String, &u64)| {
                    *now - before.get(thread).copied().unwrap_or(0)
                };
                after.iter().map(had).collect()
            };
            // In hundredths of a second, however long one that spins has to wait for them.
            let had = until("a thread has had the time of one that spins", || {
                let had = had(&cpu_times(delaying.pid()));
                had.iter().any(|had| *had >= 20).then_some(had)
            });
            // Whoever has had half of that, and others beside it, spins as well.
            let spinning = had.iter().filter(|had| **had >= 10).count();
            assert!((1..=most).contains(&spinning), "`{words}`: {had:?}");
            closes(&delaying.stop());
        }
    }
}

/// What came out, as a receiver counts it.
#[derive(Debug, Default)]
struct Came {
    seen: BTreeSet<u64>,
    duplicates: u64,
    reordered: u64,
    next: u64,
}

impl Came {
    fn take(&mut self, number: u64) {
        if !self.seen.insert(number) {
            self.duplicates += 1;
            return;
        }
        // RFC 4737.
        self.reordered += u64::from(number < self.next);
        self.next = self.next.max(number + 1);
    }
}

/// Waits until a line that takes orders here has taken in so many frames and holds none. What was lost before
/// it is not in its counts: then nothing comes any more.
fn has_passed_on(control: &Path, count: u64) {
    let mut orders = Orders::at(control);
    let now = || Duration::from_nanos(clock_ns(Clock::Monotonic));
    let begun = now();
    while now().saturating_sub(begun) < SILENCE && !orders.has_passed_on(count) {
        thread::sleep(LOOK);
    }
}

/// Sends numbered datagrams, so many under way at most that there is room for all of them wherever they
/// are; what came of them by the time that the line, which is stopped then, has passed on what it had.
fn numbered(
    (client, server): &(UdpSocket, UdpSocket),
    count: u64,
    (delaying, control): (Delaying, &Path),
) -> (Came, DelayLine) {
    const UNDER_WAY: u64 = 100;
    sockopt::set_socket_recv_buffer_size_force(server, BUFFER).unwrap();
    let (mut came, mut sent, mut bytes) = (Came::default(), 0, [0; 8]);
    server.set_read_timeout(Some(LOOK)).unwrap();
    // What is there, until nothing comes for a moment.
    let mut take = |came: &mut Came| {
        while let Ok(length) = server.recv(&mut bytes) {
            assert_eq!(length, bytes.len());
            came.take(u64::from_le_bytes(bytes));
        }
    };
    until("all are sent", || {
        while sent < count && sent < came.next + UNDER_WAY {
            client.send_to(&u64::to_le_bytes(sent), SERVER).unwrap();
            sent += 1;
        }
        take(&mut came);
        (sent == count).then_some(())
    });
    has_passed_on(control, count);
    let line = delaying.stop();
    let of = line.directions[0].counts;
    until("all that passed has come", || {
        take(&mut came);
        (came.seen.len() as u64 + came.duplicates >= of.passed_on + of.duplicated).then_some(())
    });
    (came, line)
}

/// What the truths of a run add up to, by direction.
fn sums(directory: &Path) -> [TruthSums; 2] {
    let mut sums = [TruthSums::default(); 2];
    for truth in read_truths(&RunDir::open(directory).unwrap()).unwrap() {
        let truth: Truth = truth.unwrap();
        sums[usize::from(truth.direction)].take(&truth);
    }
    sums
}

#[test]
fn losses_duplicates_and_order_are_exactly_those_that_come_out() {
    let wanted = std::env::var("WHYLATE_TESTS_PACKETS").ok().map(|text| text.parse().unwrap());
    let count: u64 = wanted.unwrap_or(3_000);
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let [directory, control] = ["run", "control"].map(|name| home.path().join(name));
        let cpu = last();
        let laws = "--delay 2ms --loss 0.02 --duplicate 0.03 --reorder 0.05 --seed 11";
        let (run, orders) = (directory.display(), control.display());
        let words = format!("--port {backend} --cpu {cpu} {laws} --control {orders} -o {run}");
        let delaying = Delaying::new(&bed, &words);
        let (came, line) = numbered(&bed.sockets(), count, (delaying, &control));
        closes(&line);
        let counts = line.directions[0].counts;
        let drops = line.ends[0].drops.iter().filter(|of| of.frames);
        let before: u64 = drops.map(|of| of.count).sum();
        assert_eq!(counts.received + before, count, "{backend}: {line:?}");
        assert_eq!(counts.overflow + counts.ring_full + counts.duplicates_lost, 0, "{line:?}");
        assert_eq!(counts.passed_on, came.seen.len() as u64, "{backend}: {counts:?}");
        assert_eq!(counts.duplicated, came.duplicates, "{backend}: {counts:?}");
        assert_eq!(counts.reordered, came.reordered, "{backend}: {counts:?}");
        assert_eq!(counts.lost_on_purpose, counts.received - counts.passed_on, "{counts:?}");
        // As often as they should, to six deviations.
        for (n, of, share) in [
            (counts.lost_on_purpose, counts.received, 0.02),
            (counts.duplicated, counts.passed_on, 0.03),
        ] {
            let mean = of as f64 * share;
            assert!((n as f64 - mean).abs() < 6.0 * mean.sqrt(), "{backend}: {n} of {of}");
        }
        assert!(counts.let_past > 0 && counts.reordered > 0, "{counts:?}");
        let log = line.truths.expect("a side log");
        let logged = truths(&directory).len() as u64;
        assert_eq!(logged + log.missed, counts.received + counts.duplicated, "{log:?} {counts:?}");
        if log.missed == 0 {
            assert!(sums(&directory)[0].agree(&counts), "{backend}: {counts:?}");
        }
        assert_eq!(line.seed, 11);
    });
}

/// One end of a link, heard and sent by as whole frames.
fn end(place: &Place, link: &str) -> End {
    let counter = HardwareCounter::open().unwrap();
    let rate = Calibrator::of_this_host(counter).quick().unwrap().hz;
    let setup = Setup { counter, rate, wait: Wait::Poll };
    let open = || End::open(Transport::Packet, link, &LinkOptions::default(), Threads::One, setup);
    place.inside(move || open().unwrap())
}

#[test]
fn traffic_that_is_not_ours_passes_with_every_byte_both_ways() {
    const FRAMES: u64 = 300;
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let delaying = Delaying::new(&bed, &format!("--port {backend} --delay 50us,5us"));
        let mut ends = [end(&bed.client, "client0"), end(&bed.server, "server0")];
        let mut random = Rng::new(3);
        for number in 0..FRAMES {
            // Of any length, of every kind but those of tags, which say what they are, and lengths.
            let length = 60 + random.below(1_455) as usize;
            let mut frame: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            frame[0] &= 0xfe;
            frame[12] = 0x88;
            frame[13] = 0xb5 + (number % 2) as u8;
            let (from, to) = if number % 3 == 0 { (1, 0) } else { (0, 1) };
            ends[from].out().put(length).expect("room").copy_from_slice(&frame);
            ends[from].out().flush().unwrap();
            ends[from].out().urge().unwrap();
            let receiving = &mut ends[to].receiving;
            until("a frame comes", || {
                let burst = receiving.receive(Nanos(100_000_000)).unwrap();
                (0..burst.count).find_map(|at| {
                    let came = receiving.frame(at);
                    (came.bytes == frame && came.stripped.is_none()).then_some(())
                })
            });
        }
        let line = delaying.stop();
        closes(&line);
        let passed: u64 = line.directions.iter().map(|of| of.counts.passed_on).sum();
        assert!(passed >= FRAMES, "{line:?}");
        assert_eq!(line.directions[1].counts.passed_on, FRAMES / 3, "{line:?}");
    });
}

#[test]
fn a_recorded_line_leaves_a_run_that_a_report_opens_also_where_it_was_killed() {
    let _alone = program::alone();
    for killed in [false, true] {
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let delaying =
            Delaying::new(&bed, &format!("--delay 20us,30us -o {}", directory.display()));
        there(&bed.sockets(), 200);
        if killed {
            until("there is a checkpoint of all of them", || {
                let run = RunDir::open(&directory).ok()?.read_run().ok()?;
                let all = series(&run, "delay-lateness-0").is_some_and(|of| of.n == 200);
                all.then_some(())
            });
            send_to_process(delaying.pid(), SIGKILL).unwrap();
            drop(delaying);
        } else {
            let line = delaying.stop();
            assert_eq!((line.ended, line.directions[0].counts.passed_on), (DelayEnd::Stopped, 200));
            assert!(line.ends.len() == 2 && line.capacity_frames >= 64, "{line:?}");
        }
        let run = program::read(&directory);
        let line = run.delay.as_deref().expect("what it did");
        closes(line);
        let (state, ended) = if killed {
            (RunState::Running, DelayEnd::GoingOn)
        } else {
            (RunState::Complete, DelayEnd::Stopped)
        };
        assert_eq!((run.state, line.ended), (state, ended));
        assert_eq!(truths(&directory).len(), 200);
        for (name, definition) in [
            ("delay-residence-0", Definition::Residence),
            ("delay-lateness-0", Definition::SendLateness),
        ] {
            let of = series(&run, name).expect(name);
            assert_eq!((of.definition, of.n), (definition, 200), "{name}");
            assert_eq!(logged(&directory, name).len(), 200);
            assert!(line.directions[0].series.iter().any(|known| known == name), "{line:?}");
        }
        let text = said(&program::reported(&directory, &[])).replace('µ', "u");
        for words in ["What was held back", "a to b", "20 us", "passed on"] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        if !killed {
            let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
            assert!(page.contains("What was held back") && page.contains("late by"));
        }
    }
}

#[test]
fn a_control_socket_changes_what_is_set_tells_counts_refuses_and_ends_it() {
    let _alone = program::alone();
    two_at_once(&BACKENDS, |backend| {
        if needs::lacks(backend) {
            return;
        }
        let Some(bed) = Bed::new() else { return };
        let home = tempfile::tempdir().unwrap();
        let (directory, control) = (home.path().join("run"), home.path().join("control"));
        let words = format!(
            "--port {backend} --delay 10us --control {} -o {}",
            control.display(),
            directory.display()
        );
        let mut delaying = Delaying::new(&bed, &words);
        let mut orders = Orders::at(&control);
        let sockets = bed.sockets();
        there(&sockets, 50);
        let set = orders.give("delay there 3ms");
        assert!(set.starts_with("set: there 3ms, "), "{set}");
        there(&sockets, 50);
        let refused = orders.give("delay 2s");
        assert!(
            refused.starts_with("refused there: ") && refused.contains("4096 frames"),
            "{refused}"
        );
        assert!(orders.give("delay soon").contains("is not a delay"));
        let shown = until("the counts are told", || {
            let shown: serde_json::Value = serde_json::from_str(&orders.give("show")).ok()?;
            (shown["there"]["counts"]["received"] == 100).then_some(shown)
        });
        assert_eq!(shown["there"]["law"], "3ms", "{shown}");
        assert_eq!(orders.give("stop"), "stopping");
        let line = delaying.end();
        assert!(!control.exists(), "it goes with the line");
        assert_eq!((line.ended, line.changes.len()), (DelayEnd::Stopped, 1), "{line:?}");
        assert_eq!((line.changes[0].direction, &*line.changes[0].law), (0, "3ms"));
        let run = program::read(&directory);
        let hz = run.clock.hz;
        let held = |truth: &Truth| truth.due.since(truth.arrival).to_nanos(hz);
        let all = truths(&directory);
        assert!(all[..50].iter().all(|truth| held(truth).0.abs_diff(10_000) <= 1), "{all:?}");
        assert!(all[50..].iter().all(|truth| held(truth).0.abs_diff(3_000_000) <= 1), "{all:?}");
        assert!(all.iter().all(|truth| truth.fate == Fate::Released));
    });
}

#[test]
fn a_box_in_an_open_bed_carries_between_its_ends_and_nothing_passes_without_one() {
    let _alone = program::alone();
    if !needs::root() || needs::program("ip").is_none() {
        return;
    }
    let name = format!("t{}-open", std::process::id());
    let up = whylate(["lab", "up", "--kind", "open", "--name", &name]).output().unwrap();
    let down = || whylate(["lab", "down", "--name", &name]).output().unwrap();
    if up.status.code() != Some(0) {
        let _ = down();
        panic!("{}", said(&up));
    }
    let socket = |part: &str, at: &'static str| {
        let place = format!("/run/netns/whylate-{name}-{part}");
        let socket = thread::spawn(move || {
            namespace::enter_network(Path::new(&place)).unwrap();
            UdpSocket::bind(at).unwrap()
        });
        let socket = socket.join().unwrap();
        socket.set_read_timeout(Some(NOTHING)).unwrap();
        socket
    };
    let sockets = (socket("client", "198.18.0.1:7000"), socket("server", SERVER));
    sockets.0.send_to(b"lost", SERVER).unwrap();
    assert!(sockets.1.recv(&mut [0; 8]).is_err(), "nothing is between them");
    sockets.1.set_read_timeout(Some(PATIENCE)).unwrap();
    for backend in needs::offered(BACKENDS) {
        let words =
            format!("delay to-client to-server --bed {name} --port {backend} --format json");
        let words = format!("{words} --no-netem --no-dma-latency --delay 100us");
        let delaying = Delaying::started(whylate(words.split_whitespace()));
        there(&sockets, 50);
        let line = delaying.stop();
        closes(&line);
        // Nobody asked for an address.
        assert_eq!(line.directions[0].counts.received, 50, "{line:?}");
        assert_eq!(line.directions[1].counts.received, 0, "{line:?}");
        let words = format!("to-client to-server --bed {name} --port {backend} --duration 20ms");
        let mut command = whylate(["forward"]);
        let output = command.args(words.split_whitespace()).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    }
    let words = ["delay", "to-server", "to-client", "--bed", &name, "--no-netem"];
    let swapped = whylate(words).output().unwrap();
    assert_eq!(swapped.status.code(), Some(1));
    assert!(said(&swapped).contains("name to-client first"), "{}", said(&swapped));
    let output = down();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let words = ["delay", "to-client", "to-server", "--bed", &name];
    let gone = whylate(words).output().unwrap();
    assert_eq!(gone.status.code(), Some(1));
    assert!(said(&gone).contains("there is no test network"), "{}", said(&gone));
}

#[test]
fn netem_stands_beside_a_line_with_its_numbers_or_with_the_reason_why_not() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    let delayed = |more: &str| -> DelayLine {
        let words =
            format!("delay a b --port packet --delay 20us --duration 20ms --format json {more}");
        let words = format!("{words} --no-dma-latency");
        let mut command = whylate(words.split_whitespace());
        let output = bed.between.inside(move || command.output()).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
        let line: DelayLine = serde_json::from_slice(&output.stdout).unwrap();
        program::doubted(output.status.code(), &line.warnings, &[]);
        line
    };
    let netem = delayed("").netem.expect("it was asked for");
    assert_eq!((netem.name.as_str(), netem.delay), ("netem", Nanos(20_000)));
    if let Some(why) = &netem.missing {
        assert!(!why.is_empty() && netem.errors.is_empty(), "{netem:?}");
    } else {
        let medians = netem.errors.iter().filter(|of| (of.percent - 50.0).abs() < 1e-9);
        assert!(medians.filter_map(|of| of.value_ns).count() == 1 && netem.n > 0, "{netem:?}");
    }
    assert_eq!(delayed("--no-netem").netem, None);
}

#[test]
fn delays_of_all_kinds_are_kept_and_the_seed_is_recorded() {
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    let home = tempfile::tempdir().unwrap();
    let steps = home.path().join("steps");
    std::fs::write(&steps, "0 20us\n10s 1ms\n").unwrap();
    let cases = [
        ("--delay uniform:20us..40us".to_owned(), 20_000, 40_000),
        ("--delay 30us --jitter 10us".to_owned(), 20_000, 40_000),
        ("--delay normal:100us,1us".to_owned(), 90_000, 107_000),
        ("--delay exponential:20us,1us".to_owned(), 20_000, 42_000),
        (format!("--delay schedule:{}", steps.display()), 20_000, 20_000),
    ];
    for (number, (words, low, high)) in cases.into_iter().enumerate() {
        let directory = home.path().join(number.to_string());
        let words = format!("{words} --seed 5 -o {}", directory.display());
        let delaying = Delaying::new(&bed, &words);
        there(&bed.sockets(), 200);
        let line = delaying.stop();
        assert_eq!(line.seed, 5);
        let hz = program::read(&directory).clock.hz;
        let all = truths(&directory);
        let held = |truth: &Truth| truth.due.since(truth.arrival).to_nanos(hz).0;
        let all: Vec<u64> = all.iter().map(held).collect();
        assert!(all.iter().all(|held| (low - 1..=high + 1).contains(held)), "{words}: {all:?}");
        let distinct: BTreeSet<&u64> = all.iter().collect();
        assert_eq!(distinct.len() > 50, low != high, "{words}");
    }
}

#[test]
fn a_limited_rate_drops_what_would_wait_too_long_and_counts_it() {
    const SENT: u64 = 100;
    let _alone = program::alone();
    let Some(bed) = Bed::new() else { return };
    let home = tempfile::tempdir().unwrap();
    let [directory, control] = ["run", "control"].map(|name| home.path().join(name));
    // A frame every millisecond, and one may wait for ten.
    let (run, orders) = (directory.display(), control.display());
    let delaying = Delaying::new(&bed, &format!("--rate 1kpps --control {orders} -o {run}"));
    let (client, server) = bed.sockets();
    for number in 0..SENT {
        client.send_to(&number.to_le_bytes(), SERVER).unwrap();
    }
    has_passed_on(&control, SENT);
    let line = delaying.stop();
    server.set_read_timeout(Some(LOOK)).unwrap();
    let mut came = std::iter::from_fn(|| server.recv(&mut [0; 8]).ok()).count() as u64;
    closes(&line);
    let counts = line.directions[0].counts;
    until("all that passed has come", || {
        came += u64::from(came < counts.passed_on && server.recv(&mut [0; 8]).is_ok());
        (came >= counts.passed_on).then_some(())
    });
    assert_eq!((counts.received, counts.passed_on), (SENT, came), "{line:?}");
    assert!(came >= 10, "{line:?}");
    // So many pass in the time over which all of them came, and ten behind the last of it.
    let hz = program::read(&directory).clock.hz;
    let all = truths(&directory);
    let arrivals = || all.iter().map(|truth| truth.arrival);
    let span = arrivals().max().unwrap().since(arrivals().min().unwrap()).to_nanos(hz);
    assert!(came <= 12 + span.0 / 1_000_000, "{came} in {span}: {line:?}");
    assert_eq!(counts.rate_dropped, SENT - came, "{line:?}");
    assert!(!line.warnings.iter().any(|of| matches!(of, Warning::DelayOverflow { .. })));
}
