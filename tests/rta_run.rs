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
    let of = |name: &str, more: &[&str]| {
        let example = program::file("../examples").join(name);
        predicted(&[&["--file", example.to_str().unwrap()], more].concat())
    };
    let audio = of("audio-video.toml", &["--overhead", "switch=3us,tick=15us/4ms"]);
    assert_eq!(nominal(&audio, 1), 29 * MS + 5 * 6_000 + 8 * 15_000);
    let inherit = of("priority-inheritance.toml", &[]);
    assert_eq!(inherit.tasks[0].blocking, Nanos(3 * MS));
    let reserved = of("reservations.toml", &["--policy", "cbs"]);
    assert!(reserved.admission.unwrap().admitted);
    let edf = of("audio-video.toml", &["--policy", "edf", "--simulate"]);
    assert_eq!(edf.feasible, Some(true));
    for task in 0..2 {
        let simulated = edf.tasks[task].simulated.unwrap().0;
        assert_eq!(nominal(&edf, task), simulated, "by equations and by schedules");
    }
    let ticks = ["--overhead", "tick=15us/4ms", "--policy", "edf", "--simulate"];
    assert!(of("audio-video.toml", &ticks).tasks[1].simulated > edf.tasks[1].simulated);
    let reserved = of("reservations.toml", &["--policy", "cbs", "--simulate"]);
    for task in 0..2 {
        let simulated = reserved.tasks[task].simulated.unwrap().0;
        assert!(simulated > 0 && simulated <= nominal(&reserved, task), "{reserved:?}");
    }
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
    let more = ["--run", "--duration", "660ms", "--jitter", "measured", "-o"];
    let output = whylate([&words[..], &more].concat()).arg(&directory).output().unwrap();
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    if needs::real_time() {
        assert_eq!(run.threads[0].policy, "SCHED_FIFO 2");
    }
    let prediction = run.prediction.unwrap();
    for task in &prediction.tasks {
        let measured = task.measured.as_ref().unwrap();
        let (bound, max) = (task.nominal().unwrap(), measured.max.unwrap());
        // Periods pass whatever the host does; it may hold jobs back, so that many are never done, and
        // hide the last ones.
        let periods = 660 * MS / task.period.0;
        let all = measured.jobs + measured.never_done;
        assert!(measured.jobs > 0 && all <= periods + 1, "{periods} periods: {measured:?}");
        let judged = measured.judged.as_ref().unwrap();
        let unrecorded = run.threads[task.thread as usize].deadlines.as_ref().unwrap().unrecorded;
        let verdicts = judged.within + judged.machine + judged.violated + judged.not_judged;
        assert_eq!(verdicts, all + unrecorded, "each job once: {measured:?}");
        assert!(judged.machine + judged.violated <= measured.over, "{measured:?}");
        let above = max > bound;
        let all_within = judged.within == verdicts;
        let expected = all_within.then(|| Comparison::of(bound, max));
        assert!(judged.violated > 0 || measured.comparison == expected, "{measured:?}");
        assert_eq!(measured.worst.is_some(), above);
        let never_over = measured.never_done > 0 && task.deadline >= bound;
        assert_eq!(measured.over > 0, above || never_over);
        // Each of them is counted by what is behind it, and the first are told.
        let by_cause: u64 = measured.over_by.iter().map(|of| of.jobs).sum();
        assert_eq!(by_cause, measured.over, "{:?}", measured.over_by);
        assert_eq!(measured.over_first.len() as u64, measured.over.min(10));
        for of in &measured.over_first {
            // Of one that was never done the deadline stands for its end, as the counter has it.
            assert!(of.response.is_none_or(|took| took.0 - bound.0 == of.by.0), "{of:?}");
        }
        if let Some(worst) = &measured.worst {
            assert_eq!(worst.response, max);
            let gap = worst.gap.as_ref().unwrap();
            assert!(gap.length > Nanos(0) && gap.start > Ticks(0), "{gap:?}");
        }
    }
    // What was measured of the releases is what is analysed again.
    let again = prediction.with_measured_jitter.as_deref().unwrap();
    let releases = prediction.tasks[1].measured.as_ref().unwrap().releases.unwrap();
    assert!(releases.n > 0 && releases.n <= 660 / 33 + 1, "{releases:?}");
    assert_eq!((again.tasks[1].jitter, again.tasks[1].delay), (releases.jitter, releases.least));
    assert!(nominal(again, 1) > nominal(&prediction, 1));
    // The busy waits of such a clock are work of the job that waits by it.
    let asked = [&prediction, again].map(|of| of.tasks[1].execution);
    assert_eq!(asked, [Nanos(17 * MS), Nanos(19 * MS)]);
    assert_eq!(again.tasks[0].execution, Nanos(3 * MS));
    let told = again.notes.iter().any(|note| note.contains("task video includes 2.00ms"));
    assert!(told, "{:?}", again.notes);
    let report = whylate(["report"]).arg(&directory).output().unwrap();
    let text = said(&report);
    for part in ["Predicted response times", "Release jitter", "Predicted again", "video"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("id=\"predicted\""), "the page lacks what was predicted");
    let any = prediction.tasks.iter().any(|task| task.measured.as_ref().unwrap().over > 0);
    for told in [&text, &page] {
        let by_gap = told.contains("Jobs that took longer than R, by their longest stall");
        assert!(by_gap || !any, "{told}");
    }
}

#[test]
fn a_load_above_the_cpu_is_said_before_anything_runs() {
    let _alone = program::alone();
    let output = whylate(["rta", "--task", "5ms 8ms", "--task", "5ms 8ms"]).output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("125% of the CPU") && text.contains("unbounded"), "{text}");
}
