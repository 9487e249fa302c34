//! The last lines of a first screen: where the rest is, and what to do next. None of them is left out for its length.

use std::path::Path;

use whylate_model::flow::ProcessVerdict;
use whylate_model::prediction::{GIVEN, PredictedOverheads};
use whylate_model::run::Run;
use whylate_model::{CpuId, Nanos};

use super::super::{COMPARE, DIRECTORY, Place, Screen, for_a_shell, layout, of, placed};
use super::{assert_fits, commanded, made_by, style};
use crate::kept::{kept, kinds};
use crate::render::columns;
use crate::terminal::Style;

/// The name that a directory has by itself.
const USUAL: &str = "whylate-20261123-223808";
/// The same of a second run in that second, and paths that somebody may give.
const OTHERS: [&str; 4] = [
    "whylate-20261123-223808-64",
    "RUN",
    "two words/of a path",
    "/srv/measurements/2026/november/rack-12/machine-7/run-1/whylate-1",
];
/// Columns of a line.
const LINE: usize = 80;

fn place(directory: &str) -> Place<'_> {
    Place { directory: Some(Path::new(directory)), again: true }
}

/// Each of a screen's commands stands on it, and so does its page; no line is wider than a terminal.
#[track_caller]
fn assert_has_every_step(screen: &Screen, directory: &str) -> String {
    let text = layout::write(screen, style());
    for line in text.lines() {
        assert!(columns(line) <= LINE, "{line:?} in\n{text}");
    }
    let (_, more) = text.split_once("More:  ").unwrap();
    let path = for_a_shell(directory);
    for command in &screen.more {
        let alone = command.split_once("  ").map_or(command.as_str(), |(alone, _)| alone);
        let told = [path.as_str(), "\"$D\""].map(|place| alone.replace(DIRECTORY, place));
        assert!(told.iter().any(|told| more.contains(told)), "no `{command}` in\n{text}");
        let is_named = more.contains(&format!("D={path}\n"));
        assert_eq!(is_named, more.contains("$D"), "{text}");
        // What a command is for has room beside the usual name.
        let whole = command.replace(DIRECTORY, directory);
        assert!(directory != USUAL || more.contains(&whole), "no `{whole}` in\n{text}");
    }
    assert!(more.contains("report.html"), "{text}");
    assert!(text.lines().count() < 24, "{text}");
    text
}

fn every_step(run: &Run) {
    for directory in OTHERS.into_iter().chain([USUAL]) {
        let screen = of(&run.as_shown(), place(directory), style()).unwrap();
        assert_has_every_step(&screen, directory);
    }
}

#[test]
fn no_next_step_of_any_kind_is_left_out_for_the_name_of_its_directory() {
    for kind in kinds() {
        every_step(&kept(&kind).1);
    }
    every_step(&super::large::without_root());
    let mut paper = super::papers::hourglass();
    for differs in [true, false] {
        let rows = paper.scenarios.iter_mut().flat_map(|of| &mut of.rows);
        rows.filter(|_| !differs).for_each(|row| row.agreement = None);
        for directory in OTHERS.into_iter().chain([USUAL]) {
            let screen = placed(super::super::paper::screen(&paper), place(directory));
            assert_has_every_step(&screen, directory);
        }
    }
}

#[test]
fn the_page_is_named_beside_the_usual_name_and_a_path_without_room_has_a_name() {
    let run = kept("threads").1;
    let more = |directory: &str| {
        let screen = super::super::first_screen(&run, place(directory), style()).unwrap();
        let at = screen.find("More:").unwrap();
        screen[at..].to_owned()
    };
    assert_eq!(
        more(USUAL),
        "More:  whylate report whylate-20261123-223808 --full, or open report.html there\n       \
         whylate report whylate-20261123-223808 --timeline  draws who had the CPU\n"
    );
    assert_eq!(
        more(OTHERS[3]),
        "More:  D=/srv/measurements/2026/november/rack-12/machine-7/run-1/whylate-1\n       \
         whylate report \"$D\" --full, or open \"$D\"/report.html\n       \
         whylate report \"$D\" --timeline  draws who had the CPU\n"
    );
    // What has no room anywhere stands on a line of its own.
    let long = "x/".repeat(100) + "x";
    let screen = more(&long);
    assert!(screen.starts_with(&format!("More:  D={long}\n")), "{screen}");
}

#[test]
fn what_a_command_is_for_goes_before_the_command_does() {
    let long = format!("whylate gaps {}", "--word ".repeat(8));
    let (long, what) = (long.trim_end(), "says what it is for in many words");
    let screen = Screen {
        answer: vec!["It is so.".into()],
        more: vec!["whylate".to_owned(), format!("{long}  {what}"), COMPARE.to_owned()],
        ..Screen::default()
    };
    let text = layout::write(&screen, style());
    assert!(text.contains(&format!("\n       {long}\n")) && !text.contains(what), "{text}");
    let narrow = layout::write(&screen, Style { width: 40, ..style() });
    assert!(narrow.contains(long), "{narrow}");
}

/// Texts of a source file: those between quotes that are no comment.
fn texts(source: &str) -> Vec<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = source.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let (mut texts, mut letters) = (Vec::new(), code.chars().peekable());
    while letters.any(|letter| letter == '"') {
        let mut text = String::new();
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            match (letter, letters.peek()) {
                ('\\', Some('\n')) => {
                    while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                }
                ('\\', Some(_)) => text.extend(letters.next()),
                _ => text.push(letter),
            }
        }
        texts.push(text);
    }
    texts
}

/// The line that a text is the pattern of, with what usually stands in its places.
fn filled(text: &str) -> String {
    let mut line = text.to_owned();
    while let Some((before, (place, rest))) =
        line.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let with = match place {
            "directory" | "DIRECTORY" => USUAL,
            "cell" => "pinned-mlock-fifo-moved",
            "whylate" => "sudo \"$(command -v whylate)\"",
            "command" => " gaps",
            "does" => "has narrower intervals",
            "name" => "hourglass2002",
            _ => "2-5",
        };
        line = format!("{before}{with}{rest}");
    }
    line
}

#[test]
fn each_constant_line_of_a_screen_has_room_behind_its_label() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder.join("first")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.is_file() && !path.ends_with("tests.rs"));
    let begins = ["whylate ", "sudo ", "--", "{whylate}", "{directory}", "{DIRECTORY}"];
    let (mut lines, mut wide) = (0, Vec::new());
    for path in files.chain([folder.join("first.rs")]) {
        for text in texts(&std::fs::read_to_string(path).unwrap()) {
            if begins.iter().any(|begin| text.starts_with(begin)) {
                lines += 1;
                let line = format!("More:  {}", filled(&text));
                wide.extend((columns(&line) > LINE).then_some(line));
            }
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
    assert!(lines > 25, "{lines} lines are few");
}

#[test]
fn without_a_trace_the_next_step_is_the_runs_own_command_as_root() {
    for (kind, own) in [("gaps", " gaps"), ("checkup", "")] {
        let mut run = kept(kind).1;
        run.evidence.trace = None;
        let screen = super::shown(&run, style());
        assert_fits(&screen);
        let said = format!(
            "\n       sudo \"$(command -v whylate)\"{own} --cpus 1  names tasks and interrupts\n"
        );
        assert!(screen.contains(&said), "{screen}");
    }
    let mut run = super::on_cpus(64);
    run.evidence.trace = None;
    for gaps in &mut run.gaps {
        gaps.cpu.0 *= 2;
    }
    let screen = super::shown(&run, style());
    assert!(
        screen.contains("\n       The same command as root names tasks and interrupts.\n"),
        "{screen}"
    );
}

#[test]
fn wake_ups_without_a_trace_are_to_be_recorded_as_root() {
    let mut run = kept("wake").1;
    let as_root = "\n       sudo \"$(command -v whylate)\" wake  names the causes\n";
    assert!(!super::shown(&run, style()).contains(as_root));
    run.evidence.trace = None;
    let screen = super::shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains(as_root) && !screen.contains("--timers all"), "{screen}");
}

#[test]
fn cpus_that_nobody_left_out_by_name_are_told_as_not_measured() {
    let of = |words: &str, online: u32| {
        let mut run = commanded(words, kept("gaps").1);
        run.host.cpus_online = (0..online).map(CpuId).collect();
        let screen = super::shown(&run, style());
        assert_fits(&screen);
        screen.lines().find(|line| line.contains("not measured")).map(str::to_owned)
    };
    let told = |said: &str| Some(said.to_owned());
    assert_eq!(of("whylate gaps", 2), told("CPU 0 was not measured; --cpus all includes it."));
    assert_eq!(
        of("whylate gaps", 4),
        told("CPUs 0,2-3 were not measured; --cpus all includes them.")
    );
    for words in ["whylate gaps --cpus 1", "whylate gaps --cpus=1", "whylate gaps --floating"] {
        assert_eq!(of(words, 2), None, "{words}");
    }
}

#[test]
fn tasks_are_to_run_again_with_measured_overheads_only_where_the_prediction_has_none() {
    let measured =
        "\n       --overhead measured --jitter measured  predict with this machine's costs\n";
    let mut run = kept("rta").1;
    for (from, is_told) in [(None, true), (Some(GIVEN), true), (Some("switch-cost"), false)] {
        let overheads = from.map(|from| PredictedOverheads {
            switch: Nanos(3_000),
            tick: None,
            tick_period: None,
            from: from.to_owned(),
            doubt: None,
        });
        run.prediction.as_mut().unwrap().overheads = overheads;
        let screen = super::shown(&run, style());
        assert_fits(&screen);
        assert_eq!(screen.contains(measured), is_told, "{screen}");
        assert_eq!(screen.contains("whylate compare RUN OTHER"), !is_told, "{screen}");
    }
}

#[test]
fn a_next_step_of_tasks_is_their_own_command_or_the_option_alone() {
    let of = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        crate::first::steps::with(&words, &[("--simulate", "checks"), ("--check", "exits")])
    };
    let own = ["/usr/bin/whylate", "rta", "--task", "3ms 8ms", "-o", "run", "--out=other"];
    let told = "whylate rta --task '3ms 8ms'";
    assert_eq!(of(&own), [format!("{told} --simulate  checks"), format!("{told} --check  exits")]);
    let checked = [&own[..4], &["--check"]].concat();
    assert_eq!(of(&checked), [format!("{told} --check --simulate  checks")]);
    let name = "x".repeat(60);
    let long = [&own[..4], &["--task", &name]].concat();
    assert_eq!(of(&long), ["--simulate  checks", "--check  exits"]);
    assert_eq!(of(&[]), ["--simulate  checks", "--check  exits"]);
    // What is there with another value is told alone.
    let given: Vec<String> = ["whylate", "rta", "--overhead=5us"].map(str::to_owned).to_vec();
    let told = crate::first::steps::with(&given, &[("--overhead measured", "adds")]);
    assert_eq!(told, ["--overhead measured  adds"]);
}

#[test]
fn no_next_step_of_a_kept_run_has_dots_for_the_words_of_a_command() {
    for kind in crate::kept::kinds() {
        let screen = super::shown(&kept(&kind).1, style());
        let more = screen.split_once("\nMore:").map_or("", |(_, more)| more);
        assert!(!more.contains(" ... ") && !more.contains(" ...  "), "{kind}: {screen}");
    }
}

/// A client that was late, by this command, beside a reflector of whylate's own or another, on so many CPUs.
fn late(command: &str, own: bool, cpus: u32) -> Run {
    let mut run = made_by(command, kept("slow").1);
    run.flows[0].departures.process.verdict = ProcessVerdict::Disturbed;
    let words = if own { "a reflector over loopback" } else { "192.0.2.7:4021" };
    run.settings.insert("other end".to_owned(), words.into());
    run.host.cpus_online = (0..cpus).map(CpuId).collect();
    run
}

#[test]
fn a_client_that_was_late_is_told_its_own_command_with_what_may_help() {
    let said = |run: &Run| {
        let screen = super::shown(run, style());
        assert_fits(&screen);
        let more = screen.split("\nMore:  ").nth(1).unwrap_or_default().to_owned();
        let is_advised = more.contains("--sched") || more.contains("--wait");
        assert_eq!(is_advised, !more.contains("compare"), "{more}");
        more
    };
    let on_time = "  may keep the client on time\n";
    let four = late("/usr/bin/whylate rtt -o a --seed 1", true, 4);
    let command = "\n       whylate rtt --seed 1 --sched fifo:50";
    assert!(said(&four).contains(&format!("{command}{on_time}")), "{}", said(&four));
    for given in ["--sched fifo:20", "--sched=fifo:20", "--fifo"] {
        let run = late(&format!("whylate rtt {given} --rate 2kpps"), true, 4);
        assert!(!said(&run).contains("whylate rtt"), "{}", said(&run));
    }
    // Two CPUs are the client's and the reflector's: one that never sleeps at a real-time priority helps neither.
    let mut two = late("whylate rtt --wait spin --rate 2kpps --output=a", true, 2);
    let command = "\n       whylate rtt --rate 2kpps --wait block";
    assert!(said(&two).contains(&format!("{command}{on_time}")), "{}", said(&two));
    let mut saturated = two.clone();
    saturated.flows[0].departures.process.verdict = ProcessVerdict::Saturated;
    assert!(!said(&saturated).contains("--wait"), "{}", said(&saturated));
    two.flows[0].way.wait = "block".to_owned();
    assert!(!said(&two).contains("whylate rtt"), "{}", said(&two));
    let other = late("whylate rtt 192.0.2.7:4021", false, 2);
    assert!(said(&other).contains("rtt 192.0.2.7:4021 --sched fifo:50"), "{}", said(&other));
}

#[test]
fn a_command_without_room_on_a_line_is_told_by_the_option_alone() {
    let long = format!("whylate rtt --flow '{}'", "rate=1kpps ".repeat(8));
    let screen = super::shown(&late(&long, true, 4), style());
    assert_fits(&screen);
    let told = "\n       --sched fifo:50  may keep the client on time\n";
    assert!(screen.contains(told) && !screen.contains("--flow 'rate"), "{screen}");
}
