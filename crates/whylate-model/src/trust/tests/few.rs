//! Samples that are too small: jobs for a share of missed deadlines, and runs for a mean.

use super::*;

/// The kept set, whose thread `video` missed some of its deadlines, with another interval of their share.
fn missed(hits: u64, misses: u64, interval: Option<(f64, f64)>) -> Run {
    let mut run = clean(include_str!("../../../../../tests/runs/threads/run.json"));
    let of = run.threads[1].deadlines.as_mut().unwrap();
    (of.hits, of.misses, of.miss_share_interval) = (hits, misses, interval);
    run
}

#[test]
fn few_jobs_limit_trust_in_the_share_of_missed_deadlines_from_ten_points_to_each_side_on() {
    let limited = |what: &str| vec![(Level::Limited, what.to_owned())];
    assert_eq!(
        said(&missed(120, 31, Some((0.10, 0.35)))),
        limited("151 jobs of thread video give its miss rate only to +-12 points")
    );
    assert_eq!(
        said(&missed(5, 8, Some((0.316, 0.861)))),
        limited("13 jobs of thread video give its miss rate only to +-27 points")
    );
    for enough in
        [missed(5, 8, Some((0.4, 0.6))), missed(13, 0, Some((0.0, 0.25))), missed(5, 8, None)]
    {
        assert_eq!(said(&enough), []);
    }
    // Of several threads the one that is known least.
    let mut run = missed(5, 8, Some((0.316, 0.861)));
    let other = run.threads[1].clone();
    run.threads.push(other);
    let of = run.threads.last_mut().unwrap();
    of.name = "other".to_owned();
    of.deadlines.as_mut().unwrap().miss_share_interval = Some((0.1, 0.9));
    assert_eq!(
        said(&run),
        limited("13 jobs of thread other give its miss rate only to +-40 points")
    );
}

#[test]
fn a_sum_of_fewer_than_five_runs_is_limited() {
    let sum = |many: usize| {
        let mut run = clean(include_str!("../../../../../tests/runs/merge/run.json"));
        let origin = run.origins[0].clone();
        run.origins = vec![origin; many];
        run
    };
    for (many, word) in [(2, "two"), (3, "three"), (4, "four")] {
        let what =
            format!("{word} runs give no useful interval for their mean: merge five or more");
        assert_eq!(said(&sum(many)), [(Level::Limited, what)]);
    }
    assert_eq!(said(&sum(5)), []);
}

#[test]
fn another_run_is_told_once_without_the_id_of_its_process_however_it_is_stored() {
    let mut run = gaps();
    run.warnings.push(Warning::AnotherRun { pid: 7, same_cpu: true });
    run.warnings.push(Warning::AnotherRun { pid: 8, same_cpu: true });
    let stored = "another whylate was measuring on the same CPU (process 7)".to_owned();
    run.verdict = Verdict::Untrustworthy { reasons: vec![stored] };
    let told = "another whylate was measuring on the same CPU".to_owned();
    assert_eq!(said(&run), [(Level::Poor, told)]);
    assert_eq!(run.warnings[0].process(), Some(7));
}
