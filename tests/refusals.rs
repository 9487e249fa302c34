//! Words that say nothing that can be done: each is refused with status 2, the reason and what to write, and
//! nothing is left behind.

use std::path::Path;
use std::process::Output;

use whylate_host::last_run::LastRun;
use whylate_model::paper::PAPER_FILE;
use whylate_model::run::FORMAT_VERSION;

use crate::directories;
use crate::program::{self, as_used, said, whylate};

fn flat(output: &Output) -> String {
    // One space for each line break: where lines break is not what is judged here.
    said(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong on one line, and where there is one a command to go on with on the next.
fn has_the_form(text: &str) {
    // What a killed one left, as tests of other programs leave it on purpose, is mended by whoever starts next.
    let own = |line: &&str| !line.starts_with("left by process ");
    let lines: Vec<&str> = text.trim_end().lines().filter(own).collect();
    let next = match lines.as_slice() {
        [wrong] | [wrong, _] if !wrong.starts_with("error: ") => panic!("{text}"),
        [_] => return,
        [_, next] => next.strip_prefix("  try: "),
        _ => None,
    };
    assert!(next.is_some_and(|next| !next.is_empty()), "{text}");
}

/// Runs in an empty directory, which must stay empty.
fn refused(words: &[&str], status: i32, wanted: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let output = as_used(words).current_dir(home.path()).output().unwrap();
    let text = flat(&output);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {text}");
    has_the_form(&String::from_utf8_lossy(&output.stderr));
    for word in wanted {
        assert!(text.contains(word), "{words:?}: no `{word}` in: {text}");
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "{words:?}: something is left");
}

#[test]
fn a_refusal_names_the_command_to_go_on_with_where_there_is_one() {
    for (words, status, next) in [
        ("gaps --cpus 4095", 2, "try: whylate gaps --cpus "),
        ("--cpus 4095", 2, "try: whylate --cpus "),
        ("gaps --nonsense", 2, "try: whylate gaps -h"),
        ("gaps --format xml", 2, "try: whylate gaps -h"),
        ("--nonsense", 2, "try: whylate -h"),
        ("gasp", 2, "try: whylate gaps"),
        ("rtt --port xdp --qdisc", 2, " --transport xdp"),
        ("forward a b --wait poll", 2, " a b --wait spin"),
        ("gaps --duration -1", 2, "try: whylate gaps -h"),
        ("report nosuch", 1, "try: ls -d */run.json"),
        ("report .", 1, "try: ls -d */run.json"),
        ("rtt --bed nosuch", 1, "try: whylate lab up --name nosuch"),
        ("compare a", 2, "try: whylate compare BEFORE AFTER"),
        ("compare a b c d", 2, "try: whylate compare AFTER.. --baseline BEFORE.. for several"),
        ("report a -o b", 2, "try: whylate report a --html b"),
        ("report a --out=b", 2, "try: whylate report a --html=b"),
        ("compare --baseline a b", 2, "try: whylate compare AFTER --baseline BEFORE"),
    ] {
        refused(&words.split(' ').collect::<Vec<_>>(), status, &["error: ", next]);
    }
    // What is wrong says what to write.
    refused(&["rtt", "--arrivals", "closed", "--rate", "1kpps"], 2, &["leave --rate out"]);
}

#[test]
fn options_of_rta_that_would_change_nothing_are_refused_with_the_reason() {
    for option in [
        &["-o", "run"][..],
        &["--duration", "1s"],
        &["--cpus", "0"],
        &["--warmup", "1s"],
        &["--housekeeping", "0"],
        &["--records", "10"],
        &["--percentiles", "50"],
        &["--quick"],
        &["--no-trace"],
        &["--no-dma-latency"],
    ] {
        let words = [&["rta", "--task", "1ms 8ms"], option].concat();
        refused(&words, 2, &["without --run", "add --run"]);
    }
    refused(&["rta", "--task", "1ms 8ms", "--seed", "3"], 2, &["--simulate", "leave --seed out"]);
    for policy in ["edf", "cbs"] {
        let words = ["rta", "--task", "1ms 8ms", "--policy", policy, "--assign", "rm"];
        refused(&words, 2, &["--assign", "--policy fp"]);
    }
}

#[test]
fn a_threshold_that_no_gap_can_reach_is_refused() {
    let threads = ["threads", "--thread", "PERIODIC 1ms 8ms", "--duration", "1s"];
    for words in [&["gaps", "--duration", "1s"][..], &["wake", "--duration", "1s"], &threads] {
        let wanted = ["--threshold", "no stall is longer", "1.00s"];
        refused(&[words, &["--threshold", "100h"]].concat(), 2, &wanted);
    }
    refused(&["gaps", "--stop-above", "10s"], 2, &["--stop-above", "no stall is longer"]);
}

#[test]
fn options_that_exclude_each_other_are_refused_before_anything_is_measured() {
    for words in [
        &["threads", "--thread", "PERIODIC 1ms 8ms", "--require-trace", "--no-trace"][..],
        &["merge", "a", "b", "-o", "c", "--without-tables", "--max-disk", "1GiB"],
        &["report", "a", "--percentiles", "50", "--html", "page.html"],
    ] {
        refused(words, 2, &["cannot be used with"]);
    }
    let words = ["threads", "--thread", "PERIODIC 1ms 8ms", "--suggest-reservation", "1%"];
    refused(&[&words[..], &["--format", "json"]].concat(), 2, &["--suggest-reservation", "json"]);
}

#[test]
fn options_of_a_box_are_refused_beside_two_captures_and_those_of_captures_beside_a_box() {
    for option in [
        &["--sizes", "64"][..],
        &["--rate", "1kpps"],
        &["--rounds", "3"],
        &["--duration", "1s"],
        &["--warmup", "1s"],
        &["--cpus", "0"],
        &["--box-cpus", "0"],
        &["--transport", "udp"],
        &["--wait", "spin"],
        &["--interfaces", "a,b"],
        &["--loopback", "a,b"],
        &["--line", "a,b,c,d"],
        &["--from", "198.18.0.1"],
        &["--to", "198.18.0.2"],
        &["--no-throughput"],
        &["--trials", "3"],
        &["--trial-time", "1s"],
        &["--tolerated-loss", "1%"],
        &["--fan-in", "4"],
        &["--fan-in-from", "a,b"],
        &["--fan-in-to", "c"],
        &["--fan-in-takes", "1Gbit/s"],
        &["--fan-in-sends", "2,1"],
        &["--fan-in-weights", "2,1"],
        &["--config", "local"],
        &["--quick"],
        &["--no-trace"],
        &["--housekeeping", "0"],
        &["--no-dma-latency"],
    ] {
        let words = [&["device", "--captures", "a", "b"], option].concat();
        refused(&words, 2, &["--captures", option[0], "cannot be used with"]);
    }
    for option in [&["--window", "2s"][..], &["--ignore", "mac"], &["--stamped", "end"], &["--cut"]]
    {
        let words = [&["device", "--box", "bridge"], option].concat();
        refused(&words, 2, &["--box", option[0], "cannot be used with"]);
    }
}

#[test]
fn options_of_a_search_that_is_left_out_and_addresses_of_a_bed_are_refused() {
    for option in [["--trials", "3"], ["--trial-time", "1s"], ["--tolerated-loss", "1%"]] {
        let words = [&["device", "--box", "bridge", "--no-throughput"][..], &option].concat();
        refused(&words, 2, &["--no-throughput", option[0], "cannot be used with"]);
    }
    for option in [["--from", "198.18.0.1"], ["--to", "198.18.0.2"]] {
        let words = [&["device", "--box", "bridge"][..], &option].concat();
        let leave = format!("leave {} out", option[0]);
        refused(&words, 2, &["test network of its own", &leave, "try: whylate device "]);
    }
}

#[test]
fn what_a_set_does_not_have_is_refused_with_the_option_that_is_of_it() {
    let threads = ["threads", "--thread", "PERIODIC 1ms 8ms"];
    for words in [&["wake"][..], &threads] {
        let words = [words, &["--load", "disk,cpu:50%", "--bed", "lab"]].concat();
        refused(&words, 2, &["network load", "leave --bed out"]);
    }
    refused(&[&threads[..], &["--rt-app-log", "logs"]].concat(), 2, &["leave --rt-app-log out"]);
    let set = program::file("../examples/audio-video.toml");
    let set = set.to_str().unwrap();
    refused(&["rta", "--file", set, "--timer", "NATIVE"], 2, &["leave --timer out"]);
}

#[test]
fn a_tenth_that_is_too_short_to_measure_is_refused_by_every_command_that_takes_one() {
    for words in [
        &["gaps"][..],
        &["wake"],
        &["rtt"],
        &["threads", "--thread", "PERIODIC 1ms 8ms"],
        &["rta", "--task", "1ms 8ms", "--run"],
    ] {
        let words = [words, &["--quick", "--duration", "99ms"]].concat();
        refused(&words, 2, &["a tenth of 99.0ms is too short", "leave --quick out"]);
    }
}

#[test]
fn a_flow_has_a_count_in_flight_as_the_option_has() {
    for number in ["0", "x", "-1"] {
        let flow = format!("load: outstanding={number}");
        refused(&["rtt", "--flow", &flow], 2, &[number, "write 1 or more, such as 8"]);
        let option = format!("--outstanding={number}");
        refused(&["rtt", &option], 2, &[number, "write 1 or more, such as 8"]);
    }
    let words = ["rtt", "--wait", "block", "--flow", "load: arrivals=closed outstanding=2"];
    refused(&words, 2, &["load", "a closed loop has 1 request in flight", "leave outstanding out"]);
}

#[test]
fn what_chooses_from_the_text_of_a_report_is_refused_where_there_is_none() {
    for words in [
        "--quick",
        "gaps",
        "wake",
        "rtt",
        "threads --thread CPU",
        "rta --task CPU",
        "switch-cost",
        "device --box bridge",
        "calibrate",
        "watch 4021",
        "merge a b -o c",
        "report a",
        "compare a b",
        "paper hourglass2002",
    ] {
        for option in ["--full", "--percentiles 50"] {
            let has_none = ["compare", "paper"].iter().any(|of| words.starts_with(of));
            if has_none && option != "--full" {
                continue;
            }
            let words = format!("{words} --format json {option}");
            let (name, _) = option.split_once(' ').unwrap_or((option, ""));
            let leave = format!("leave {name} out");
            refused(&words.split(' ').collect::<Vec<_>>(), 2, &["JSON has everything", &leave]);
        }
    }
    refused(
        &["report", "a", "--html", "page.html", "--full"],
        2,
        &["--full", "cannot be used with"],
    );
    let paper = program::file("papers/hourglass2002");
    let paper = paper.to_str().unwrap();
    for option in [&["--timeline"][..], &["--percentiles", "50"]] {
        let leave = format!("leave {} out", option[0]);
        refused(&[&["report", paper], option].concat(), 2, &["a paper's experiments", &leave]);
    }
}

#[test]
fn what_the_words_name_and_this_host_has_not_is_usage_in_every_command() {
    for words in [
        "gaps --cpus",
        "wake --cpus",
        "rtt --cpus",
        "switch-cost --cpus",
        "gaps --housekeeping",
        "--cpus",
        "doctor --cpus",
        "reflect --cpus",
        "hourglass -n 1 --cpus",
        "rtt --reflector-cpus",
    ] {
        let next = format!("try: whylate {} ", words.replace("-n 1 ", ""));
        let words: Vec<&str> = words.split(' ').chain(["4095"]).collect();
        refused(&words, 2, &["4095", "does not exist", &next]);
    }
    for key in ["cpus", "reflector-cpus"] {
        let flow = format!("beside: {key}=4095");
        let next = format!("try: whylate rtt --flow 'beside: {key}=");
        refused(&["rtt", "--flow", &flow], 2, &["4095", "does not exist", &next]);
    }
    refused(&["gaps", "--cpus", "each"], 2, &["each", "`2-5,8`"]);
}

#[test]
fn a_run_is_not_made_below_a_directory_that_is_not_there() {
    let home = tempfile::tempdir().unwrap();
    let deep = home.path().join("no/such/run");
    let deep = deep.to_str().unwrap();
    let paper = ["paper", "hourglass2002"];
    for words in [&["gaps"][..], &["rtt", "--runs", "2"], &paper] {
        refused(&[words, &["-o", deep]].concat(), 1, &["no directory", "mkdir -p", "no/such"]);
        assert!(!home.path().join("no").exists(), "{words:?}");
    }
}

#[test]
fn numbers_below_zero_port_0_and_rates_out_of_range_are_told_with_what_to_write() {
    refused(&["gaps", "--duration", "-1"], 2, &["`-1`", "above zero", "--duration 60s"]);
    refused(&["gaps", "--duration", "-1.5s"], 2, &["`-1`", "above zero"]);
    refused(&["gaps", "--duration", "0s"], 2, &["0s", "too short"]);
    refused(&["rtt", "127.0.0.1:0"], 2, &["port 0", "127.0.0.1:0", "1 to 65535"]);
    refused(&["rtt", "127.0.0.1"], 2, &["127.0.0.1", "198.18.0.2:11111"]);
    refused(&["rtt", "--rate", "1Pbit/s"], 2, &["1Pbit/s", "one in ten minutes to 100Mpps"]);
    refused(&["rtt", "--rate", "one every"], 2, &["one every 200us"]);
    refused(&["switch-cost", "--sizes", "1"], 2, &["least is 4 KiB"]);
}

#[test]
fn a_group_without_an_interface_is_refused_with_the_option_that_names_one() {
    refused(&["rtt", "239.7.7.1:7000"], 1, &["239.7.7.1", "--interface NAME"]);
}

#[test]
fn a_file_where_a_directory_is_meant_is_told_with_the_directory() {
    let run = program::file("runs/gaps/run.json");
    let path = run.to_str().unwrap();
    let directory = program::file("runs/gaps");
    refused(
        &["report", path],
        1,
        &["is a file", "run is a directory", directory.to_str().unwrap()],
    );
}

#[test]
fn a_baseline_that_takes_every_run_is_told() {
    let wanted = ["--baseline", "(a b)", "try: whylate compare AFTER --baseline BEFORE"];
    refused(&["compare", "--baseline", "a", "b"], 2, &wanted);
}

#[test]
fn a_workload_of_rt_app_given_to_rta_is_told_with_the_command_that_runs_it() {
    refused(&["rta", "--file", "set.json"], 2, &["set.json", "rt-app", "whylate threads set.json"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.txt");
    std::fs::write(&path, "\n { \"tasks\": { \"a\": { \"run\": 1000 } } }").unwrap();
    let path = path.to_str().unwrap();
    refused(&["rta", "--file", path], 2, &["is JSON", "rt-app", "whylate threads /"]);
}

#[test]
fn measured_overheads_are_of_the_last_switch_cost_on_this_host_and_of_nothing_else() {
    let state = tempfile::tempdir().unwrap();
    let rta = || {
        let words = ["rta", "--task", "1ms 8ms", "--overhead", "measured"];
        let output = whylate(words).env("XDG_STATE_HOME", state.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        flat(&output)
    };
    let run = program::file("runs/gaps");
    let elsewhere = program::read(&run).host;
    let remember = |file: &str| {
        let folder = state.path().join("whylate");
        std::fs::create_dir_all(&folder).unwrap();
        let last = LastRun::of(&elsewhere, Path::new(&run));
        std::fs::write(folder.join(file), serde_json::to_vec(&last).unwrap()).unwrap();
    };
    // The newest run is of gaps.
    remember("last-run.json");
    let text = rta();
    assert!(text.contains("none is remembered") && text.contains("whylate switch-cost"), "{text}");
    // One of switch-cost, on another host.
    remember("last-switch-cost.json");
    let text = rta();
    for word in ["as it is now", "was recorded and is", "run `whylate switch-cost` again"] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
}

#[test]
fn a_run_with_a_warning_of_a_newer_version_is_read_and_shows_it() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    directories::copy(&program::file("runs/gaps"), &run);
    let path = run.join("run.json");
    let mut stored: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let new = serde_json::json!({ "warning": "solar_flare", "hours": 3 });
    stored["warnings"].as_array_mut().unwrap().push(new.clone());
    std::fs::write(&path, stored.to_string()).unwrap();
    let output = whylate(["report"]).arg(&run).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = flat(&output);
    assert!(text.contains("`solar_flare`") && text.contains("newer whylate"), "{text}");
    let output = whylate(["report", "--format", "json"]).arg(&run).output().unwrap();
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["warnings"].as_array().unwrap().last(), Some(&new));
}

#[test]
fn a_run_of_a_newer_format_is_refused_by_name_with_both_versions_beside_one_that_is_read() {
    let home = tempfile::tempdir().unwrap();
    let [newer, sum] = ["newer", "sum"].map(|name| home.path().join(name));
    let kept = program::file("runs/checkup");
    directories::copy(&kept, &newer);
    let path = newer.join("run.json");
    let mut stored: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    stored["format_version"] = (FORMAT_VERSION + 1).into();
    std::fs::write(&path, stored.to_string()).unwrap();
    let mut merge = whylate(["merge"]);
    merge.args([&kept, &newer]).arg("-o").arg(&sum);
    let mut report = whylate(["report"]);
    report.arg(&newer);
    let mut compare = whylate(["compare"]);
    compare.args([&kept, &newer]);
    for mut command in [report, compare, merge] {
        let output = command.output().unwrap();
        let text = flat(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
        let (found, newest) = (
            format!("has format version {}", FORMAT_VERSION + 1),
            format!("reads up to {FORMAT_VERSION}"),
        );
        for told in [path.to_str().unwrap(), &found, &newest, "update whylate"] {
            assert!(text.contains(told), "{command:?}: no `{told}` in: {text}");
        }
        assert_eq!(output.stdout, b"", "{command:?}");
    }
    assert!(!sum.exists());
}

#[test]
fn a_second_recording_into_the_directory_of_a_run_is_refused_and_the_run_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let (kept, run) = (program::file("runs/gaps"), home.path().join("run"));
    directories::copy(&kept, &run);
    let [first, second] = [1, 2].map(|number| {
        let other = directories::Planted::new("host", number * 60);
        other.write(home.path(), &format!("run-{number}")).to_str().unwrap().to_owned()
    });
    for words in [
        &["gaps", "--duration", "60s"][..],
        &["wake", "--duration", "60s"],
        &["rtt", "--duration", "60s"],
        &["merge", &first, &second],
    ] {
        let output = whylate(words).arg("-o").arg(&run).output().unwrap();
        let text = flat(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        for told in [run.to_str().unwrap(), "is not empty", "-o"] {
            assert!(text.contains(told), "{words:?}: no `{told}` in: {text}");
        }
    }
    let files = |directory: &Path| {
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let files = entries.map(|of| (of.file_name(), std::fs::read(of.path()).unwrap()));
        files.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert!(files(&run) == files(&kept), "{run:?} has changed");
}

#[test]
fn what_says_nothing_together_is_refused_before_the_first_of_several_runs() {
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    for (words, why) in [
        ("rtt --runs 3 --arrivals closed --outstanding 2 -o", "leave --outstanding out"),
        ("rtt --runs 3 --arrivals sweep(2us,1ms,10) --rate 1kpps -o", "leave --rate out"),
        ("rtt --runs 3 --port unix --rate 1Mbit/s -o", "sends no frames"),
        ("rtt --runs 3 --size 10 -o", "a raw request cannot have"),
    ] {
        let output = whylate(words.split(' ')).arg(&runs).output().unwrap();
        let text = said(&output);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(why) && !text.contains("run 1"), "{words}: {text}");
        assert!(!runs.exists(), "{words} leaves a directory behind");
    }
}

#[test]
fn what_cannot_be_taken_apart_is_refused_by_name() {
    for (words, part) in [
        ("--breakdown --port unix", "a Unix socket"),
        ("--breakdown=telepathy", "`telepathy` is not a source"),
        ("--breakdown --one-way", "--one-way"),
        ("--breakdown --compare-backends", "--compare-backends"),
        ("--tap frames.pcap", "--breakdown"),
        ("--breakdown-cost", "--breakdown"),
        ("--breakdown --breakdown-cost --duration 1s --rounds 1000", "fewer --rounds"),
        ("--rounds 3", "<--compare-backends"),
    ] {
        let output = whylate(["rtt"]).args(words.split_whitespace()).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(part), "{words}: {text}");
    }
}

#[test]
fn files_and_tools_that_are_none_are_refused_before_anything_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.json");
    std::fs::write(&file, "{\n\"histogram\": {\"15\": 1}}").unwrap();
    let import = |tool: &str| format!("{tool}={}", file.display());
    for (words, status, told) in [
        (vec!["--import".to_owned(), import("trex")], 1, "line 2: 15 is no bucket of TRex"),
        (vec!["--import".to_owned(), import("spirent")], 2, "do not say in what unit"),
        (vec!["--import".to_owned(), import("iperf")], 2, "no files of `iperf`"),
        (vec!["--tools".to_owned(), "netperf".to_owned()], 2, "no tool is called `netperf`"),
        (vec!["--only".to_owned(), "fig7".to_owned()], 2, "the paper has no fig7 here"),
    ] {
        let mut command = whylate(["paper", "killer2017", "--quick", "-o"]);
        let output = command.arg(home.path().join("out")).args(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(told), "{words:?}: {}", said(&output));
        let _ = std::fs::remove_dir_all(home.path().join("out"));
    }
    let output = whylate(["paper", "pam2017", "--tools", "xdp"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("are for killer2017"), "{}", said(&output));
}

#[test]
fn places_that_the_paper_has_not_and_damaged_files_are_refused_by_name() {
    let output = whylate(["paper", "hourglass2002", "--only", "7.1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("Figure 3, 5.1"), "{}", said(&output));
    let home = tempfile::tempdir().unwrap();
    for (content, told) in
        [("{", "paper.json"), ("{\"format_version\": 99}", "paper.json"), ("[]", "paper.json")]
    {
        std::fs::write(home.path().join(PAPER_FILE), content).unwrap();
        let output = whylate(["report"]).arg(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{content}: {}", said(&output));
        assert!(said(&output).contains(told), "{content}: {}", said(&output));
    }
}
