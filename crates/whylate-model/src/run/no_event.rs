//! A run as reports show it: time without a kernel event is the hypervisor's where the steal time that was
//! counted bears that out, the firmware's where the interrupts that it took do, and nobody's else; threads of
//! other processes go with those; and what is stored in words that reports do not use is told in those that
//! they do.

use std::collections::BTreeMap;

use crate::cause::{Cause, CauseTotal, LOCAL_TIMER, Rule, STORED_NO_EVENT};
use crate::prediction::{MachineCause, MeasuredTask, OverCause, Prediction, WorstJobGap};
use crate::run::Run;
use crate::threads::{Deadlines, ThreadSummary};
use crate::units::CpuId;
use crate::wake::WakeSummary;

/// Steal time bears a loss out when it makes up at least this part of it. (It is counted in whole clock
/// ticks, and what a hypervisor takes in shorter pieces it need not count.)
pub const BORNE_OUT: f64 = 0.5;

impl Run {
    /// What no kernel event accounts for, under the name that this run bears out on each of its CPUs.
    #[must_use]
    pub fn no_event(&self) -> Cause {
        Names::of(self).whole
    }

    /// The same on one CPU.
    #[must_use]
    pub fn no_event_on(&self, cpu: CpuId) -> Cause {
        Names::of(self).on(Some(cpu)).clone()
    }

    /// What is stored as the firmware's, under the name that this run bears out: the firmware's only where it took at
    /// least half as many interrupts as there are such pieces. None where there is no such piece.
    fn firmware(&self) -> Option<Cause> {
        let of = |whole: bool| {
            let all = self.causes.iter().filter(move |total| total.cpu.is_none() == whole);
            all.filter(|total| total.cause == Cause::Firmware).map(|total| total.parts)
        };
        // Each is there once for all CPUs, as a rule, and once for its own.
        let pieces = of(true).next().or_else(|| of(false).reduce(u64::saturating_add))?;
        let enough = |taken: u64| taken as f64 >= BORNE_OUT * pieces as f64;
        let is_borne_out = pieces > 0 && self.evidence.smi_count.is_some_and(enough);
        Some(if is_borne_out { Cause::Firmware } else { Cause::Host })
    }

    /// Of what no kernel event accounts for, the share that no steal time bears out as the hypervisor's, and no
    /// interrupt as the firmware's.
    #[must_use]
    pub fn no_event_share(&self) -> f64 {
        if self.firmware() == Some(Cause::Firmware) {
            return 0.0;
        }
        let names = Names::of(self);
        if names.by_cpu.is_empty() {
            return if names.whole == Cause::Hypervisor { 0.0 } else { 1.0 };
        }
        let lost = |named: Option<&Cause>| -> f64 {
            let of_name =
                names.by_cpu.iter().filter(|(_, name)| named.is_none_or(|of| of == *name));
            of_name.map(|(cpu, _)| lost_without_event(self, Some(*cpu))).sum()
        };
        lost(Some(&Cause::Host)) / lost(None)
    }

    /// Do the timer interrupts of this run come at multiples of the kernel's tick?
    #[must_use]
    pub fn ticks(&self) -> bool {
        let tick = |text: &str| text.ends_with(": the kernel's tick");
        self.findings.iter().any(|finding| finding.rule == Rule::R9 && tick(&finding.text))
    }

    /// The run as reports show it: what no kernel event accounts for has the name that is borne out, CPU by
    /// CPU where the steal time of each is known. A total over CPUs of which only some bear it out is told
    /// in two rows. A foreign thread goes with the name of its process, the timer's interrupt is the tick where
    /// it is one, and labels of series are as [`Run::label_of`] says.
    #[must_use]
    pub fn as_shown(&self) -> Self {
        let names = Names::of(self);
        let mut run = self.clone();
        let mut causes: Vec<(Option<CpuId>, &mut Cause)> = Vec::new();
        causes.extend(run.causes.iter_mut().map(|total| (total.cpu, &mut total.cause)));
        for gap in &mut run.worst {
            let cpu = Some(gap.cpu_before);
            causes.push((cpu, &mut gap.cause));
            causes.extend(gap.parts.iter_mut().map(|part| (cpu, &mut part.cause)));
        }
        let (wakes, threads) = (&mut run.wakes, &mut run.threads);
        for (wake, thread) in wakes.iter_mut().zip(threads.iter().map(only_cpu)) {
            causes.extend(of_wakes(wake).into_iter().map(|cause| (thread, cause)));
        }
        let cpus: Vec<Option<CpuId>> = threads.iter().map(only_cpu).collect();
        for (thread, cpu) in threads.iter_mut().zip(&cpus) {
            let deadlines = thread.deadlines.as_mut().into_iter().flat_map(of_deadlines);
            causes.extend(deadlines.map(|cause| (*cpu, cause)));
        }
        let tails = run.flows.iter_mut().filter_map(|flow| flow.tail.as_mut());
        causes.extend(tails.flat_map(|tail| &mut tail.causes).map(|of| (None, &mut of.cause)));
        let (threads, ticks, firmware) = (self.foreign_names(), self.ticks(), self.firmware());
        for (cpu, cause) in causes {
            match cause {
                Cause::Host => cause.clone_from(names.on(cpu)),
                Cause::Firmware => *cause = firmware.clone().unwrap_or(Cause::Host),
                Cause::Interrupt { name } if ticks && name == LOCAL_TIMER => *cause = Cause::Tick,
                Cause::Thread { comm, .. } => {
                    if let Some(shown) = threads.get(comm) {
                        comm.clone_from(shown);
                    }
                }
                _ => {}
            }
        }
        if let Some(prediction) = &mut run.prediction {
            let on = |thread| names.on(cpus.get(thread as usize).copied().flatten()).clone();
            predicted(prediction, &on, &|stored| self.shown_cause(stored));
        }
        for finding in &mut run.findings {
            // Threads of a set also wait and hand the CPU on, which is a gap and no stall.
            let any_gap = matches!(finding.rule, Rule::R1 | Rule::R2 | Rule::R6 | Rule::R7);
            let stalls = self.threads.is_empty() || !any_gap;
            finding.text = shown_finding(&finding.text, stalls);
        }
        for (series, stored) in run.series.iter_mut().zip(&self.series) {
            series.label = self.label_of(stored);
        }
        Names::split_total(&mut run.causes);
        run.settle_residences();
        run
    }
}

/// What was inferred, in the words of reports, of gaps that are all stalls or not.
fn shown_finding(stored: &str, stalls: bool) -> String {
    const ACCOUNTS: &str = " that no kernel event accounts for";
    let taken = stored.strip_prefix("the host took ").and_then(|rest| rest.split_once(ACCOUNTS));
    let text = match taken {
        Some((gaps, rest)) => format!("no kernel event accounts for {gaps}{rest}"),
        None => stored.to_owned(),
    };
    if stalls { text.replace(" gaps", " stalls") } else { text }
}

/// What time without a kernel event is called on each CPU.
struct Names {
    /// On CPUs that are not told apart, and of all together: the hypervisor only where it is on each.
    whole: Cause,
    /// On each CPU that lost some; empty where the steal time of each is not known.
    by_cpu: BTreeMap<CpuId, Cause>,
}

impl Names {
    fn of(run: &Run) -> Self {
        let name = |steal: Option<f64>, lost: f64| match steal {
            Some(steal) if lost > 0.0 && steal >= BORNE_OUT * lost => Cause::Hypervisor,
            _ => Cause::Host,
        };
        let steal_by_cpu = &run.evidence.steal_by_cpu;
        let steal = |cpu| steal_by_cpu.iter().find(|of| of.cpu == cpu).map(|of| of.steal_ns);
        let mut by_cpu = BTreeMap::new();
        if !steal_by_cpu.is_empty() {
            for cpu in run.causes.iter().filter_map(|total| total.cpu) {
                let lost = lost_without_event(run, Some(cpu));
                if lost > 0.0 {
                    by_cpu.insert(cpu, name(steal(cpu), lost));
                }
            }
        }
        if by_cpu.is_empty() {
            // Each is there once for all CPUs, as a rule, and once for its own.
            let whole = run.causes.iter().any(|total| total.cpu.is_none());
            let counted = run.causes.iter().filter(|total| total.cpu.is_none() == whole);
            let whole = name(run.evidence.steal_ns, without_event(counted));
            return Self { whole, by_cpu };
        }
        let everywhere = by_cpu.values().all(|name| *name == Cause::Hypervisor);
        let whole = if everywhere { Cause::Hypervisor } else { Cause::Host };
        Self { whole, by_cpu }
    }

    fn on(&self, cpu: Option<CpuId>) -> &Cause {
        cpu.and_then(|cpu| self.by_cpu.get(&cpu)).unwrap_or(&self.whole)
    }

    /// Takes the hypervisor's part out of a total over CPUs of which only some bear it out.
    fn split_total(causes: &mut Vec<CauseTotal>) {
        let parts: Vec<&CauseTotal> = causes
            .iter()
            .filter(|total| total.cpu.is_some() && total.cause == Cause::Hypervisor)
            .collect();
        let whole = |name: Cause| {
            let is_it = |total: &CauseTotal| total.cpu.is_none() && total.cause == name;
            causes.iter().position(is_it)
        };
        let told = parts.is_empty() || whole(Cause::Hypervisor).is_some();
        let Some(at) = whole(Cause::Host).filter(|_| !told) else { return };
        let total = &causes[at];
        let lost_ns = parts.iter().map(|part| part.lost_ns).sum::<f64>().min(total.lost_ns);
        let share = if total.lost_ns > 0.0 { lost_ns / total.lost_ns } else { 0.0 };
        let sum = |of: fn(&CauseTotal) -> u64| {
            parts.iter().map(|part| of(part)).fold(0, u64::saturating_add)
        };
        let taken = CauseTotal {
            cause: Cause::Hypervisor,
            cpu: None,
            gaps: sum(|part| part.gaps).min(total.gaps),
            parts: sum(|part| part.parts).min(total.parts),
            lost_ns,
            share_of_lost: total.share_of_lost * share,
            share_of_elapsed: total.share_of_elapsed * share,
            longest: parts.iter().map(|part| part.longest).max().unwrap_or_default(),
        };
        let others = |part: &&CauseTotal| part.cpu.is_some() && part.cause == Cause::Host;
        let longest = causes.iter().filter(others).map(|part| part.longest).max();
        let rest = &mut causes[at];
        rest.gaps -= taken.gaps;
        rest.parts -= taken.parts;
        rest.lost_ns -= taken.lost_ns;
        rest.share_of_lost -= taken.share_of_lost;
        rest.share_of_elapsed -= taken.share_of_elapsed;
        rest.longest = longest.unwrap_or(rest.longest);
        causes.insert(at, taken);
    }
}

/// What no kernel event accounts for on one CPU, or of the totals.
fn lost_without_event(run: &Run, cpu: Option<CpuId>) -> f64 {
    without_event(run.causes.iter().filter(|total| total.cpu == cpu))
}

fn without_event<'a>(of: impl Iterator<Item = &'a CauseTotal>) -> f64 {
    of.filter(|total| is_no_event(&total.cause)).map(|total| total.lost_ns).sum()
}

/// The CPU of a thread that may use one only.
fn only_cpu(of: &ThreadSummary) -> Option<CpuId> {
    if let [cpu] = of.cpus.as_slice() { Some(*cpu) } else { None }
}

fn is_no_event(cause: &Cause) -> bool {
    matches!(cause, Cause::Host | Cause::Hypervisor)
}

fn of_wakes(of: &mut WakeSummary) -> Vec<&mut Cause> {
    let latest = of.latest.iter_mut().flat_map(|wake| {
        let parts = wake.parts.iter_mut().map(|part| &mut part.cause);
        std::iter::once(&mut wake.cause).chain(parts)
    });
    of.causes.iter_mut().map(|of| &mut of.cause).chain(latest).collect()
}

fn of_deadlines(of: &mut Deadlines) -> Vec<&mut Cause> {
    let first = of.first.iter_mut().flat_map(|miss| {
        let gap = miss.gap.as_mut().map(|gap| &mut gap.cause);
        miss.cause.as_mut().into_iter().chain(gap)
    });
    of.causes.iter_mut().map(|of| &mut of.cause).chain(first).collect()
}

/// The names that a prediction holds as they are stored, of the threads of its tasks.
fn predicted(of: &mut Prediction, name: &dyn Fn(u32) -> Cause, shown: &dyn Fn(&str) -> String) {
    for task in &mut of.tasks {
        let name = name(task.thread);
        if name == Cause::Hypervisor {
            let causes = task.machine_causes().filter(|cause| **cause == MachineCause::NoEvent);
            causes.for_each(|cause| *cause = MachineCause::Hypervisor);
        }
        let text = name.to_string();
        let names = task.measured.as_mut().into_iter().flat_map(measured_names);
        for cause in names {
            if cause == STORED_NO_EVENT {
                text.clone_into(cause);
            } else {
                *cause = shown(cause);
            }
        }
    }
    if let Some(again) = &mut of.with_measured_jitter {
        predicted(again, name, shown);
    }
}

fn measured_names(of: &mut MeasuredTask) -> Vec<&mut String> {
    let MeasuredTask { worst, over_by, over_first, .. } = of;
    let by = over_by.iter_mut().filter_map(|of| match &mut of.cause {
        OverCause::Named { cause } => Some(cause),
        _ => None,
    });
    let worst = worst.iter_mut().filter_map(|of| of.gap.as_mut());
    let gaps = worst.chain(over_first.iter_mut().filter_map(|of| of.gap.as_mut()));
    by.chain(gaps.filter_map(|WorstJobGap { cause, .. }| cause.as_mut())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunDir;
    use crate::run::CpuSteal;
    use crate::units::{Nanos, Pid};

    fn kept() -> Run {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/rta");
        RunDir::open(path).unwrap().read_run().unwrap()
    }

    fn lost(run: &Run) -> f64 {
        let whole = run.causes.iter().filter(|total| total.cpu.is_none());
        whole.filter(|total| total.cause == Cause::Host).map(|total| total.lost_ns).sum()
    }

    #[test]
    fn time_without_an_event_is_the_hypervisors_only_where_steal_makes_up_half_of_it() {
        let mut run = kept();
        let lost = lost(&run);
        assert!(lost > 0.0);
        for (steal, name) in [
            (None, "no kernel event"),
            (Some(0.0), "no kernel event"),
            (Some(0.42 * lost), "no kernel event"),
            (Some(0.5 * lost), "hypervisor"),
        ] {
            run.evidence.steal_ns = steal;
            assert_eq!(run.no_event().to_string(), name, "{steal:?}");
            let shown = run.as_shown();
            assert_eq!(shown.no_event(), run.no_event(), "shown twice");
            assert!(shown.causes.iter().any(|total| total.cause.to_string() == name));
            let text = format!("{:?}", shown.prediction);
            assert!(!text.contains("\"host\"") && text.contains(name), "{text}");
        }
    }

    /// A run that lost so many ms without an event on each of two CPUs.
    fn two_cpus(taken_ms: [f64; 2], steal_ms: &[(u32, f64)]) -> Run {
        let mut run = kept();
        run.causes.retain(|total| total.cpu.is_none());
        let at = run.causes.iter().position(|total| total.cause == Cause::Host).unwrap();
        let mut total = run.causes.remove(at);
        run.causes.truncate(1);
        for (cpu, lost) in taken_ms.into_iter().enumerate() {
            let cpu = Some(CpuId(cpu as u32));
            let (gaps, longest) = (10 + lost as u64, Nanos(lost as u64));
            let lost_ns = lost * 1e6;
            run.causes.push(CauseTotal { cpu, gaps, lost_ns, longest, ..total.clone() });
        }
        let own = || run.causes.iter().filter(|total| total.cpu.is_some());
        total.gaps = own().map(|total| total.gaps).sum();
        total.lost_ns = own().map(|total| total.lost_ns).sum();
        (total.share_of_lost, total.longest) =
            (0.8, own().map(|total| total.longest).max().unwrap());
        total.parts *= 2;
        run.causes.insert(0, total);
        run.evidence.steal_ns = Some(steal_ms.iter().map(|(_, steal)| steal * 1e6).sum());
        let of_cpu = |&(cpu, steal)| CpuSteal { cpu: CpuId(cpu), steal_ns: steal * 1e6 };
        run.evidence.steal_by_cpu = steal_ms.iter().map(of_cpu).collect();
        run
    }

    #[test]
    fn steal_bears_out_the_time_of_its_own_cpu_and_a_total_is_what_its_cpus_are() {
        for (steal, names, share) in [
            (&[(0, 30.0), (1, 0.0)][..], ["hypervisor", "no kernel event"], 0.25),
            (&[(0, 0.0), (1, 5.0)], ["no kernel event", "hypervisor"], 0.75),
            (&[(0, 15.0), (1, 5.0)], ["hypervisor", "hypervisor"], 0.0),
            (&[(0, 14.0), (1, 4.0)], ["no kernel event", "no kernel event"], 1.0),
            // What is not known of a CPU bears nothing out.
            (&[(0, 30.0)], ["hypervisor", "no kernel event"], 0.25),
            // Of runs before steal was kept CPU by CPU the sum is all there is.
            (&[], ["no kernel event", "no kernel event"], 1.0),
        ] {
            let run = two_cpus([30.0, 10.0], steal);
            let shown = run.as_shown();
            let without = |cpu| {
                shown
                    .causes
                    .iter()
                    .filter(move |of: &&CauseTotal| of.cpu == cpu && is_no_event(&of.cause))
            };
            for (cpu, name) in [0, 1].into_iter().zip(names) {
                let found: Vec<_> =
                    without(Some(CpuId(cpu))).map(|of| of.cause.to_string()).collect();
                assert_eq!(found, [name], "CPU {cpu}, {steal:?}");
                assert_eq!(run.no_event_on(CpuId(cpu)).to_string(), name, "CPU {cpu}, {steal:?}");
            }
            assert!((run.no_event_share() - share).abs() < 1e-9, "{steal:?}");
            // The rows over all CPUs are the sums of those of each, name by name.
            for cause in [Cause::Host, Cause::Hypervisor] {
                let sum = |of: fn(&CauseTotal) -> f64, whole: bool| -> f64 {
                    let of_name = shown.causes.iter().filter(|total| total.cause == cause);
                    of_name.filter(|total| total.cpu.is_none() == whole).map(of).sum()
                };
                let lost = |whole| sum(|of| of.lost_ns, whole);
                assert!((lost(true) - lost(false)).abs() < 1.0, "{cause} {steal:?}");
                let gaps = |whole| sum(|of| of.gaps as f64, whole);
                assert!((gaps(true) - gaps(false)).abs() < 0.5, "{cause} {steal:?}");
                let longest = |whole| sum(|of| of.longest.0 as f64, whole);
                let mixed = names[0] != names[1];
                assert!(
                    !mixed || (longest(true) - longest(false)).abs() < 0.5,
                    "{cause} {steal:?}"
                );
            }
            let shares: f64 = without(None).map(|of| of.share_of_lost).sum();
            assert!((shares - 0.8).abs() < 1e-9, "{steal:?}");
            assert_eq!(shown.as_shown().causes, shown.causes, "shown twice");
        }
    }

    #[test]
    fn time_without_an_event_is_the_firmwares_only_where_it_took_interrupts_for_half_of_the_pieces()
    {
        let mut run = kept();
        for total in run.causes.iter_mut().filter(|total| total.cause == Cause::Host) {
            (total.cause, total.parts) = (Cause::Firmware, 10);
        }
        for (taken, name, share) in [
            (None, Cause::Host, 1.0),
            (Some(0), Cause::Host, 1.0),
            (Some(4), Cause::Host, 1.0),
            (Some(5), Cause::Firmware, 0.0),
        ] {
            run.evidence.smi_count = taken;
            let shown = run.as_shown();
            let is_one = |of: &&Cause| matches!(of, Cause::Host | Cause::Firmware);
            let mut names: Vec<&Cause> =
                shown.causes.iter().map(|total| &total.cause).filter(is_one).collect();
            names.dedup();
            assert_eq!(names, [&name], "{taken:?}");
            assert!((run.no_event_share() - share).abs() < 1e-9, "{taken:?}");
            assert_eq!(shown.as_shown().causes, shown.causes, "shown twice");
        }
    }

    #[test]
    fn of_a_total_the_hypervisors_part_takes_its_part_of_all_that_is_told_of_it() {
        let mut run = two_cpus([30.0, 10.0], &[(0, 30.0), (1, 0.0)]);
        let rows = run.causes.iter_mut().filter(|total| total.cause == Cause::Host);
        for (total, parts) in rows.zip([100, 60, 40]) {
            (total.parts, total.share_of_elapsed) = (parts, 0.2);
        }
        let shown = run.as_shown();
        let of = |name: Cause| {
            let found =
                shown.causes.iter().find(|of| of.cpu.is_none() && of.cause == name).unwrap();
            (found.parts, found.share_of_lost, found.share_of_elapsed)
        };
        let near = |(parts, lost, elapsed): (u64, f64, f64), expected: (u64, f64, f64)| {
            let close = (lost - expected.1).abs() < 1e-9 && (elapsed - expected.2).abs() < 1e-9;
            assert!(parts == expected.0 && close, "{parts} {lost} {elapsed}");
        };
        near(of(Cause::Hypervisor), (60, 0.6, 0.15));
        near(of(Cause::Host), (40, 0.2, 0.05));
        // No part is above its whole, whatever a file says of both.
        let whole = run.causes.iter_mut().find(|total| total.cpu.is_none()).unwrap();
        whole.parts = 50;
        let shown = run.as_shown();
        let parts = shown.causes.iter().filter(|of| of.cpu.is_none() && is_no_event(&of.cause));
        assert_eq!(parts.map(|of| of.parts).collect::<Vec<_>>(), [50, 0]);
    }

    #[test]
    fn of_a_run_without_totals_over_all_cpus_the_rows_of_each_are_counted() {
        let mut run = two_cpus([30.0, 10.0], &[]);
        run.evidence.steal_ns = Some(25e6);
        assert_eq!(run.no_event(), Cause::Hypervisor, "25 of 40");
        // The same loss stands in a total and in the rows of its CPUs, and counts once.
        let (with, mut without) = (run.clone(), run);
        without.causes.retain(|total| total.cpu.is_some());
        assert_eq!(without.no_event(), Cause::Hypervisor);
        without.evidence.steal_ns = Some(19e6);
        assert_eq!(without.no_event(), Cause::Host, "19 of 40");
        let mut only_total = with;
        only_total.causes.retain(|total| total.cpu.is_none());
        assert_eq!(only_total.no_event(), Cause::Hypervisor);
    }

    #[test]
    fn wake_ups_and_missed_deadlines_have_the_name_of_the_cpu_of_their_thread() {
        use crate::threads::{Deadlines, MissCause};
        use crate::wake::WakeCause;
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/wake");
        let woken = RunDir::open(path).unwrap().read_run().unwrap();
        let mut run = two_cpus([30.0, 10.0], &[(0, 30.0), (1, 0.0)]);
        let deadlines = Deadlines {
            hits: 1,
            misses: 1,
            skipped: 0,
            unfinished: 0,
            unrecorded: 0,
            deadline: None,
            miss_share_interval: None,
            causes: vec![MissCause { cause: Cause::Host, misses: 1 }],
            unexplained: None,
            first: Vec::new(),
            ordinary: None,
        };
        let thread = ThreadSummary { deadlines: Some(deadlines), ..run.threads[0].clone() };
        let wake = WakeSummary {
            causes: vec![WakeCause { cause: Cause::Host, ..woken.wakes[0].causes[0].clone() }],
            latest: Vec::new(),
            ..woken.wakes[0].clone()
        };
        let cpus = [vec![CpuId(0)], vec![CpuId(1)], vec![CpuId(0), CpuId(1)]];
        run.threads = cpus
            .iter()
            .map(|cpus| ThreadSummary { cpus: cpus.clone(), ..thread.clone() })
            .collect();
        run.wakes = vec![wake; 3];
        let shown = run.as_shown();
        // Of several CPUs nobody knows which.
        let expected = [Cause::Hypervisor, Cause::Host, Cause::Host];
        let of_wakes: Vec<Cause> =
            shown.wakes.iter().map(|wake| wake.causes[0].cause.clone()).collect();
        let missed = shown.threads.iter().flat_map(|of| &of.deadlines);
        let of_deadlines: Vec<Cause> = missed.map(|of| of.causes[0].cause.clone()).collect();
        assert_eq!((&of_wakes[..], &of_deadlines[..]), (&expected[..], &expected[..]));
    }

    #[test]
    fn a_foreign_thread_is_shown_with_its_process_wherever_it_is_named() {
        use crate::foreign::{ForeignProcess, ForeignThread};
        let mut run = kept();
        let of = |comm: &str, tid, process: Option<(i32, &str)>| ForeignThread {
            comm: comm.to_owned(),
            tid: Pid(tid),
            process: process
                .map(|(pid, name)| ForeignProcess { pid: Pid(pid), name: name.to_owned() }),
        };
        run.foreign_threads = vec![
            of("hourglass/0", 14_703, Some((14_700, "whylate"))),
            of("opt cwx3qg53sfz", 77, Some((70, "rustc"))),
            of("opt cwx3qg53sfz", 87, Some((80, "clippy-driver"))),
            of("rustc", 71, Some((71, "rustc"))),
            of("gone", 99, None),
            of("sh", 101, Some((100, "make"))),
            of("sh", 103, None),
        ];
        let comm = "sh".to_owned();
        let class = crate::cause::PriorityClass::Ordinary;
        let of_several =
            CauseTotal { cause: Cause::Thread { comm, class }, ..run.causes[0].clone() };
        run.causes.push(of_several);
        let shown = run.as_shown();
        let names: Vec<String> = shown.causes.iter().map(|of| of.cause.to_string()).collect();
        for name in [
            "task hourglass/0 of whylate (real-time)",
            "task opt cwx3qg53sfz of clippy-driver and rustc (normal)",
            "task rustc (normal)",
            // One of them had ended before it was looked at.
            "task sh of make, or of others (normal)",
        ] {
            assert!(names.iter().any(|of| of == name), "{name}: {names:?}");
        }
        assert!(shown.worst.iter().all(|gap| gap.cause.to_string().contains("of whylate")));
        let predicted = format!("{:?}", shown.prediction);
        let (own, bare) = ("hourglass/0 of whylate (real-time)", "hourglass/0 (real-time)");
        assert!(predicted.contains(own) && !predicted.contains(bare), "{predicted}");
        assert_eq!(shown.as_shown().causes, shown.causes, "shown twice");
        assert_eq!(kept().as_shown().foreign_threads, [], "a run without it is read");
    }

    #[test]
    fn what_is_stored_in_words_that_reports_do_not_use_is_shown_in_those_that_they_do() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/gaps");
        let mut run = RunDir::open(path).unwrap().read_run().unwrap();
        let shown = run.as_shown();
        let timer = |run: &Run| run.causes.iter().any(|of| of.cause == Cause::Tick);
        assert!(
            !timer(&run) && timer(&shown),
            "its timer interrupts come at multiples of the tick"
        );
        assert_eq!(shown.series[0].label, "stalls, CPU 1");
        let texts: Vec<&str> = shown.findings.iter().map(|of| of.text.as_str()).collect();
        let accounts = "no kernel event accounts for 2087 stalls, 9.00ms in all: no steal time was \
                        counted";
        assert!(texts.contains(&accounts), "{texts:?}");
        assert!(
            !texts.iter().any(|text| text.contains("gap") || text.contains("host")),
            "{texts:?}"
        );
        assert_eq!(shown.as_shown(), shown, "shown twice");
        run.findings.clear();
        assert!(!timer(&run.as_shown()), "not known to be the tick");
        // What is shown can be shown, and what is stored stays as it was.
        assert_eq!(run.series[0].label, "gaps, CPU 1");
        assert_eq!(shown_finding("in 2 of 9 gaps of it", false), "in 2 of 9 gaps of it");
    }

    #[test]
    fn a_kind_that_was_stored_as_host_is_still_read() {
        let json = serde_json::to_string(&Cause::Host).unwrap();
        assert_eq!(json, r#"{"cause":"host"}"#);
        assert_eq!(serde_json::from_str::<Cause>(&json).unwrap().to_string(), "no kernel event");
        assert_eq!(Cause::Host.stored(), "host");
    }
}
