//! The rules of inference that need a set: R1 to R5, each held against the kernel's evidence where
//! there is some.

use std::collections::{BTreeMap, HashMap};

use whylate_cause::rules::{
    Counted, Habit, Preemption, Standing, r1_cost, r1_findings, r2_involuntary,
    r3_highest_priority, r4_load, r5_timers,
};
use whylate_cause::{Attributed, Basis, naming};
use whylate_model::cause::{Cause, Rule};
use whylate_model::execution::Block;
use whylate_model::gap::GapKind;
use whylate_model::run::{Confidence, Finding};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};

/// Gaps whose switches are remembered, to hold R1 and R2 against them.
const MOST_SWITCHES: usize = 1 << 20;
/// A wake-up is late from this many times the usual lateness of the better timer on.
const LATE: u64 = 4;
/// Of what a rule says, the share that the trace must bear out.
const BORNE_OUT: f64 = 0.95;
/// Loads that come and go for less than this share of the run say nothing.
const LEAST_PHASE: f64 = 0.05;

/// What the rules are told of one thread.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) name: String,
    /// Never waits of its own accord.
    pub(super) always_runs: bool,
    /// SCHED_FIFO priority, as read back.
    pub(super) fifo: Option<u8>,
    pub(super) timer: &'static str,
    /// First and last tick of its schedule.
    pub(super) term: (Ticks, Ticks),
}

/// What the trace says of the switches of each thread.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// By thread and begin of the gap: with an interrupt before the switch.
    seen: HashMap<(u16, Ticks), bool>,
    /// By thread: gaps it did not ask for, and those of them with another thread in them.
    gaps: BTreeMap<u16, (u64, u64)>,
    complete: bool,
    traced: bool,
}

impl Switches {
    pub(super) fn new() -> Self {
        Self { complete: true, ..Self::default() }
    }

    pub(super) fn gap(&mut self, of: &Attributed) {
        self.complete &= of.basis == Basis::Trace;
        self.traced |= of.basis == Basis::Trace;
        let switched = of.switched == Some(true);
        if of.gap.kind == GapKind::Interruption {
            let (gaps, with) = self.gaps.entry(of.thread).or_default();
            *gaps += 1;
            *with += u64::from(switched);
        }
        if switched && self.seen.len() < MOST_SWITCHES {
            let before = of.parts.iter().take_while(|part| !naming::is_thread(&part.cause));
            let interrupted =
                before.into_iter().any(|part| matches!(part.cause, Cause::Interrupt { .. }));
            self.seen.insert((of.thread, of.gap.start), interrupted);
        }
    }
}

/// The execution trace as far as it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traced<'a> {
    pub(super) blocks: &'a [Block],
    pub(super) latencies: &'a [(u16, Ticks, Nanos)],
    /// From here on blocks found no room: what a rule counts, it counts up to here.
    pub(super) full_at: Option<Ticks>,
}

/// Every rule that has something to say.
pub(super) fn findings(
    threads: &[About],
    traced: &Traced<'_>,
    switches: &Switches,
    hz: Hertz,
) -> Vec<Finding> {
    let full_at = traced.full_at.unwrap_or(Ticks(u64::MAX));
    let mut threads = threads.to_vec();
    for about in &mut threads {
        about.term = (about.term.0.min(full_at), about.term.1.min(full_at));
    }
    let before = traced.blocks.iter().filter(|block| block.end < full_at).copied();
    let blocks: Vec<Block> = before.collect();
    let mut findings = Vec::new();
    let pairs = pairs(&blocks, &threads);
    findings.extend(r1(&pairs, switches, hz));
    findings.extend(r2(&pairs, &threads, switches));
    findings.extend(r4(&threads, &blocks, hz));
    if let (Some(at), Some(begin)) = (traced.full_at, threads.iter().map(|of| of.term.0).min()) {
        let length = at.since(begin).to_nanos(hz);
        for finding in &mut findings {
            let whole = &finding.text;
            finding.text = format!("{whole} (in the first {length}, where the trace had room)");
        }
    }
    findings.extend(r3(&threads, &blocks, switches));
    findings.extend(r5(&threads, traced.latencies));
    findings
}

/// Where one thread stopped and another went on, on one CPU.
struct Pair {
    from: u16,
    to: u16,
    at: Ticks,
    gap: TicksDelta,
}

/// A thread that came to its end was not switched away from: whoever follows it does not count.
fn pairs(blocks: &[Block], threads: &[About]) -> Vec<Pair> {
    let over = |block: &Block| {
        threads.get(block.thread as usize).is_some_and(|about| block.end >= about.term.1)
    };
    let mut last: BTreeMap<CpuId, &Block> = BTreeMap::new();
    let mut pairs = Vec::new();
    for block in blocks {
        if let Some(before) = last.insert(block.cpu, block)
            && before.thread != block.thread
            && !over(before)
        {
            let (from, to, at) = (before.thread, block.thread, before.end);
            pairs.push(Pair { from, to, at, gap: block.start.since(at) });
        }
    }
    pairs
}

fn r1(pairs: &[Pair], switches: &Switches, hz: Hertz) -> Vec<Finding> {
    let Some(cost) = r1_cost(pairs.iter().map(|pair| pair.gap).collect()) else {
        return Vec::new();
    };
    let mut findings = r1_findings(&cost, hz);
    if switches.traced {
        let borne = pairs.iter().filter(|pair| switches.seen.contains_key(&(pair.from, pair.at)));
        let borne = borne.count();
        hold_against(&mut findings, borne, pairs.len());
        findings.push(borne_out(Rule::R1, borne, pairs.len(), "hold a context switch"));
    }
    findings
}

fn r2(pairs: &[Pair], threads: &[About], switches: &Switches) -> Vec<Finding> {
    let runs = |thread: u16| threads.get(thread as usize).is_some_and(|about| about.always_runs);
    let between: Vec<&Pair> =
        pairs.iter().filter(|pair| runs(pair.from) && runs(pair.to)).collect();
    let count = between.len() as u64;
    let mut findings: Vec<Finding> =
        r2_involuntary(count, Habit::NeverBlocks, Habit::NeverBlocks).into_iter().collect();
    if switches.traced && !between.is_empty() {
        let interrupted = |pair: &&&Pair| switches.seen.get(&(pair.from, pair.at)) == Some(&true);
        let borne = between.iter().filter(interrupted).count();
        hold_against(&mut findings, borne, between.len());
        findings.push(borne_out(
            Rule::R2,
            borne,
            between.len(),
            "begin with an interrupt before the switch",
        ));
    }
    findings
}

/// What the trace contradicts is not certain, whatever the rule says of itself.
fn hold_against(findings: &mut [Finding], borne: usize, of: usize) {
    let confidence = match borne as f64 / of as f64 {
        share if share >= BORNE_OUT => return,
        share if share >= 0.5 => Confidence::Likely,
        _ => Confidence::Possible,
    };
    for finding in findings {
        finding.confidence = finding.confidence.max(confidence);
    }
}

fn borne_out(rule: Rule, borne: usize, of: usize, what: &str) -> Finding {
    let text = format!("held against the trace: {borne} of {of} such gaps {what}");
    Finding { rule, cpu: None, text, confidence: Confidence::Certain }
}

/// The highest real-time thread of each CPU, where it never waits.
fn r3(threads: &[About], blocks: &[Block], switches: &Switches) -> Vec<Finding> {
    let mut highest: BTreeMap<CpuId, (u8, u16)> = BTreeMap::new();
    for block in blocks {
        let Some(about) = threads.get(block.thread as usize) else { continue };
        let Some(priority) = about.fifo else { continue };
        let known = highest.entry(block.cpu).or_insert((priority, block.thread));
        if priority > known.0 {
            *known = (priority, block.thread);
        }
    }
    let said = highest.into_iter().filter_map(|(cpu, (priority, thread))| {
        let about = &threads[thread as usize];
        let (gaps, with) = switches.gaps.get(&thread).copied().unwrap_or_default();
        let with = switches.complete.then_some(with);
        about
            .always_runs
            .then(|| r3_highest_priority(Standing::RealTime(priority), cpu, gaps, with))
            .flatten()
    });
    said.collect()
}

/// Gaps of a thread that always runs, while the others are there and while they are not.
fn r4(threads: &[About], blocks: &[Block], hz: Hertz) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, about) in threads.iter().enumerate().filter(|(_, about)| about.always_runs) {
        let others: Vec<(Ticks, Ticks)> = threads
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, other)| other.term)
            .collect();
        let loaded_at = |at: Ticks| others.iter().any(|(from, to)| (*from..*to).contains(&at));
        let loaded: u64 = union(&others, about.term);
        let whole = about.term.1.since(about.term.0).0;
        let idle = whole.saturating_sub(loaded);
        let least = whole as f64 * LEAST_PHASE;
        if (loaded as f64) < least || (idle as f64) < least {
            continue;
        }
        let own = blocks.iter().filter(|block| block.thread as usize == index);
        let (mut in_load, mut in_idle) = (0, 0);
        for block in own {
            let count = if loaded_at(block.end) { &mut in_load } else { &mut in_idle };
            *count += 1;
        }
        let counted = |gaps, ticks| Counted { gaps, time: TicksDelta(ticks).to_nanos(hz) };
        if let Ok(mut finding) = r4_load(counted(in_idle, idle), counted(in_load, loaded)) {
            finding.text = format!("thread {}: {}", about.name, finding.text);
            findings.push(finding);
        }
    }
    findings
}

/// Length of the union of spans inside `within`.
fn union(spans: &[(Ticks, Ticks)], within: (Ticks, Ticks)) -> u64 {
    let mut spans: Vec<(u64, u64)> = spans
        .iter()
        .map(|(from, to)| (from.0.max(within.0.0), to.0.min(within.1.0)))
        .filter(|(from, to)| to > from)
        .collect();
    spans.sort_unstable();
    let (mut total, mut covered) = (0, 0);
    for (from, to) in spans {
        let from = from.max(covered);
        total += to.saturating_sub(from);
        covered = covered.max(to);
    }
    total
}

/// Each timer against the one whose wake-ups are the least late; those that do not differ by the rule
/// are told, too, for silence would not say that they were compared.
fn r5(threads: &[About], latencies: &[(u16, Ticks, Nanos)]) -> Vec<Finding> {
    let mut by_timer: BTreeMap<&str, Vec<Nanos>> = BTreeMap::new();
    for (thread, _, late) in latencies {
        if let Some(about) = threads.get(*thread as usize) {
            by_timer.entry(about.timer).or_default().push(*late);
        }
    }
    let median = |late: &[Nanos]| {
        let mut late = late.to_vec();
        late.sort_unstable();
        late.get(late.len() / 2).copied().unwrap_or_default()
    };
    let Some((best, good)) = by_timer.iter().min_by_key(|(_, late)| median(late)) else {
        return Vec::new();
    };
    let late = Nanos(median(good).0.saturating_mul(LATE).max(1));
    let (mut findings, mut alike) = (Vec::new(), Vec::new());
    for (name, sample) in by_timer.iter().filter(|(name, _)| *name != best) {
        match r5_timers((name, sample), (best, good), late, preemption()) {
            Ok(Some(finding)) => findings.push(finding),
            Ok(None) => alike.push((*name, sample.as_slice())),
            Err(_) => {}
        }
    }
    findings.extend(r5_alike(&alike, (best, good), late));
    findings
}

/// That some timers do not differ from the best one, with what was compared.
fn r5_alike(
    alike: &[(&str, &[Nanos])],
    (best, good): (&str, &[Nanos]),
    late: Nanos,
) -> Option<Finding> {
    let counted = |(name, sample): (&str, &[Nanos])| {
        let beyond = sample.iter().filter(|of| **of >= late).count();
        format!("{beyond} of {} with {name}", sample.len())
    };
    let told: Vec<String> = alike.iter().copied().map(counted).collect();
    (!told.is_empty()).then(|| Finding {
        rule: Rule::R5,
        cpu: None,
        text: format!(
            "no difference from timer {best} is shown: of wake-ups {late} late or more there are {}, \
             and {}",
            counted((best, good)),
            told.join(", ")
        ),
        confidence: Confidence::Possible,
    })
}

/// As the kernel says of itself. One whose preemption is chosen at boot may have been given either.
fn preemption() -> Preemption {
    let version = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let word = version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    match word {
        Some("PREEMPT" | "PREEMPT_RT") => Preemption::Full,
        _ => Preemption::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, always_runs: bool, term: (u64, u64)) -> About {
        let term = (Ticks(term.0), Ticks(term.1));
        About { name: name.to_owned(), always_runs, fifo: None, timer: "HR", term }
    }

    fn block(thread: u16, start: u64, end: u64) -> Block {
        Block { thread, cpu: CpuId(1), start: Ticks(start), end: Ticks(end) }
    }

    const HZ: Hertz = Hertz(1e9);

    fn whole<'a>(blocks: &'a [Block], latencies: &'a [(u16, Ticks, Nanos)]) -> Traced<'a> {
        Traced { blocks, latencies, full_at: None }
    }

    fn told(findings: &[Finding], rule: Rule) -> Vec<&str> {
        findings.iter().filter(|of| of.rule == rule).map(|of| of.text.as_str()).collect()
    }

    #[test]
    fn switches_between_threads_that_always_run_are_involuntary_and_the_trace_is_asked() {
        let threads = [about("a", true, (0, 1_000)), about("b", true, (0, 1_000))];
        let blocks = [block(0, 0, 100), block(1, 110, 200), block(0, 211, 300)];
        let mut switches = Switches::new();
        switches.traced = true;
        switches.seen.insert((0, Ticks(100)), true);
        let findings = findings(&threads, &whole(&blocks, &[]), &switches, HZ);
        let r1 = told(&findings, Rule::R1);
        assert!(r1[0].contains("2 gaps") && r1[1].contains("10ns"), "{r1:?}");
        assert!(r1.last().unwrap().contains("1 of 2"), "{r1:?}");
        let r2 = told(&findings, Rule::R2);
        assert!(r2[0].starts_with("2 context switches") && r2[1].contains("1 of 2"), "{r2:?}");
    }

    #[test]
    fn what_the_trace_contradicts_is_not_called_certain() {
        let threads = [about("a", true, (0, 1_000)), about("b", true, (0, 1_000))];
        let blocks = [block(0, 0, 100), block(1, 110, 200), block(0, 211, 300)];
        let switches = Switches { traced: true, ..Switches::new() };
        let findings = findings(&threads, &whole(&blocks, &[]), &switches, HZ);
        let r2 = findings.iter().find(|of| of.rule == Rule::R2).unwrap();
        assert_eq!(r2.confidence, Confidence::Possible);
    }

    #[test]
    fn the_end_of_a_thread_is_no_switch() {
        let threads = [about("ends", true, (0, 200)), about("stays", true, (0, 1_000))];
        let blocks = [block(1, 0, 100), block(0, 110, 200), block(1, 211, 300)];
        let findings = findings(&threads, &whole(&blocks, &[]), &Switches::new(), HZ);
        assert!(told(&findings, Rule::R1)[0].contains("1 gaps"), "{findings:?}");
    }

    #[test]
    fn a_thread_that_waits_makes_no_switch_involuntary() {
        let threads = [about("a", true, (0, 1_000)), about("b", false, (0, 1_000))];
        let blocks = [block(0, 0, 100), block(1, 110, 200)];
        let findings = findings(&threads, &whole(&blocks, &[]), &Switches::new(), HZ);
        assert!(told(&findings, Rule::R2).is_empty());
    }

    #[test]
    fn a_load_that_comes_and_goes_is_found_in_the_gaps_of_the_thread_that_stays() {
        let ms = 1_000_000;
        let threads = [about("stays", true, (0, 2_000 * ms)), about("load", true, (0, 1_000 * ms))];
        let often = (0..500).map(|n| block(0, n * 2 * ms, n * 2 * ms + ms));
        let rarely = (0..50).map(|n| block(0, (1_000 + n * 20) * ms, (1_010 + n * 20) * ms));
        let blocks: Vec<Block> = often.chain(rarely).collect();
        let findings = findings(&threads, &whole(&blocks, &[]), &Switches::new(), HZ);
        let r4 = told(&findings, Rule::R4);
        assert_eq!(r4.len(), 1, "{r4:?}");
        assert!(r4[0].contains("the load causes gaps"), "{r4:?}");
    }

    #[test]
    fn a_trace_that_ran_full_is_counted_as_far_as_it_goes() {
        let ms = 1_000_000;
        let threads = [about("stays", true, (0, 2_000 * ms)), about("load", true, (0, 1_000 * ms))];
        // As often in the load as without it, but the trace has room for its first half alone.
        let blocks: Vec<Block> = (0..500).map(|n| block(0, n * 2 * ms, n * 2 * ms + ms)).collect();
        let traced = Traced { full_at: Some(Ticks(1_000 * ms)), ..whole(&blocks, &[]) };
        let findings = findings(&threads, &traced, &Switches::new(), HZ);
        assert!(told(&findings, Rule::R4).is_empty(), "there was no time without the load");
        let traced = Traced { full_at: Some(Ticks(500 * ms)), ..whole(&blocks, &[]) };
        let threads = [about("a", true, (0, 2_000 * ms)), about("b", true, (0, 2_000 * ms))];
        let blocks = [block(0, 0, 100), block(1, 110, 200)];
        let traced = Traced { blocks: &blocks, ..traced };
        let said = super::findings(&threads, &traced, &Switches::new(), HZ);
        assert!(told(&said, Rule::R1)[0].ends_with("the first 500ms, where the trace had room)"));
    }

    #[test]
    fn a_coarse_timer_is_found_at_fault() {
        let mut threads = [about("fine", false, (0, 9)), about("coarse", false, (0, 9))];
        threads[1].timer = "grid";
        let late = |thread, ns| (thread, Ticks(0), Nanos(ns));
        let fine = (0..200).map(|n| late(0, 1_000 + n));
        let coarse = (0..200).map(|n| late(1, 50_000 * n));
        let latencies: Vec<_> = fine.chain(coarse).collect();
        let findings = findings(&threads, &whole(&[], &latencies), &Switches::new(), HZ);
        assert!(told(&findings, Rule::R5)[0].starts_with("timer grid is at fault"));
    }

    #[test]
    fn timers_that_do_not_differ_are_told_and_one_that_does_is_not_among_them() {
        let named = |name: &str, timer| About { timer, ..about(name, false, (0, 1_000_000)) };
        let threads = [named("a", "HR"), named("b", "timerfd"), named("c", "NATIVE")];
        let late = |thread, late: u64| (thread, Ticks(0), Nanos(late));
        // The third is late by ten times as much, one time in five.
        let latencies: Vec<_> = (0..500_u64)
            .flat_map(|n| {
                let slow = if n % 5 == 0 { 50_000 } else { 5_200 };
                [late(0, 5_000 + n), late(1, 5_100 + n), late(2, slow + n)]
            })
            .collect();
        let found = findings(&threads, &whole(&[], &latencies), &Switches::new(), HZ);
        let said = told(&found, Rule::R5);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("NATIVE is at fault: 100 of 500"), "{said:?}");
        let alike = said[1];
        assert!(alike.starts_with("no difference from timer HR is shown"), "{alike}");
        assert!(alike.contains("0 of 500 with timerfd") && !alike.contains("NATIVE"), "{alike}");
        let one = findings(&threads[..1], &whole(&[], &latencies[..1]), &Switches::new(), HZ);
        assert!(told(&one, Rule::R5).is_empty(), "one timer is compared with none");
    }
}
