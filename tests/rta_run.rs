//! `whylate rta`: predicted, simulated, run, and put beside each other.

use whylate_model::prediction::{Comparison, PredictedResponse, Prediction};
use whylate_model::{Nanos, Ticks};

use crate::needs;
use crate::program::{self, said, whylate};

const MS: u64 = 1_000_000;

/// What `whylate rta WORDS --format json` says.
fn predicted(words: &[&str]) -> Prediction {
    let output = whylate([&["rta"], words, &["--format", "json"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn nominal(of: &Prediction, task: usize) -> u64 {
    match of.tasks[task].response {
        Some(PredictedResponse::Bounded { nominal, .. }) => nominal.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_gives_the_numbers_of_the_paper() {
    let _alone = program::alone();
    let audio = "3ms 8ms, name audio";
    for (video, expected, feasible) in [
        ("17ms 33ms", 29 * MS, true),
        ("19ms 33ms, jitter 8ms", 39 * MS, false),
        ("12ms 33ms, jitter 8ms", 29 * MS, true),
        ("17ms 33ms, jitter 8ms", 37 * MS, false),
    ] {
        let found = predicted(&["--task", audio, "--task", video, "--simulate", "10"]);
        assert_eq!((nominal(&found, 1), found.feasible), (expected, Some(feasible)), "{video}");
        assert_eq!(found.tasks[1].simulated, Some(Nanos(expected)), "{video}");
        assert_eq!(found.tasks[1].simulated_misses > 0, !feasible, "{video}");
    }
}

#[test]
fn files_policies_and_overheads_are_answered() {
    let _alone = program::alone();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/");
    let of = |name: &str, more: &[&str]| {
        predicted(&[&["--file", &format!("{example}{name}")], more].concat())
    };
    let audio = of("audio-video.toml", &["--overhead", "switch=3us,tick=15us/4ms"]);
    assert_eq!(nominal(&audio, 1), 29 * MS + 5 * 6_000 + 8 * 15_000);
    let inherit = of("priority-inheritance.toml", &[]);
    assert_eq!(inherit.tasks[0].blocking, Nanos(3 * MS));
    let reserved = of("reservations.toml", &["--policy", "cbs"]);
    assert!(reserved.admission.unwrap().admitted);
    let edf = of("audio-video.toml", &["--policy", "edf", "--simulate"]);
    assert_eq!(edf.feasible, Some(true));
}

#[test]
fn predicted_tasks_run_and_stand_beside_what_was_measured() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let video = "17ms 33ms, name video, timer grid(10ms)";
    let words = ["rta", "--task", "3ms 8ms, name audio", "--task", video, "--simulate", "5"];
    let more = ["--run", "--duration", "1s", "--jitter", "measured", "-o"];
    let output = whylate([&words[..], &more].concat()).arg(&directory).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    assert_eq!(run.threads[0].policy, "SCHED_FIFO 2");
    let prediction = run.prediction.unwrap();
    for task in &prediction.tasks {
        let measured = task.measured.as_ref().unwrap();
        let (bound, max) = (task.nominal().unwrap(), measured.max.unwrap());
        assert!(measured.jobs > 20, "{measured:?}");
        let violated = max > bound;
        if violated || measured.never_done == 0 {
            assert_eq!(measured.comparison, Some(Comparison::of(bound, max)));
        }
        assert_eq!(measured.worst.is_some(), violated);
        assert_eq!(measured.over > 0, violated || measured.never_done > 0);
        if let Some(worst) = &measured.worst {
            assert_eq!(worst.response, max);
            let gap = worst.gap.as_ref().unwrap();
            assert!(gap.length.0 > 0 && gap.start > Ticks(0), "{gap:?}");
        }
    }
    // 5.5: a clock of 10 ms releases jobs late, and the analysis that knows it allows for that.
    let again = prediction.with_measured_jitter.as_ref().unwrap();
    let releases = prediction.tasks[1].measured.as_ref().unwrap().releases.unwrap();
    assert!(releases.n > 20 && releases.jitter.0 > MS, "{releases:?}");
    assert_eq!((again.tasks[1].jitter, again.tasks[1].delay), (releases.jitter, releases.least));
    assert!(nominal(again, 1) > nominal(&prediction, 1));
    let report = whylate(["report"]).arg(&directory).output().unwrap();
    let text = said(&report);
    for part in ["Predicted response times", "Release jitter", "Predicted again", "video"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_load_above_the_cpu_is_said_before_anything_runs() {
    let _alone = program::alone();
    let output = whylate(["rta", "--task", "5ms 8ms", "--task", "5ms 8ms"]).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("125.0 % of the CPU") && text.contains("unbounded"), "{text}");
}
