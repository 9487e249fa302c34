//! One store for every number: the histogram log of a recording holds what its report counts.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState};
use whylate_stats::Histogram;

use crate::{checkup, needs, program};

/// The log's histograms by series.
fn log(directory: &Path, run: &Run) -> BTreeMap<String, Histogram> {
    let mut pooled: BTreeMap<String, Histogram> = BTreeMap::new();
    for interval in RunDir::open(directory).unwrap().histograms_of(run).unwrap() {
        let interval = interval.unwrap();
        pooled.entry(interval.tag).or_default().add(&interval.histogram);
    }
    pooled
}

fn assert_whole(run: &Run, directory: &Path) {
    let log = log(directory, run);
    assert!(!run.series.is_empty(), "nothing was measured");
    for series in &run.series {
        let stored = log.get(&series.name).cloned().unwrap_or_default();
        assert_eq!(stored.len(), series.n, "{}", series.name);
        // The row of an instrument that was lost on the way has no maximum.
        let Some(counted) = series.max.map(|max| max.0) else { continue };
        // A histogram's maximum is the end of its bin.
        let max = stored.max().unwrap();
        assert!(max >= counted && max as f64 <= counted as f64 * 1.01, "{max} for {counted}");
    }
}

#[test]
fn the_log_of_a_gap_run_holds_every_sample_of_its_report() {
    let _alone = program::alone();
    let words = "gaps --duration 500ms --warmup 50ms --distribution --checkpoint 200ms";
    let recorded = program::recorded(words);
    assert_whole(&recorded.run, &recorded.directory);
}

#[test]
fn the_log_of_a_checkup_holds_every_sample_of_its_report() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let recorded = checkup::checkup();
    assert_whole(&recorded.run, &recorded.directory);
}

#[test]
fn the_log_of_a_killed_run_holds_what_its_last_checkpoint_counts() {
    let _alone = program::alone();
    killed_behind_a_checkpoint("gaps --warmup 50ms --no-trace", |run| {
        run.series.iter().any(|series| series.n > 0)
    });
}

#[test]
fn the_log_of_a_killed_set_holds_what_its_last_checkpoint_counts() {
    let _alone = program::alone();
    // So many that an interval is counted in one checkpoint and goes on in the next.
    let judged = |run: &Run| {
        let deadlines = run.threads.first().and_then(|thread| thread.deadlines.as_ref());
        deadlines.map_or(0, |deadlines| deadlines.hits + deadlines.misses)
    };
    let run =
        killed_behind_a_checkpoint("threads --thread=PERIODIC_1ms_10ms", |run| judged(run) > 80);
    assert_eq!(run.state, RunState::Running);
    assert!(judged(&run) > 80);
}

/// Kills a run of a minute as soon as a checkpoint shows `enough`, and holds its log against it.
fn killed_behind_a_checkpoint(words: &str, enough: impl Fn(&Run) -> bool) -> Run {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = words.split(' ').map(|word| word.replace('_', " "));
    let more = ["--duration", "60s", "--checkpoint", "300ms", "-o"].map(str::to_owned);
    let words: Vec<String> = words.chain(more).collect();
    let mut started = {
        let mut command = program::whylate(words);
        command.arg(&directory);
        program::Started::new(command)
    };
    program::until("a checkpoint has counted gaps", || {
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        enough(&run).then_some(())
    });
    let _ = started.0.kill();
    let _ = started.0.wait();
    let run = program::read(&directory);
    let log = log(&directory, &run);
    for series in &run.series {
        let stored = log.get(&series.name).map_or(0, Histogram::len);
        assert_eq!(stored, series.n, "{}", series.name);
    }
    run
}
