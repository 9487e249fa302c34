//! A recorded self-test, some interruptions of each kind: gaps and events attributed again, and judged by what
//! was injected, all of it from the directory alone. A change of the attribution that moves one gap is seen
//! here. What is expected is in `recorded.txt`, and causes are those that the recording stored.
//!
//! `cargo xtask keep selftest-2` records it anew, as a whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use whylate_cause::attribute::{EventCounts, Limits};
use whylate_cause::{Attributor, Context, Measured, Placement, validate};
use whylate_model::cause::Validation;
use whylate_model::directory::RunDir;
use whylate_model::event::{Event, EventKind};
use whylate_model::run::Run;
use whylate_model::segments::{self, StoredGap};
use whylate_model::{CpuId, TicksDelta};

use super::*;

/// Room for everything: nothing is shed.
const LIMITS: Limits = Limits {
    events_per_cpu: 1 << 20,
    gaps_per_thread: 1 << 20,
    sends_per_cpu: 1 << 20,
    events_per_gap: 1 << 20,
};

/// A self-test as its directory has it, and what the attribution makes of it now.
struct Again {
    run: Run,
    gaps: Vec<StoredGap>,
    made: Vec<Injected>,
    attributed: Vec<Attributed>,
    counts: EventCounts,
}

impl Again {
    fn recorded() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/selftest-2");
        let directory = RunDir::open(path).unwrap();
        let run = directory.read_run().unwrap();
        let gaps: Vec<StoredGap> =
            segments::read_gaps(&directory).unwrap().collect::<Result<_, _>>().unwrap();
        let events: Vec<Event> =
            segments::read_events(&directory).unwrap().collect::<Result<_, _>>().unwrap();
        let made = segments::read_injections(&directory).unwrap();
        let made = made.map(|made| injected(&made.unwrap())).collect();
        let (attributed, counts) = attribute(&run, &gaps, events);
        Self { run, gaps, made, attributed, counts }
    }

    fn test(&self) -> &SelfTest {
        self.run.selftest.as_ref().unwrap()
    }

    fn scored(&self) -> Scored {
        let sender = self.test().sender.unwrap();
        Scored { sender, with_trace: true, rate: self.run.clock.hz }
    }
}

fn injected(made: &Injection) -> Injected {
    let Injection { kind, since, start, end, asked } = made;
    let kind = Kind::named(kind).unwrap();
    Injected { kind, since: *since, start: *start, end: *end, asked: *asked }
}

/// As a recording does it, with all events at hand.
fn attribute(run: &Run, gaps: &[StoredGap], events: Vec<Event>) -> (Vec<Attributed>, EventCounts) {
    let of = &run.gaps[0];
    let mut context = Context::new(run.host.hypervisor.is_some(), run.clock.hz);
    let furthest = run.clock.cross_cpu.iter();
    let furthest = furthest.map(|of| of.offset_ticks.unsigned_abs() + of.bound.0).max();
    context.cross_cpu_bound = TicksDelta(2 * furthest.unwrap());
    context.threads = vec![Measured {
        index: 0,
        pid: run.selftest.as_ref().unwrap().thread.unwrap(),
        cpu: of.cpu,
        placement: Placement::Pinned,
        period_ticks: of.period_ticks,
        always_runs: true,
        slack: TicksDelta(0),
    }];
    let mut attributor = Attributor::new(context, LIMITS);
    attributor.trace_cpu(of.cpu);
    run.host.cpus_online.iter().for_each(|cpu| attributor.trace_sends(*cpu));
    attributor.begin(0, of.start).unwrap();
    let (here, sends) = told_apart(of.cpu, events);
    attributor.push_events(of.cpu, here);
    attributor.push_sends(sends);
    let interruptions: Vec<_> = gaps.iter().map(|stored| stored.gap).collect();
    attributor.push_gaps(0, &interruptions).unwrap();
    attributor.end(0, of.end).unwrap();
    let mut attributed = Vec::new();
    attributor.finish(&mut |gap| attributed.push(gap));
    (attributed, attributor.event_counts()[&of.cpu])
}

/// What was recorded on the measured CPU, and what CPUs sent to others. A wake-up there is recorded as
/// either, first as what happened on the CPU.
fn told_apart(measured: CpuId, events: Vec<Event>) -> (Vec<Event>, Vec<Event>) {
    let is_send =
        |kind: &EventKind| matches!(kind, EventKind::IpiSend { .. } | EventKind::CallQueued { .. });
    let (mut here, mut sends, mut both) = (Vec::new(), Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for event in events {
        match &event.kind {
            EventKind::Wakeup { task, .. } if event.cpu == measured => {
                both.entry(task.pid).or_default().push(event);
            }
            kind if is_send(kind) || event.cpu != measured => sends.push(event),
            _ => here.push(event),
        }
    }
    for mut of_task in both.into_values() {
        of_task.sort_by_key(|event| event.ticks);
        assert!(of_task.len().is_multiple_of(2), "a wake-up that one of the two did not record");
        for pair in of_task.chunks(2) {
            here.push(pair[0].clone());
            sends.push(pair[1].clone());
        }
    }
    here.sort_by_key(|event| event.ticks);
    (here, sends)
}

#[test]
fn of_a_part_of_a_self_test_each_kind_has_its_part_and_none_has_none() {
    let numbers = |part: u32| Kind::ALL.map(|kind| number(kind, NonZeroU32::new(part).unwrap()));
    assert_eq!(numbers(1), Kind::ALL.map(Kind::count));
    assert_eq!(numbers(20), [26, 51, 27, 28, 26]);
    assert_eq!(numbers(100_000), [1; 5]);
}

/// How many of each kind that was injected are named after each kind, and the verdict of each.
fn matrix(again: &Again) -> String {
    let of = again.scored();
    let found = again.attributed.iter().collect();
    let judge = Judge { found, sender: of.sender, with_trace: true, rate: of.rate };
    let mut lines = Vec::new();
    for row in score(&again.attributed, &again.made, &of) {
        let kind = Kind::named(&row.kind).unwrap();
        let made: Vec<&Injected> = again.made.iter().filter(|one| one.kind == kind).collect();
        let named = Kind::ALL.map(|other| {
            let as_other = |one: &&&Injected| {
                let overlapping = judge.overlapping(one.start, one.end);
                judge.named_right(&overlapping, &Injected { kind: other, ..***one })
            };
            format!("{} as {}", made.iter().filter(as_other).count(), other.name())
        });
        let SelfTestKind { injected, found, ascribed, ascribed_rightly, named_right, .. } = row;
        lines.push(format!(
            "{}: {} made, {injected} judged, {found} found, {named_right} named right; {ascribed} gaps \
             ascribed, {ascribed_rightly} rightly; named {}",
            row.kind,
            made.len(),
            named.join(", ")
        ));
    }
    lines.join("\n")
}

/// The line of the committed verdict that begins so is this one. `UPDATE_RECORDED=1` writes it: the recording is
/// another one (`cargo xtask keep selftest-2`), or what is made of it changed on purpose.
fn is_as_expected(head: &str, told: &str) {
    static ONE_WRITES: Mutex<()> = Mutex::new(());
    let _one = ONE_WRITES.lock();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scoring/recorded.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE_RECORDED").is_none() {
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(head)).collect();
        return assert_eq!(lines, [told]);
    }
    assert!(text.lines().any(|line| line.starts_with(head)), "{head} has no line in recorded.txt");
    let written: Vec<&str> =
        text.lines().map(|line| if line.starts_with(head) { told } else { line }).collect();
    std::fs::write(&path, written.join("\n") + "\n").unwrap();
}

#[test]
fn every_interruption_of_the_recorded_self_test_is_found_and_named_as_it_was() {
    let again = Again::recorded();
    let told = matrix(&again);
    let heads: Vec<String> =
        told.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    // A kind without a line would be compared with nothing.
    assert_eq!(heads, Kind::ALL.map(|kind| kind.name().to_owned()), "{told}");
    for (head, line) in heads.iter().zip(told.lines()) {
        is_as_expected(&format!("{head}:"), line);
    }
}

#[test]
fn evidence_b_of_the_recorded_self_test_has_its_exact_matrix() {
    let again = Again::recorded();
    let of = validate::validate(&again.attributed);
    let Validation { switch_as_switch, switch_as_none, none_as_switch, none_as_none, undecided } =
        of;
    let told = format!(
        "evidence b: switches {switch_as_switch} as switch, {switch_as_none} as none; others \
         {none_as_switch} as switch, {none_as_none} as none; {undecided} undecided"
    );
    is_as_expected("evidence b:", &told);
}

#[test]
fn events_of_the_recorded_self_test_lie_inside_its_gaps() {
    let again = Again::recorded();
    let of = again.counts;
    assert_eq!((of.late, of.out_of_order, of.dropped), (0, 0, 0));
    let told = format!(
        "events: {} inside gaps, {} outside, {} while one was recorded, {} unattended",
        of.inside, of.outside, of.in_recording, of.unattended
    );
    is_as_expected("events:", &told);
}

#[test]
fn each_gap_of_the_recorded_self_test_is_its_parts_and_named_as_it_was() {
    let again = Again::recorded();
    assert_eq!(again.attributed.len(), again.gaps.len());
    let (mut own, mut of_switched, mut by_cause) = (0, 0, BTreeMap::<String, u64>::new());
    for (now, then) in again.attributed.iter().zip(&again.gaps) {
        assert_eq!(now.gap, then.gap);
        assert_eq!(now.parts.first().map(|part| part.start), Some(now.gap.start));
        for pair in now.parts.windows(2) {
            assert_eq!(pair[0].start + pair[0].length, pair[1].start, "{now:?}");
        }
        let sum: u64 = now.parts.iter().map(|part| part.length.0).sum();
        assert_eq!(sum, now.gap.length().0, "{now:?}");
        assert!(now.own <= now.gap.length(), "{now:?}");
        assert_eq!(Some(now.cause.stored().as_str()), then.cause.as_deref(), "{now:?}");
        own += now.own.0;
        of_switched += u64::from(now.switched == Some(true));
        *by_cause.entry(now.cause.stored()).or_default() += 1;
    }
    let told = format!(
        "gaps: {}, of which {of_switched} were switched out of; {own} ticks in them were the thread's own",
        again.gaps.len()
    );
    is_as_expected("gaps:", &told);
    let causes: Vec<String> = by_cause.iter().map(|(name, n)| format!("{n} {name}")).collect();
    is_as_expected("causes:", &format!("causes: {}", causes.join(", ")));
}
