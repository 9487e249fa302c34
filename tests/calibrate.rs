//! Backends through a delay line: every row of both logs is counted, what is planted is told, and later
//! measurements know how far they can be trusted.

mod ended;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use whylate_host::calibrations::{self, Store};
use whylate_model::Nanos;
use whylate_model::calibration::{CalibratedBackend, Calibration};
use whylate_model::calibration_parts::{CalibrationParts, PartOf, PlantedFound};
use whylate_model::host::Fingerprint;
use whylate_model::lab::BedKind;
use whylate_model::run::{Run, RunState};
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, said, whylate};
use crate::requests::{flow, logged, series};

/// A calibration of a test, with a memory of its own.
struct Calibrated {
    directory: PathBuf,
    state: PathBuf,
    run: Run,
    output: Output,
    _home: tempfile::TempDir,
}

/// May this machine calibrate?
fn ready() -> bool {
    needs::root() && needs::program("ip").is_some() && needs::cpus(2).is_some()
}

fn calibrate(words: &str) -> Calibrated {
    let home = tempfile::tempdir().unwrap();
    let (directory, state) = (home.path().join("run"), home.path().join("state"));
    let mut command = whylate(["calibrate"]);
    command.args(words.split_whitespace()).arg("-o").arg(&directory).env("XDG_STATE_HOME", &state);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {}", said(&output));
    let run = program::read(&directory);
    // What the words plant is told in this way.
    program::ended_but_for(output.status.code(), &run, &["PLANTED ON PURPOSE: "]);
    Calibrated { directory, state, run, output, _home: home }
}

fn found(run: &Run) -> (&Calibration, &CalibrationParts) {
    let of = run.calibration.as_deref().zip(run.calibration_parts.as_deref());
    of.expect("a calibration and what stands behind it")
}

fn backend<'a>(of: &'a Calibration, name: &str) -> &'a CalibratedBackend {
    of.of(name).unwrap_or_else(|| panic!("no {name}: {:?}", of.missing))
}

/// What was stored of an error as it was planted.
fn planted(run: &Run) -> &PlantedFound {
    let [planted] = &found(run).1.planted[..] else { panic!("one backend was planted into") };
    planted
}

/// Both logs of every part met, and every row of either is in one count.
fn parts_add_up(of: &Calibrated) {
    let (calibration, parts) = found(&of.run);
    for part in &parts.parts {
        assert_eq!(part.failed, None, "{part:?}");
        let place = of.directory.join(&part.directory);
        let client = program::read(&place.join("client"));
        assert!(flow(&client).packets.add_up());
        let Some(met) = &part.met else {
            assert_eq!((part.between, part.commands.len()), (PartOf::BackToBack, 1));
            continue;
        };
        assert!(met.adds_up(), "{met:?}");
        assert_eq!((met.again + met.too_early, part.commands.len()), (0, 2), "{met:?}");
        assert_eq!(met.joined + met.lost_behind, met.requests - met.lost_before, "{met:?}");
        let line = program::read(&place.join("line"));
        let counts = line.delay.expect("a line").directions[0].counts;
        // What the line counts of this direction is all in its log, warm-up and all.
        let logged = met.passed + met.foreign + met.copies;
        assert!(counts.closes() && counts.received >= logged, "{counts:?} {met:?}");
    }
    for of in &calibration.backends {
        let mine = parts.parts.iter().filter(|part| part.backend == of.backend);
        let at_first = mine.filter(|part| part.between == PartOf::Line { delay: Nanos(20_000) });
        let joined: u64 = at_first.filter_map(|part| part.met).map(|met| met.joined).sum();
        assert_eq!(joined, of.n, "{}", of.backend);
    }
}

/// A backend has its numbers of so many runs, and each error is in the log.
fn is_held_against_the_truth(of: &Calibrated, (name, runs): (&str, u32)) {
    let one = backend(found(&of.run).0, name);
    assert!(one.n > 0 && one.runs == runs && one.error_min_ns > 0, "{one:?}");
    assert!(one.base.is_some() && one.definition == "one-way", "{one:?}");
    // The clock of the client starts before the line's and stops after it.
    // Where the host made runs that differ, they are worth too little for a median.
    assert!(one.errors_raw[0].error_ns.is_none_or(|error| error > 0.0), "{one:?}");
    let measured = series(&of.run, &format!("{}-measured", name.replace(' ', "-"))).unwrap();
    assert_eq!(measured.n, one.n);
    let [above, below] = whylate_record::calibrate::error_tags(name);
    let errors = logged(&of.directory, &above).len() + logged(&of.directory, &below).len();
    assert_eq!(errors, one.n, "every error is in the log");
}

#[test]
fn every_backend_is_held_against_the_truth_message_by_message_and_a_later_run_knows_its_limit() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    if !ready() {
        return;
    }
    let of = calibrate(
        "--backends udp:spin,xdp:spin --delays 20us,100us --rate 4kpps --runs 3 \
         --duration 100ms --warmup 10ms --seed 5",
    );
    let (calibration, parts) = found(&of.run);
    assert_eq!(of.run.state, RunState::Complete);
    let names: Vec<&str> = calibration.backends.iter().map(|of| of.backend.as_str()).collect();
    assert_eq!(names, ["udp spin", "xdp spin"], "{:?}", calibration.missing);
    parts_add_up(&of);
    // Two delays and back to back, of each, in each round, in an order of its own.
    assert_eq!((parts.order.len(), parts.parts.len()), (3, 18));
    let between = |order: &Vec<u32>| {
        let part = |number: &u32| &parts.parts[*number as usize];
        order.iter().map(|of| (part(of).backend.clone(), part(of).between)).collect::<Vec<_>>()
    };
    assert_ne!(between(&parts.order[0]), between(&parts.order[1]));
    for name in names {
        is_held_against_the_truth(&of, (name, 3));
        let slope = parts.slopes.iter().find(|of| of.backend == name).unwrap();
        assert!(slope.slope.is_some(), "two delays");
    }
    assert!(parts.planted.is_empty());
    let text = said(&of.output);
    assert!(text.contains("How close each backend comes to the truth"), "{text}");
    // The line's own error, and beside it netem's or why there is none.
    let [line, netem] = &calibration.emulators[..] else { panic!("{:?}", calibration.emulators) };
    assert_eq!((line.name.as_str(), netem.name.as_str()), ("the delay line", "netem"));
    assert!(line.n > 0 && (netem.n > 0) == netem.missing.is_none(), "{netem:?}");
    let page = std::fs::read_to_string(of.directory.join("report.html")).unwrap();
    for told in [&text, &page] {
        assert!(told.contains("Delay achieved minus delay set"), "{text}");
    }
    assert!(page.contains("id=\"calibrated\""));
    for lines in ["lines of the histogram log are", "line of the histogram log is"] {
        assert!(!page.contains(&format!("{lines} not drawn")), "no riddle is left on the page");
    }
    if of.output.status.code() == Some(0) {
        a_later_run_knows(&of, calibration);
    } else {
        is_not_kept(&of);
    }
}

/// What is not to be relied on says nothing of later measurements.
fn is_not_kept(of: &Calibrated) {
    assert!(said(&of.output).contains("not kept for later measurements"), "{}", said(&of.output));
    assert!(!of.state.join("whylate/calibrations.json").exists());
}

/// What calibrations are of, as a later run says it.
const CALIBRATED_WAY: &str =
    "calibrated for one-way latency over an open test network (delay line at ";
/// What a run over loopback is of, as it says it.
const LATER_WAY: &str = "), not for round trips over loopback";

/// Keeps a calibration of `udp spin` that holds up to this percentile, for this host as it was read back;
/// of one way, or, as those of before that was kept, of nobody knows which.
fn keep(state: &Path, host: &Fingerprint, limit: Option<f64>, way: Option<calibrations::Way>) {
    let mut store = Store::default();
    let planted = calibrations::Calibrated {
        backend: "udp spin".to_owned(),
        limit_raw: None,
        limit_compensated: limit,
        base: Some(Nanos(3_000)),
        tolerance: Nanos(1_000),
        per_second: 2_000.0,
        bytes: 64,
        way,
        at_ns: 951_827_696_000_000_000,
        run: "planted".to_owned(),
    };
    store.add(host, [planted]);
    let mut json = serde_json::to_value(&store).unwrap();
    json["format_version"] = 1.into();
    let place = state.join("whylate");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("calibrations.json"), json.to_string()).unwrap();
}

/// A dash, with all letters and without.
fn is_absent(cell: &str) -> bool {
    ["-", "–"].contains(&cell)
}

/// Cells of a row of the table of all latencies.
fn row<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    let begins = |line: &&str| line.strip_prefix(label).is_some_and(|rest| rest.starts_with(' '));
    // The first screen's table stands above it, with columns of its own, and that of intervals below.
    let mut rows = text.lines().skip_while(|line| !line.ends_with(" class"));
    let line = rows.find(begins).unwrap_or_else(|| panic!("no {label} in\n{text}"));
    // Two spaces stand between cells, and one between a number and its unit.
    line[label.len()..].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn what_lies_beyond_a_kept_limit_is_marked_wherever_it_is_shown_and_stale_where_the_host_changed() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    let measured = |name: &str| {
        let directory = home.path().join(name);
        let words = "rtt --wait spin --rate 2kpps --duration 300ms --warmup 50ms --no-trace \
                     --percentiles 50,90,99";
        let mut command = whylate(words.split_whitespace());
        let output =
            command.arg("-o").arg(&directory).env("XDG_STATE_HOME", &state).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
        let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
        let run = program::read(&directory);
        program::ended(output.status.code(), &run);
        (run, String::from_utf8(output.stdout).unwrap(), page)
    };
    let (run, text, page) = measured("unknown");
    assert!(flow(&run).trust.is_none());
    assert!(row(&text, "response time").iter().all(|cell| !cell.starts_with('~')), "{text}");
    assert!(!page.contains("class=\"beyond\""));
    let way = calibrations::Way {
        definition: "one-way".to_owned(),
        over: calibrations::over_bed(Some(BedKind::Open)),
        delay: Some("20.0us".to_owned()),
    };
    keep(&state, &run.host, Some(50.0), Some(way));
    let (run, text, page) = measured("known");
    assert_eq!(flow(&run).trust.as_ref().and_then(|of| of.limit_percent), Some(50.0));
    for label in ["service time", "response time"] {
        // Minimum, p50, p90, p99, maximum.
        let cells = row(&text, label);
        assert!(!cells[0].starts_with('~') && !cells[1].starts_with('~'), "{text}");
        // The largest of what was lost is not shown.
        assert!(cells[2..5].iter().all(|cell| is_absent(cell) || cell.starts_with('~')), "{text}");
    }
    let late = row(&text, "send delay");
    assert!(late.iter().all(|cell| !cell.starts_with('~')), "the client's own: {text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("numbers beyond p50, marked ~") && !flat.contains("STALE"), "{text}");
    // Rate and size are those that were kept, and are not spoken of.
    let differs = format!("Conditions differ: {CALIBRATED_WAY}20 us{LATER_WAY}.");
    assert!(flat.replace('µ', "u").contains(&differs), "{text}");
    let told = flow(&run).trust.as_ref().map(|of| of.other.clone());
    assert_eq!(told, Some(vec![format!("{CALIBRATED_WAY}20.0us{LATER_WAY}")]));
    assert!(!page.contains("STALE"));
    let shown = ["service time", "response time"]
        .iter()
        .any(|label| !row(&text, label)[2..5].iter().all(|cell| is_absent(cell)));
    assert_eq!(page.contains("<td class=\"beyond\">~"), shown, "{text}");
    let changed = Fingerprint { kernel: "0.0.1".to_owned(), ..run.host.clone() };
    keep(&state, &changed, None, None);
    let (_, text, page) = measured("changed");
    let grey = |cell: &&str| is_absent(cell) || cell.starts_with('~');
    assert!(row(&text, "response time")[1..5].iter().all(grey), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("all numbers marked ~"), "{text}");
    for told in [&flat, &page] {
        assert!(told.contains("STALE: kernel was 0.0.1 and is"), "{text}");
    }
    assert!(flat.contains("over which path, is not known."), "{text}");
}

/// A recording by a calibrated backend has its limit; on a host that has changed since it is told what.
fn a_later_run_knows(of: &Calibrated, calibration: &Calibration) {
    let later = |part: &str| {
        let directory = of.directory.with_file_name(part);
        let words = "rtt --wait spin --rate 2kpps --duration 100ms --warmup 10ms --no-trace";
        let mut command = whylate(words.split_whitespace());
        let output =
            command.arg("-o").arg(&directory).env("XDG_STATE_HOME", &of.state).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
        let run = program::read(&directory);
        program::ended(output.status.code(), &run);
        flow(&run).trust.clone().expect("its backend was calibrated")
    };
    let told = later("later");
    let limit = backend(calibration, "udp spin").limit_compensated.percent;
    assert_eq!((told.limit_percent, told.backend.as_str()), (limit, "udp spin"));
    assert_eq!(told.stale, None);
    // The rate differs, too, unless a slow machine had lowered it to this one.
    let [rate @ .., way] = &told.other[..] else { panic!("the way differs: {told:?}") };
    assert!(rate.len() <= 1, "{told:?}");
    for rate in rate {
        let differs = rate.starts_with("calibrated at ") && rate.ends_with("/s, not 2,000/s");
        assert!(differs, "{rate}");
    }
    // The first delay is the one that the curves are of.
    assert_eq!(*way, format!("{CALIBRATED_WAY}{}{LATER_WAY}", Nanos(20_000)));
    let file = of.state.join("whylate/calibrations.json");
    let kernel = format!("\"kernel\": \"{}\"", of.run.host.kernel);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains(&kernel), "{kept}");
    std::fs::write(&file, kept.replace(&kernel, "\"kernel\": \"0.0.1\"")).unwrap();
    let told = later("changed");
    let stale = told.stale.expect("another kernel");
    assert!(stale.contains("kernel was 0.0.1 and is"), "{stale}");
    assert_eq!(told.limit_percent, limit);
}

/// What the client planted is what calibration and client say alike, and as many messages as were drawn.
fn was_planted(of: &Calibrated, one_in: u64, least_ns: f64) {
    let found = planted(&of.run);
    let parts = &self::found(&of.run).1.parts;
    let lost: u64 =
        parts.iter().filter_map(|part| part.met).map(|of| of.requests - of.joined).sum();
    let (all, parts) = (found.planted + found.unplanted, parts.len() as u64);
    // One of each so many that follow each other, in each part from its first message on; lost ones are none.
    let most = (all + lost).div_ceil(one_in) + parts;
    assert!(found.planted <= most, "{found:?}, {lost} lost");
    assert!(found.planted + lost + parts >= all / one_in, "{found:?}, {lost} lost");
    // By the client's own counter.
    assert!(found.size_ns.expect("the client tells") >= least_ns, "{found:?}");
}

#[test]
fn what_is_planted_is_told_loudly_and_kept_for_nobody() {
    let _alone = program::alone();
    if !ready() {
        return;
    }
    // Frames of the packet socket are a third kind of backend, beside those that are held against the truth
    // in more runs.
    for (port, plant, one_in, least_ns) in [
        ("udp", "--plant-bias 500ns", 2, 450.0),
        ("packet", "--plant-tail 1in50:5ms --tolerance 1ms", 50, 4.99e6),
    ] {
        let of = calibrate(&format!(
            "--backends {port}:spin --delays 20us --rate 2kpps --runs 1 --duration 100ms --warmup 10ms \
             --line-port packet --seed 1 {plant}"
        ));
        parts_add_up(&of);
        is_held_against_the_truth(&of, (&format!("{port} spin"), 1));
        assert_eq!(of.output.status.code(), Some(4));
        let is_planted = |of: &Warning| matches!(of, Warning::Planted { .. });
        assert!(of.run.warnings.iter().any(is_planted));
        assert!(said(&of.output).contains("PLANTED ON PURPOSE"), "{}", said(&of.output));
        assert!(!of.state.join("whylate/calibrations.json").exists());
        was_planted(&of, one_in, least_ns);
        // The clients that were late say so as well, and those of the base were not.
        for part in &found(&of.run).1.parts {
            let client = program::read(&of.directory.join(&part.directory).join("client"));
            let through = matches!(part.between, PartOf::Line { .. });
            assert_eq!(client.warnings.iter().any(is_planted), through, "{part:?}");
        }
    }
}

#[test]
fn a_rate_that_none_holds_is_lowered_for_all_and_dpdk_among_others_is_named_as_not_calibrated() {
    const ASKED: f64 = 2e6;
    const LAST_TRY: u32 = 3;
    let _alone = program::alone();
    if !ready() {
        return;
    }
    let of = calibrate(
        "--backends udp:spin,dpdk:spin,packet:spin --delays 20us --rate 2Mpps --runs 1 --duration 100ms \
         --warmup 10ms --line-port packet --seed 6",
    );
    let (calibration, parts) = found(&of.run);
    let [missing] = &calibration.missing[..] else { panic!("{:?}", calibration.missing) };
    assert_eq!(missing.backend, "dpdk spin");
    assert!(missing.why.contains("belongs to the process"), "{missing:?}");
    assert!(said(&of.output).contains("dpdk spin was not calibrated"), "{}", said(&of.output));
    assert!((parts.wanted_pps - ASKED).abs() < 1.0, "{parts:?}");
    if parts.common_pps >= 0.99 * ASKED {
        return needs::spoilt("this machine holds two million requests a second");
    }
    let last = parts.held.iter().map(|held| held.attempt).max().expect("a rate was tried");
    assert!(last > 0, "it was lowered: {:?}", parts.held);
    for attempt in 0..=last {
        let tried = parts.held.iter().filter(|held| held.attempt == attempt);
        let mut names: Vec<&str> = tried.map(|held| held.backend.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["packet spin", "udp spin"], "{:?}", parts.held);
    }
    let of_last = || parts.held.iter().filter(|held| held.attempt == last);
    let is_held =
        of_last().all(|held| held.sent_pps.min(held.received_pps) >= 0.99 * held.asked_pps);
    let asked = of_last().map(|held| held.asked_pps).fold(0.0, f64::max);
    if is_held {
        assert!((parts.common_pps - asked).abs() < 1.0, "{parts:?}");
    } else {
        // All tries are used up: they are asked for a little less than the slowest held at the last.
        assert!(last == LAST_TRY && parts.common_pps < asked, "{parts:?}");
    }
}

#[test]
fn what_cannot_be_calibrated_is_refused_with_what_to_do_and_nothing_is_left() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for (words, part) in [
        (&["--delays", "10us,10us"][..], "is there twice"),
        (&["--delays", "0s"], "zero is no limit"),
        (&["--backends", "dpdk:spin"], "belongs to the process"),
        (&["--backends", "tcp"], "is not a backend"),
        (&["--line-port", "udp"], "by packet or xdp"),
        (&["--metric", "(?P<value>[0-9]+)"], "--client"),
        (&["--client", "ping x"], "--metric"),
        (&["--client", "ping x", "--metric", "latency"], "name a group"),
        (&["--client", "ping x", "--metric", "("], "no regular expression"),
        (&["--client", " ", "--metric", "(?P<value>[0-9]+)"], "names no program"),
        (&["--plant-tail", "1in1:1us"], "1in10000:20us"),
    ] {
        let directory = home.path().join("run");
        let output = whylate(["calibrate"]).args(words).arg("-o").arg(&directory).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(part), "{words:?}: {}", said(&output));
        assert!(!directory.exists(), "{words:?}");
    }
}

#[test]
fn without_rights_or_a_second_cpu_it_says_what_is_missing_and_what_is_left() {
    let _alone = program::alone();
    let (Some(setpriv), Some(taskset)) = (needs::program("setpriv"), needs::program("taskset"))
    else {
        return;
    };
    let Some(cpus) = needs::cpus(2).filter(|_| needs::root()) else { return };
    let home = tempfile::tempdir().unwrap();
    let run = |mut command: Command, part: &str| {
        let directory = home.path().join(part);
        let words = ["calibrate", "--quick", "--backends", "udp:spin"];
        command.arg(program::path()).args(words).arg("-o").arg(&directory);
        command.env("NO_COLOR", "1").env("XDG_STATE_HOME", home.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(!directory.exists(), "nothing was measured, and nothing is left");
        said(&output)
    };
    let mut without = Command::new(setpriv);
    let caps = "-sys_admin,-net_admin";
    without.args(["--bounding-set", caps, "--inh-caps", caps]);
    let text = run(without, "rights");
    assert!(text.contains("CAP_SYS_ADMIN") && text.contains("whylate delay --proxy"), "{text}");
    let mut alone = Command::new(taskset);
    alone.args(["-c", &cpus[0].to_string()]);
    let text = run(alone, "alone");
    assert!(text.contains("a CPU of their own"), "{text}");
}
