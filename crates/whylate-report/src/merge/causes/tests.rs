//! Sums of causes and evidence of planted runs.

use whylate_model::{Nanos, Ticks};

use super::*;
use crate::timeline::tests::recorded;

/// A run of one CPU that lost so many ns to causes, of which a part is explained.
fn run(cpu: u32, lost: &[(Cause, f64, u64)], coverage: [f64; 3]) -> Run {
    let mut run = recorded();
    let template = run.causes[0].clone();
    run.causes.clear();
    for (cause, lost_ns, gaps) in lost {
        for cpu in [None, Some(CpuId(cpu))] {
            let (cause, longest) = (cause.clone(), Nanos(*gaps));
            run.causes.push(CauseTotal {
                cause,
                cpu,
                lost_ns: *lost_ns,
                gaps: *gaps,
                parts: 2 * gaps,
                longest,
                ..template.clone()
            });
        }
    }
    run.gaps[0].cpu = CpuId(cpu);
    (run.gaps[0].start, run.gaps[0].end) = (Ticks(0), Ticks(1_000));
    run.gaps[0].lost = Nanos(lost.iter().map(|(_, ns, _)| *ns as u64).sum());
    let [by_events, by_residuals, by_nothing] = coverage;
    run.coverage = Some(Coverage { by_events, by_residuals, by_nothing });
    (run.senders, run.foreign_threads, run.validation) = (Vec::new(), Vec::new(), None);
    run.evidence = Evidence { rseq: true, ..Evidence::default() };
    run
}

fn sum(runs: &[Run], across_cpus: bool) -> Totals {
    let mut sums = Sums::default();
    for run in runs {
        sums.add(run, across_cpus).unwrap();
    }
    let gaps: Vec<GapSummary> = runs.iter().flat_map(|run| run.gaps.clone()).collect();
    sums.finish(&gaps)
}

fn of(totals: &Totals, cpu: Option<u32>, cause: &Cause) -> CauseTotal {
    let is = |of: &&CauseTotal| of.cpu == cpu.map(CpuId) && of.cause == *cause;
    totals.causes.iter().find(is).unwrap().clone()
}

#[test]
fn causes_add_up_with_shares_of_what_the_sum_lost_and_of_its_time() {
    let one = run(1, &[(Cause::Nmi, 100.0, 5), (Cause::PageFault, 300.0, 7)], [0.5, 0.25, 0.25]);
    let other = run(2, &[(Cause::Nmi, 200.0, 11)], [0.9, 0.0, 0.1]);
    let found = sum(&[one.clone(), other], false);
    let whole = of(&found, None, &Cause::Nmi);
    assert_eq!((whole.gaps, whole.parts, whole.longest), (16, 32, Nanos(11)));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(whole.lost_ns, 300.0);
    near(whole.share_of_lost, 0.5);
    near(whole.share_of_elapsed, 0.15);
    let own = of(&found, Some(1), &Cause::Nmi);
    near(own.share_of_lost, 0.25);
    near(own.share_of_elapsed, 0.1);
    // Weighted by what each lost: 400 and 200.
    let coverage = found.coverage.unwrap();
    near(coverage.by_events, (0.5 * 400.0 + 0.9 * 200.0) / 600.0);
    near(coverage.by_residuals, 0.25 * 400.0 / 600.0);
    near(coverage.by_nothing, (0.25 * 400.0 + 0.1 * 200.0) / 600.0);
    let across = sum(&[one], true);
    assert!(across.causes.iter().all(|of| of.cpu.is_none()) && across.causes.len() == 2);
    assert_eq!(sum(&[run(1, &[], [0.0; 3])], false).coverage, None, "nothing was lost");
}

#[test]
fn causes_of_a_part_of_the_gaps_come_to_what_these_lost_where_only_bins_differ() {
    let finish = |lost: u64| {
        let mut one = run(1, &[(Cause::Nmi, 100.0, 5), (Cause::PageFault, 300.0, 7)], [0.0; 3]);
        one.gaps[0].lost = Nanos(lost);
        let mut sums = Sums::default();
        sums.add_cut(&one, false).unwrap();
        of(&sums.finish(&one.gaps), Some(1), &Cause::PageFault).lost_ns
    };
    for (lost, expected) in [(400, 300.0), (402, 301.5), (398, 298.5), (410, 300.0), (390, 300.0)] {
        assert!((finish(lost) - expected).abs() < 1e-9, "{lost}: {}", finish(lost));
    }
}

#[test]
fn evidence_is_known_of_a_sum_where_each_recording_knows_it() {
    let with = |rseq, steal_ns, smi_count, by_cpu: &[(u32, f64)]| {
        let mut run = run(1, &[], [0.0; 3]);
        let of_cpu = |&(cpu, steal_ns): &(u32, f64)| CpuSteal { cpu: CpuId(cpu), steal_ns };
        run.evidence = Evidence {
            rseq,
            steal_ns,
            smi_count,
            steal_by_cpu: by_cpu.iter().map(of_cpu).collect(),
            proc_deltas: vec![ProcDelta { name: "LOC".to_owned(), cpu: CpuId(1), count: 4 }],
            ..Evidence::default()
        };
        run
    };
    let one = with(true, Some(3.0), Some(2), &[(1, 3.0), (2, 1.0)]);
    let found =
        sum(&[one.clone(), with(true, Some(4.0), Some(u64::MAX), &[(1, 4.0)])], false).evidence;
    assert_eq!((found.rseq, found.steal_ns, found.smi_count), (true, Some(7.0), Some(u64::MAX)));
    assert_eq!(found.proc_deltas[0].count, 8);
    // Only of the CPU that both know.
    assert_eq!(found.steal_by_cpu, [CpuSteal { cpu: CpuId(1), steal_ns: 7.0 }]);
    let found = sum(&[one, with(false, None, None, &[])], false).evidence;
    assert_eq!((found.rseq, found.steal_ns, found.smi_count), (false, None, None));
    assert_eq!(found.steal_by_cpu, []);
}

#[test]
fn counts_of_a_validation_that_no_sum_holds_end_at_the_largest() {
    let of = |most| {
        let mut run = run(1, &[], [0.0; 3]);
        run.validation = Some(Validation {
            switch_as_switch: most,
            switch_as_none: 1,
            none_as_switch: 2,
            none_as_none: 3,
            undecided: most,
        });
        run
    };
    let found = sum(&[of(u64::MAX), of(5)], false).validation.unwrap();
    let expected = Validation {
        switch_as_switch: u64::MAX,
        switch_as_none: 2,
        none_as_switch: 4,
        none_as_none: 6,
        undecided: u64::MAX,
    };
    assert_eq!(found, expected);
}

#[test]
fn senders_add_up_by_name_way_and_cause() {
    let with = |comm: &str, count| {
        let mut run = run(1, &[], [0.0; 3]);
        run.senders = vec![SenderTotal {
            comm: comm.to_owned(),
            from: CpuId(0),
            to: CpuId(1),
            cause: Cause::Nmi,
            count,
            lost_ns: 2.5,
        }];
        run
    };
    let found = sum(&[with("a", 3), with("b", 4), with("a", 5)], false).senders;
    let found: Vec<_> = found.into_iter().map(|of| (of.comm, of.count, of.lost_ns)).collect();
    assert_eq!(found, [("a".to_owned(), 8, 5.0), ("b".to_owned(), 4, 2.5)]);
}
