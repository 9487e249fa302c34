//! First screens of runs that are larger, or hold less, than any that was recorded.

use whylate_model::cause::{Cause, CauseTotal, PriorityClass};
use whylate_model::flow::Packets;
use whylate_model::foreign::{ForeignProcess, ForeignThread};
use whylate_model::series::Series;
use whylate_model::threads::Deadlines;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid, TicksDelta};

use super::{assert_fits, commanded, shown, style};
use crate::kept::kept;
use whylate_model::run::{CpuSteal, Run};

/// The kept run of woken threads as one of so many, each later than the one before.
fn timers(many: u64) -> Run {
    let mut run = commanded("whylate wake --cpus 1 --timers all", kept("wake").1);
    let (wake, thread) = (run.wakes.remove(0), run.threads.remove(0));
    let series = std::mem::take(&mut run.series);
    for at in 0..many {
        let name = format!("timer{at}");
        run.threads
            .push(whylate_model::threads::ThreadSummary { name: name.clone(), ..thread.clone() });
        let wake = whylate_model::wake::WakeSummary { thread: name.clone(), ..wake.clone() };
        run.wakes.push(whylate_model::wake::WakeSummary { skipped: Some(at), ..wake });
        run.series.extend(series.iter().map(|of| {
            let mut of: Series = of.clone();
            of.name = of.name.replace("HR", &name);
            // All of them rise with the number of the timer.
            let nth = |ns: u64| Some(Nanos((at + 1) * ns));
            (of.min, of.max) = (nth(400), nth(2_100));
            for quantile in &mut of.quantiles {
                let ns = match quantile.percent {
                    ..99.0 => 800,
                    99.0 => 1_000,
                    _ => 1_200,
                };
                (quantile.value, quantile.low, quantile.high) =
                    (nth(ns), nth(ns - 50), nth(ns + 50));
            }
            of
        }));
    }
    run
}

#[test]
fn of_many_timers_the_best_and_the_worst_are_named_and_the_last_rows_are_counted() {
    for many in [2, 12, 40] {
        let screen = shown(&timers(many), style());
        assert_fits(&screen);
        let worst = format!("worst timer{} (p99 {many} µs).", many - 1);
        assert!(screen.contains("best timer0 (p99 1 µs)") && screen.contains(&worst), "{screen}");
        // Both that are named have a row, the best first.
        let rows = screen.lines().filter_map(|line| line.strip_prefix("timer")?.split(' ').next());
        let rows: Vec<&str> = rows.collect();
        let last = (many - 1).to_string();
        assert_eq!((rows.first(), rows.last()), (Some(&"0"), Some(&last.as_str())), "{screen}");
        let left = many as usize - rows.len();
        assert_eq!(screen.contains(&format!("and {left} more: --full")), left > 0, "{screen}");
    }
    insta::assert_snapshot!("wake-12", shown(&timers(12), style()));
}

#[test]
fn skipped_wake_ups_are_told_with_both_rows() {
    let mut run = kept("wake").1;
    run.wakes[0].skipped = Some(13);
    let screen = shown(&run, style());
    assert_fits(&screen);
    let said = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("13 wake-ups were skipped while the thread was still late."), "{screen}");
    assert!(
        screen.contains("\nuncorrected ") && screen.contains("\nall due wake-ups "),
        "{screen}"
    );
}

#[test]
fn threads_of_one_process_are_one_cause_whatever_their_names() {
    let mut run = kept("gaps").1;
    run.foreign_threads.clear();
    let (total, class) = (run.causes[0].clone(), PriorityClass::Ordinary);
    run.causes.clear();
    let add = |run: &mut Run, comm: &str, process: Option<&str>, lost_ns: f64| {
        let cause = Cause::Thread { comm: comm.to_owned(), class };
        run.causes.push(CauseTotal { cause, cpu: None, gaps: 10, lost_ns, ..total.clone() });
        let process = process.map(|name| ForeignProcess { pid: Pid(7), name: name.to_owned() });
        let tid = Pid(run.causes.len() as i32);
        run.foreign_threads.push(ForeignThread { comm: comm.to_owned(), tid, process });
    };
    for at in 0..20 {
        add(&mut run, &format!("worker-{at}"), Some("java"), 8e5);
    }
    for (comm, process) in [("java", Some("java")), ("rsync", Some("rsync")), ("gone", None)] {
        add(&mut run, comm, process, 1e6);
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    let row = |name: &str| screen.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    let words = |row: Option<String>| {
        row.unwrap_or_default().split_whitespace().skip(3).map(str::to_owned).collect::<Vec<_>>()
    };
    // 20 x 0.8 ms and 1 ms of 19 ms.
    let java = words(row("process java (normal) "));
    assert_eq!((&*java[0], &*java[1], &*java[3]), ("17", "89%", "210"), "{screen}");
    assert!(
        row("task rsync (normal) ").is_some() && row("task gone (normal) ").is_some(),
        "{screen}"
    );
    assert!(row("other causes").is_none() && row("task worker").is_none(), "{screen}");
    // A name that threads of two processes have is nobody's.
    let other = ForeignProcess { pid: Pid(8), name: "scala".to_owned() };
    let comm = "worker-1".to_owned();
    run.foreign_threads.push(ForeignThread { comm, tid: Pid(99), process: Some(other) });
    let screen = shown(&run, style());
    assert!(screen.contains("\ntask worker-1 of java and s"), "{screen}");
}

/// The kept set as one of so many threads, the last of which misses most.
pub(super) fn set(many: usize) -> Run {
    let mut run = kept("threads").1;
    let video = run.threads.remove(1);
    let response =
        run.series.iter().find(|series| series.name == "response-video").unwrap().clone();
    run.threads.clear();
    for at in 0..many {
        let name = format!("t{at}");
        run.series.push(Series { name: format!("response-{name}"), ..response.clone() });
        let (misses, miss_share_interval) = (at as u64, None);
        let mut deadlines =
            video.deadlines.clone().map(|of| Deadlines { misses, miss_share_interval, ..of });
        for cause in deadlines.iter_mut().flat_map(|of| &mut of.causes) {
            cause.misses = misses;
        }
        run.threads.push(whylate_model::threads::ThreadSummary {
            name,
            deadlines,
            ..video.clone()
        });
    }
    run
}

#[test]
fn of_many_threads_those_that_missed_most_stand_first() {
    for many in [1, 4, 5, 20, 200] {
        let screen = shown(&set(many), style());
        assert_fits(&screen);
        let missed = many * (many - 1) / 2;
        let first = screen.lines().nth(1).unwrap();
        let said = match missed {
            0 => "All 5 deadlines were met.".to_owned(),
            missed => format!("{} of ", crate::numbers::count(missed as u64)),
        };
        assert!(first.starts_with(&said), "{first}");
        if many > 4 {
            let row = screen.lines().skip(1).find(|line| line.contains("PERIODIC")).unwrap();
            assert!(row.starts_with(&format!("t{} ", many - 1)), "{screen}");
        }
    }
    insta::assert_snapshot!("threads-20", shown(&set(20), style()));
}

/// The kept sum as one of so many recordings of 200 ms, each of which lost a hundredth more than the one before.
fn recordings(many: usize) -> Run {
    let names: Vec<String> = (0..many).map(|at| format!("run-{at}")).collect();
    let command = format!("whylate merge -o merge {}", names.join(" "));
    let mut run = commanded(&command, kept("merge").1);
    let origin = run.origins[0].clone();
    let each = run.gaps[0].end.since(run.gaps[0].start).0 / run.origins.len() as u64;
    run.origins.clear();
    for at in 0..many {
        let mut origin = origin.clone();
        origin.directory = format!("run-{at}");
        for share in &mut origin.series {
            share.lost_share = Some(0.01 * (at + 1) as f64);
            share.lost_share_interval = None;
        }
        run.origins.push(origin);
    }
    let (gaps, share) = (&mut run.gaps[0], 0.005 * (many + 1) as f64);
    gaps.end = gaps.start + TicksDelta(each * many as u64);
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz).0 as f64;
    (gaps.lost_share, gaps.lost_share_interval) = (share, None);
    gaps.lost = Nanos((share * elapsed) as u64);
    let own = |total: &CauseTotal| total.cpu.is_none();
    let all: f64 = run.causes.iter().filter(|of| own(of)).map(|of| of.lost_ns).sum();
    for total in &mut run.causes {
        total.lost_ns *= share * elapsed / all;
        total.share_of_elapsed = total.lost_ns / elapsed;
    }
    run
}

#[test]
fn of_many_recordings_those_that_lost_most_stand_first() {
    for many in [2, 5, 30, 90] {
        let screen = shown(&recordings(many), style());
        assert_fits(&screen);
        let row = screen.lines().find(|line| line.starts_with("run-")).unwrap();
        assert!(row.starts_with(&format!("run-{} ", many - 1)), "{screen}");
        let said = format!("The runs disagree: 1.0% to {many}");
        assert!(screen.contains(&said), "{screen}");
    }
    insta::assert_snapshot!("merge-30", shown(&recordings(30), style()));
}

#[test]
fn of_many_flows_the_first_is_told_whole_and_what_has_no_room_is_counted() {
    let mut run = kept("rtt").1;
    let flow = run.flows[0].clone();
    for at in 1..12 {
        run.flows.push(whylate_model::flow::Flow { name: format!("load{at}"), ..flow.clone() });
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(
        screen.contains("\nrtt: response time ") && screen.contains("more: --full"),
        "{screen}"
    );
    insta::assert_snapshot!("rtt-12", screen);
}

#[test]
fn lost_requests_are_in_the_answer_and_what_is_seldom_has_a_column_where_it_happened() {
    let mut run = kept("rtt").1;
    run.flows[0].packets.lost = 3;
    run.flows[0].packets.reordered = 2;
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("; 3 lost.") && screen.contains("  reordered"), "{screen}");
    assert!(!screen.contains("never sent"), "{screen}");
}

#[test]
fn a_client_that_could_not_hold_the_rate_says_so_in_the_answer() {
    let mut run = kept("rtt").1;
    run.flows[0].departures.process.verdict = whylate_model::flow::ProcessVerdict::Saturated;
    run.flows[0].departures.per_second = Some(912_000.0);
    run.flows[0].asked.per_second = Some(1_500_000.0);
    // In 300 ms.
    let (flow, sent) = (&mut run.flows[0], 273_600);
    (flow.departures.intended, flow.departures.sent) = (450_000, sent);
    flow.packets = Packets { sent, received: sent, arrived: sent, ..Packets::default() };
    let screen = shown(&run, style());
    assert_fits(&screen);
    let answer = screen.lines().skip(1).take(2).collect::<Vec<_>>().join(" ");
    let told =
        "; none lost. Saturated: sent 912,000 of 1,500,000 requests/s; times are of that rate.";
    assert!(answer.starts_with("Response time (") && answer.ends_with(told), "{screen}");
    insta::assert_snapshot!("rtt-saturated", screen);
}

/// The kept run of a busy thread as somebody without root has it.
pub(super) fn without_root() -> Run {
    let mut run = commanded("whylate gaps --duration 1s", kept("gaps").1);
    run.evidence.trace = None;
    run.coverage = None;
    run.findings.clear();
    let (reason, remedy) = ("tracefs: permission denied".to_owned(), "Run as root.".to_owned());
    let unlocked = "RLIMIT_MEMLOCK is 8 MiB".to_owned();
    run.warnings = vec![
        Warning::NoKernelTrace { reason, remedy },
        Warning::MemoryNotLocked { reason: unlocked },
    ];
    let (total, gaps) = (run.causes[0].clone(), run.gaps[0].clone());
    let of = |cause, part: f64, stalls, longest| CauseTotal {
        cause,
        cpu: None,
        gaps: stalls,
        lost_ns: part * gaps.lost.0 as f64,
        share_of_lost: part,
        share_of_elapsed: part * gaps.lost_share,
        longest: Nanos(longest),
        ..total.clone()
    };
    run.causes = vec![
        of(Cause::ContextSwitch, 0.83, 291, 488_083),
        of(Cause::NotSwitched, 0.17, gaps.gaps - 291, 93_100),
    ];
    run
}

#[test]
fn without_root_causes_are_those_that_can_be_inferred_and_the_command_that_names_them_is_told() {
    let screen = shown(&without_root(), style());
    assert_fits(&screen);
    for said in [
        "Of that, 83% went to other tasks and 17% to interrupts or the hypervisor.",
        "sudo \"$(command -v whylate)\" gaps --cpus 1  names tasks and interrupts",
        "Trust: limited. No kernel trace: ",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    insta::assert_snapshot!("gaps-without-root", screen);
}

#[test]
fn time_without_an_event_is_the_hypervisors_where_its_steal_bears_that_out() {
    let mut run = kept("gaps").1;
    let stolen = |ns: f64| vec![CpuSteal { cpu: CpuId(1), steal_ns: ns }];
    // Of 9 ms without an event.
    (run.evidence.steal_ns, run.evidence.steal_by_cpu) = (Some(1e6), stolen(1e6));
    let screen = shown(&run, style());
    assert!(screen.contains("Of that, 47% has no kernel event"), "{screen}");
    (run.evidence.steal_ns, run.evidence.steal_by_cpu) = (Some(9e6), stolen(9e6));
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("Of that, 47% went to the hypervisor"), "{screen}");
    assert!(screen.contains("\nhypervisor ") && !screen.contains("no kernel event"), "{screen}");
    insta::assert_snapshot!("gaps-steal", screen);
}

/// What a sample of one shows is its only value, and nothing of its tail.
#[test]
fn one_sample_has_a_maximum_and_no_percentile() {
    let mut run = kept("wake").1;
    for series in &mut run.series {
        series.n = 1;
        for of in &mut series.quantiles {
            (of.value, of.low, of.high) = (None, None, None);
        }
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("p50 –, p99 –, worst 26.4 µs."), "{screen}");
}

#[test]
fn a_kind_of_which_nothing_was_measured_is_printed_whole_or_says_so() {
    let place = super::Place { directory: Some(std::path::Path::new("RUN")), again: true };
    for kind in ["wake", "rtt", "threads"] {
        let mut run = kept(kind).1;
        run.series.clear();
        for thread in &mut run.threads {
            (thread.deadlines, thread.received, thread.lost) = (None, Nanos(0), Nanos(0));
        }
        assert_eq!(super::first_screen(&run, place, style()), None, "{kind}");
    }
    let mut run = kept("switch-cost").1;
    if let Some(of) = &mut run.switch_cost {
        of.direct.clear();
        of.indirect.clear();
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("The cost of a thread switch on CPU 1 was not measured."), "{screen}");
}

#[test]
fn a_check_up_counts_skipped_wake_ups_in_one_row() {
    let mut run = kept("checkup").1;
    let wake = run.series.iter().position(|series| series.name == "wake").unwrap();
    let corrected =
        Series { name: "wake-corrected".to_owned(), n: 4_034, ..run.series[wake].clone() };
    run.series.insert(wake + 1, corrected);
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("Timer wake-ups include 34 skipped ones"), "{screen}");
    assert_eq!(screen.matches("timer wake-up ").count(), 1, "{screen}");
    assert!(screen.contains(" 4,034\n"), "{screen}");
}
