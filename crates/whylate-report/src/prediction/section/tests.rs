//! What of predictions is told, alone and beside what was measured.

use whylate_model::prediction::{
    AboveJob, Comparison, JobVerdict, JudgedJobs, MachineCause, MachineJobs, MachineTime,
    MeasuredTask, OverBy, OverCause, OverJob, PredictedResponse, ReleaseJitter, WorstJob,
    WorstJobGap,
};
use whylate_model::threads::TakenFrom;
use whylate_model::{Nanos, Ticks};

use super::*;
use crate::prediction::tests::predicted;
use crate::terminal::{Style, full_prediction};

fn text(of: &Prediction) -> String {
    full_prediction(of, Style::default())
}

/// Wherever its lines end.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_prediction_fits_into_eighty_columns_and_says_what_was_found() {
    let mut of = predicted(&[4, 12]);
    of.feasible = Some(false);
    of.tasks[1].jitter = Nanos(8_000_000);
    of.tasks[1].name = "a-name-of-thirty-two-letters-now".to_owned();
    of.overheads = Some(whylate_model::prediction::PredictedOverheads {
        switch: Nanos(3_000),
        tick: Some(Nanos(15_000)),
        tick_period: Some(Nanos(4_000_000)),
        from: "as given".to_owned(),
        doubt: None,
    });
    let text = text(&of);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = unwrapped(&text);
    for said in ["may miss its deadline by up to 2 ms", "−2 ms", "8 ms", "15 µs each 4 ms"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn of_jobs_that_were_never_done_nothing_is_said_that_nobody_knows() {
    let mut of = predicted(&[12]);
    of.tasks[0].measured = Some(MeasuredTask {
        jobs: 1_000,
        never_done: 3,
        over: 0,
        max: Some(Nanos(11_900_000)),
        comparison: None,
        judged: None,
        worst: None,
        over_by: Vec::new(),
        over_first: Vec::new(),
        releases: None,
    });
    let text = unwrapped(&text(&of));
    assert!(text.contains("not known: 3 never done"), "{text}");
}

#[test]
fn what_is_unbounded_or_not_found_is_said_in_words() {
    let mut of = predicted(&[4, 4, 4]);
    of.feasible = None;
    of.tasks[0].response = Some(PredictedResponse::Unbounded);
    of.tasks[1].response = Some(PredictedResponse::Undecided);
    let text = unwrapped(&text(&of));
    assert!(text.contains("unbounded") && text.contains("not found"), "{text}");
    assert!(text.contains("Not known: the analysis ended"), "{text}");
}

#[test]
fn jobs_are_told_by_what_they_are_put_down_to_and_a_violation_by_its_job() {
    let machine = |lost: u64, cause| MachineTime {
        lost_ns: Nanos(lost * 1_000),
        cause: Some(cause),
        cause_ns: Nanos(lost * 900),
    };
    let above = |job, response: u64, bound: u64, machine| AboveJob {
        job,
        release_ticks: Ticks(job),
        response_ns: Nanos(response * 1_000),
        bound_ns: Some(Nanos(bound * 1_000)),
        machine,
    };
    let by_machine = machine(2_000, MachineCause::NoEvent);
    let violated = machine(500, MachineCause::LateWakeUp);
    let first = |job, judged| OverJob {
        job,
        release: Ticks(job),
        response: Some(Nanos(5_000_000)),
        by: Nanos(1_000_000),
        gap: None,
        judged: Some(judged),
    };
    let mut of = predicted(&[4]);
    of.tasks[0].measured = Some(MeasuredTask {
        jobs: 1_007,
        never_done: 1,
        over: 8,
        max: Some(Nanos(6_000_000)),
        comparison: Some(Comparison::Violated { by: Nanos(1_000_000) }),
        judged: Some(JudgedJobs {
            within: 1_000,
            machine: 5,
            violated: 2,
            not_judged: 1,
            machine_by: vec![
                MachineJobs { cause: MachineCause::NoEvent, jobs: 4 },
                MachineJobs { cause: MachineCause::LateWakeUp, jobs: 1 },
            ],
            pessimistic_by_ns: None,
            most: Some(above(3, 6_000, 6_000, by_machine)),
            violated_first: vec![above(7, 5_000, 4_500, violated)],
        }),
        worst: None,
        over_by: Vec::new(),
        over_first: vec![
            first(3, JobVerdict::Machine { machine: by_machine }),
            first(7, JobVerdict::Violated { machine: violated }),
            first(9, JobVerdict::NotJudged),
        ],
        releases: None,
    });
    let mut run = crate::execution::recorded::tests::set();
    run.prediction = Some(of);
    run.evidence.steal_ns = Some(1e18);
    let text = crate::render(&run, Style::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let directory = crate::execution::recorded::tests::sample();
    let (text, page) = (unwrapped(&text), crate::html::render(&directory, &run));
    for said in [
        "4 ms 4 ms 6 ms 1,000 5 2 1",
        "task t0: jobs that the machine accounts for: hypervisor 4, late wake-up 1",
        "the machine took most of job 3, which took 6 ms: L = 2 ms, of which hypervisor 1.8 ms",
        "job 7 took 5 ms, above even the R of 4.5 ms with L = 500 µs, of which late wake-up 450 µs: \
         exceeded",
        "1 more exceeded",
        "3 5 ms 1 ms 2 ms machine –",
        "9 5 ms 1 ms – not judged –",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let mut all = predicted(&[4]);
    all.tasks[0].measured = run.prediction.and_then(|mut of| of.tasks.remove(0).measured);
    let judged = all.tasks[0].measured.as_mut().and_then(|of| of.judged.as_mut()).unwrap();
    *judged =
        JudgedJobs { within: 9, pessimistic_by_ns: Some(Nanos(200_000)), ..JudgedJobs::default() };
    let within = unwrapped(&self::text(&all));
    assert!(within.contains("all jobs are within R, which is pessimistic by 200 µs"), "{within}");
    for said in ["L = 2 ms, of which hypervisor 1.8 ms", "above even the R of 4.5 ms"] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_violated_task_is_told_with_its_job_and_gap_and_hostile_names_do_not_act() {
    let mut of = predicted(&[4]);
    of.tasks[0].name = "\u{1b}[31mred".to_owned();
    let gap = WorstJobGap {
        start: Ticks(1),
        length: Nanos(3_000_000),
        cause: Some("host\u{1b}[0m".to_owned()),
    };
    of.tasks[0].measured = Some(MeasuredTask {
        jobs: 1_000,
        never_done: 3,
        over: 5,
        max: Some(Nanos(7_000_000)),
        comparison: Some(Comparison::Violated { by: Nanos(3_000_000) }),
        judged: None,
        worst: Some(WorstJob {
            job: 77,
            release: Ticks(0),
            response: Nanos(7_000_000),
            taken: TakenFrom::default(),
            gap: Some(gap.clone()),
        }),
        over_by: vec![
            OverBy { cause: OverCause::Named { cause: "host\u{1b}[0m".to_owned() }, jobs: 4 },
            OverBy { cause: OverCause::NoGap, jobs: 1 },
        ],
        over_first: vec![
            OverJob {
                job: 77,
                release: Ticks(0),
                response: Some(Nanos(7_000_000)),
                by: Nanos(3_000_000),
                gap: Some(gap),
                judged: None,
            },
            OverJob {
                job: 80,
                release: Ticks(9),
                response: None,
                by: Nanos(6_000_000),
                gap: None,
                judged: None,
            },
        ],
        releases: Some(ReleaseJitter {
            n: 1_000,
            least: Nanos(50_000),
            jitter: Nanos(8_000_000),
            p999: None,
        }),
    });
    let mut run = crate::execution::recorded::tests::set();
    of.with_measured_jitter = Some(Box::new(predicted(&[9])));
    run.prediction = Some(of);
    let text = crate::render(&run, Style::default());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = unwrapped(&text);
    assert!(text.contains("above R by 3 ms"), "{text}");
    assert!(text.contains("job 77 took 7 ms"), "{text}");
    assert!(text.contains("their deadline was over: 3"), "{text}");
    assert!(text.contains("its longest stall took 3 ms: host"), "{text}");
    assert!(text.contains("4 80% host"), "all by cause: {text}");
    assert!(text.contains("1 20% no stall of it is stored"), "{text}");
    assert!(text.contains("77 7 ms 3 ms 3 ms host"), "one by one: {text}");
    assert!(text.contains("80 never done ≥6 ms – no stall of it is stored"), "{text}");
    assert!(text.contains("3 more jobs took longer than R"), "{text}");
    assert!(text.contains("Predicted again") && text.contains("8 ms"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_set_that_asks_for_more_than_the_cpu_will_miss_deadlines() {
    let mut of = predicted(&[4]);
    (of.feasible, of.utilisation) = (Some(false), 1.14);
    let answer = |of: &Prediction| crate::first::of_prediction(of);
    assert!(
        answer(&of).contains("No: deadlines will be missed. The tasks need 114%"),
        "{}",
        answer(&of)
    );
    of.utilisation = 8_000_001.0 / 8e6;
    assert!(answer(&of).contains("need just over 100% of the CPU"), "{}", answer(&of));
    of.utilisation = 0.99;
    assert!(answer(&of).contains("may be missed"), "{}", answer(&of));
    let (reserved, limit) = (1.18, 0.95);
    of.admission = Some(whylate_model::prediction::Admission { reserved, limit, admitted: false });
    assert!(answer(&of).contains("the kernel refuses these reservations"), "{}", answer(&of));
}
