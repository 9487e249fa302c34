//! From what a set left behind to what is printed.

use std::collections::BTreeMap;

use whylate_clock::HardwareCounter;
use whylate_gap::Totals;
use whylate_gap::plan::Work;
use whylate_gap::workload::LINE;
use whylate_model::series::{Definition, Series};
use whylate_model::threads::{CpuTime, Deadlines, MissCause, SwitchCounts, ThreadSummary};
use whylate_model::wake::{LATER_THAN, LaterThan, WakeSummary};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, TicksDelta};
use whylate_rta::task_set::{ReservationKind, ReservationScheduler};
use whylate_stats::Histogram;
use whylate_threads::ledger::{Account, Binned};

use super::ledgers::{Tally, nanos};
use super::{Evidence, Recording, Source, members, phases, wakes};
use crate::intervals::Interval;
use crate::kernel_trace;
use crate::summary::{self, Description};
use crate::verdict::unique;

/// The vantage point where a job ends.
const DONE: &str = "the job has its execution time";

impl Recording<'_> {
    /// Each thread, in the order of the set.
    pub(super) fn summaries(&self) -> Vec<ThreadSummary> {
        (0..self.request.set.threads.len()).map(|index| self.summary(index)).collect()
    }

    fn summary(&self, index: usize) -> ThreadSummary {
        let rate = self.workbench.rate;
        let (thread, totals) = (&self.request.set.threads[index], self.set.totals(index));
        let (tally, collected) = (self.tallies.thread(index), &self.collector.threads()[index]);
        let ended = self.ended.get(index);
        let elapsed = totals.elapsed();
        let member = self.set.members().nth(index);
        let account = self.account(index);
        let had = TicksDelta(elapsed.0.saturating_sub(totals.gap_ticks.0));
        let received = had.to_nanos(rate);
        let (steps, closed) = phases::steps(thread, account, had, rate);
        let switches = ended.map(|ended| ended.switches).unwrap_or_default();
        let traced = self.evidence_is_complete(tally);
        let told = self.reserved.values().find_map(|held| held.overruns(collected.facts.tid));
        let by_quota =
            thread.reservation.is_some_and(|of| of.scheduler == ReservationScheduler::Quota);
        ThreadSummary {
            name: thread.name.clone(),
            workload: thread.workload.to_string(),
            timer: member.map_or_else(String::new, |member| member.timer.name.to_owned()),
            timer_slack: member.and_then(members::slack_of),
            policy: member.map_or_else(String::new, |member| member.seated.policy.to_string()),
            reservation: thread.reservation.map(|of| {
                let kind = match of.kind {
                    ReservationKind::Hard => "hard",
                    ReservationKind::Soft => "soft",
                };
                match of.scheduler {
                    ReservationScheduler::Deadline => {
                        format!("reserved {kind}, {} in {}", of.amount, of.period)
                    }
                    ReservationScheduler::Quota => format!(
                        "limited by the quota of a control group, which guarantees nothing, to {} \
                         in {}",
                        of.amount, of.period
                    ),
                }
            }),
            cpus: members::allowed(self.request, thread),
            tid: collected.facts.tid,
            start: totals.start,
            end: totals.end,
            threshold: collected.facts.threshold,
            received,
            waited: nanos(totals.wait_ticks.0, rate),
            lost: nanos(totals.gap_ticks.0.saturating_sub(totals.wait_ticks.0), rate),
            blocks: self.execution.count(index),
            gaps: totals.gaps,
            dropped: totals.dropped,
            passes: self.passes(index, &totals),
            closure: closed.unwrap_or_else(|| collected.check.verdict(&totals)),
            switches: SwitchCounts {
                voluntary: switches.voluntary,
                involuntary: switches.involuntary,
                traced: traced.then_some(tally.switched_out),
                inferred: tally.inferred,
            },
            cpu_time: ended
                .filter(|_| !self.only_wakes(index))
                .and_then(|ended| ended.cpu_time)
                .map(|kernel| cpu_time(kernel, received, tally, rate, traced)),
            deadlines: account
                .filter(|_| has_deadlines(account))
                .map(|account| deadlines(account, self.deadline(index), tally)),
            overruns: told.filter(|_| !by_quota),
            held_periods: told.filter(|_| by_quota),
            drift: account.and_then(|account| account.drift),
            skipped_wakeups: account
                .filter(|account| !account.corrected.whole.is_empty())
                .map_or(0, |account| account.skipped),
            phases: phases::of(&self.request.set, index, account, rate),
            steps,
        }
    }

    /// The wake-ups of threads that do nothing else.
    pub(super) fn wakes(&self) -> Vec<WakeSummary> {
        let threads = 0..self.request.set.threads.len();
        threads.filter_map(|index| self.wakes_of(index)).collect()
    }

    fn only_wakes(&self, index: usize) -> bool {
        let books = self.books.as_ref();
        books.is_some_and(|books| books.ledger(index).period_of_wakes().is_some())
    }

    fn wakes_of(&self, index: usize) -> Option<WakeSummary> {
        let period = self.books.as_ref()?.ledger(index).period_of_wakes()?;
        let account = self.account(index)?;
        let (thread, rate) = (&self.request.set.threads[index], self.workbench.rate);
        let member = self.set.members().nth(index);
        let skips = !account.corrected.whole.is_empty();
        let of = &self.tallies.thread(index).wakes;
        let traced = self.evidence_is_complete(self.tallies.thread(index));
        let host = self.workbench.virtualised();
        let counted = of.by_host().into_iter().zip(of.perhaps_by_host());
        let later = LATER_THAN.iter().zip(counted).map(|(than, (by_host, perhaps))| {
            let raw = wakes::above(&account.lateness.whole, *than);
            LaterThan {
                than: *than,
                raw,
                corrected: skips.then(|| wakes::above(&account.corrected.whole, *than)),
                without_host: traced.then(|| raw.saturating_sub(by_host)),
                perhaps_host: traced.then_some(if host { perhaps } else { 0 }),
            }
        });
        Some(WakeSummary {
            thread: thread.name.clone(),
            timer: member.map_or_else(String::new, |member| member.timer.name.to_owned()),
            cpus: members::allowed(self.request, thread),
            period,
            woken: account.lateness.whole.len(),
            skipped: skips.then_some(account.skipped),
            later: later.collect(),
            split: of.split(rate),
            causes: of.causes(rate),
            late_ns: wakes::late_ns(&account.lateness.whole),
            latest: of.latest(rate),
        })
    }

    fn account(&self, index: usize) -> Option<&Account> {
        self.books.as_ref().and_then(|books| books.ledger(index).account())
    }

    /// How long a job of a thread may take.
    fn deadline(&self, index: usize) -> Option<Nanos> {
        self.books.as_ref().and_then(|books| books.ledger(index).deadline())
    }

    fn evidence_is_complete(&self, tally: &Tally) -> bool {
        tally.traced && self.collector.attributor().event_counts().values().next().is_some()
    }

    /// Passes over the array of a scanning thread.
    fn passes(&self, index: usize, totals: &Totals) -> Option<f64> {
        match self.natures[index].work {
            Work::Scan { bytes } => Some(totals.iterations as f64 * LINE as f64 / bytes as f64),
            _ => None,
        }
    }

    /// The series of all threads, each with its intervals of time in the log.
    pub(super) fn series(&mut self, resolution_ns: f64) -> Vec<Series> {
        let Some(books) = self.books.take() else { return Vec::new() };
        let bound = books.relation().bound_ns();
        let mut series = Vec::new();
        for (index, thread) in self.request.set.threads.iter().enumerate() {
            let Some(account) = books.ledger(index).account() else { continue };
            let late = Definition::DispatchLatency;
            let response = Definition::ResponseTime;
            let (release, running) = ("intended instant", "first reading of the running thread");
            let name = &thread.name;
            for (values, prefix, label, definition, from, to) in [
                (&account.lateness, "wake", "wake-up", late, release, running),
                (&account.corrected, "wake-corrected", "  and skipped", late, release, running),
                (
                    &account.response,
                    "response",
                    "response",
                    response,
                    "nominal release of the job",
                    DONE,
                ),
                (&account.slack, "slack", "slack", Definition::Slack, DONE, "its deadline"),
                (
                    &account.tardiness,
                    "tardiness",
                    "tardiness",
                    Definition::Tardiness,
                    "deadline of the job",
                    DONE,
                ),
            ] {
                if values.whole.is_empty() {
                    continue;
                }
                let description = Description {
                    name: format!("{prefix}-{name}"),
                    label: format!("{label}, {name}"),
                    paper_row: None,
                    from,
                    to,
                    clock: format!(
                        "{}, tied to CLOCK_MONOTONIC",
                        <HardwareCounter as whylate_clock::Counter>::KIND
                    ),
                    definition,
                    resolution_ns: resolution_ns + bound,
                    lost: self.ended.get(index).map_or(0, |ended| ended.marks_dropped),
                };
                series.push(self.storage_series(values, &description));
            }
        }
        self.books = Some(books);
        series
    }

    fn storage_series(&mut self, values: &Binned, description: &Description) -> Series {
        let width = crate::intervals::Intervals::width_for(self.request.duration);
        let mut intervals = Vec::new();
        for (number, histogram) in &values.intervals {
            let start = Nanos(number * width.0);
            let logged = self.logged.entry((description.name.clone(), *number)).or_default();
            if let Some(more) = not_in(histogram, logged) {
                self.storage.interval(&description.name, &more, start, width);
                *logged = histogram.bins().collect();
            }
            intervals.push(Interval::of(histogram));
        }
        summary::of_histogram(&values.whole, &intervals, description)
    }

    /// Time of all threads of each CPU: what they wanted at once, they lost at once.
    pub(super) fn elapsed_by_cpu(&self) -> Vec<(CpuId, Nanos)> {
        let rate = self.workbench.rate;
        let mut elapsed = std::collections::BTreeMap::new();
        for (index, thread) in self.collector.threads().iter().enumerate() {
            let own = self.set.totals(index).elapsed().to_nanos(rate);
            let known: &mut Nanos = elapsed.entry(thread.facts.cpu).or_default();
            *known = Nanos(known.0 + own.0);
        }
        elapsed.into_iter().collect()
    }

    /// What the reader must know.
    pub(super) fn all_warnings(&self, evidence: &Evidence) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        warnings.extend(self.workbench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        for (index, thread) in self.collector.threads().iter().enumerate() {
            let dropped = self.set.totals(index).dropped;
            if dropped > 0 {
                warnings.push(Warning::RecordsDropped { cpu: thread.facts.cpu, dropped });
            }
            let records = self.ended.get(index).map_or(0, |ended| ended.marks_dropped);
            if records > 0 {
                let thread = self.request.set.threads[index].name.clone();
                warnings.push(Warning::JobsUnrecorded { thread, records });
            }
        }
        warnings.extend(evidence.trace.iter().flat_map(kernel_trace::warnings));
        if self.execution.overflow() > 0 {
            let (kept, lost) = (self.request.records, self.execution.overflow());
            warnings.push(Warning::ExecutionCut { kept, lost });
        }
        if self.stopped {
            warnings.push(Warning::Interrupted);
        }
        unique(warnings)
    }
}

/// What an interval holds beyond these bins, which are in the log already; none where there is
/// nothing more.
fn not_in(interval: &Histogram, logged: &[(u64, u64)]) -> Option<Histogram> {
    if logged.is_empty() {
        return (!interval.is_empty()).then(|| interval.clone());
    }
    // The highest value of the last bin is the largest value there was.
    let known = logged.iter().map(|(value, count)| (interval.bin_of(*value), *count));
    let known: BTreeMap<u64, u64> = known.collect();
    let mut more = Histogram::new();
    for (value, count) in interval.bins() {
        more.record_n(
            value,
            count.saturating_sub(known.get(&interval.bin_of(value)).copied().unwrap_or(0)),
        );
    }
    (!more.is_empty()).then_some(more)
}

fn has_deadlines(account: Option<&Account>) -> bool {
    account.is_some_and(|account| {
        account.hits + account.misses > 0 || !account.response.whole.is_empty()
    })
}

fn deadlines(account: &Account, deadline: Option<Nanos>, tally: &Tally) -> Deadlines {
    let (hits, misses) = (account.hits, account.misses);
    let judged = hits + misses;
    let mut causes: Vec<MissCause> = tally
        .causes
        .iter()
        .map(|(cause, misses)| MissCause { cause: cause.clone(), misses: *misses })
        .collect();
    causes.sort_by(|a, b| b.misses.cmp(&a.misses).then_with(|| a.cause.cmp(&b.cause)));
    Deadlines {
        hits,
        misses,
        skipped: account.skipped,
        unfinished: account.unfinished,
        unrecorded: account.unrecorded,
        deadline,
        miss_share_interval: (judged > 0).then(|| tally.outcomes.interval()),
        causes,
        unexplained: Some(tally.unexplained),
        first: tally.first.clone(),
        ordinary: tally.ordinary(),
    }
}

fn cpu_time(
    kernel: Nanos,
    received: Nanos,
    tally: &Tally,
    rate: whylate_model::Hertz,
    traced: bool,
) -> CpuTime {
    let (unswitched, around) = (nanos(tally.unswitched, rate), nanos(tally.around, rate));
    let (around_switches, host) = (traced.then_some(around), nanos(tally.host, rate));
    let explained = received.0 + unswitched.0 + around_switches.map_or(0, |around| around.0);
    let residual = (kernel.0 as f64 - explained as f64) / (kernel.0 as f64).max(1.0);
    CpuTime { kernel, unswitched, host, around_switches, residual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interval_holds_beyond_the_log_adds_up_to_it() {
        let mut interval = Histogram::new();
        let mut log = Histogram::new();
        let mut logged = Vec::new();
        // Values that share a bin, and a largest one that is exceeded within its bin.
        for values in [&[5, 1_000_001][..], &[1_000_100, 5], &[], &[7]] {
            for value in values {
                interval.record(*value);
            }
            if let Some(more) = not_in(&interval, &logged) {
                log.add(&more);
                logged = interval.bins().collect();
            }
            assert_eq!(log.len(), interval.len());
            let bins = |of: &Histogram| -> Vec<u64> { of.bins().map(|(_, count)| count).collect() };
            assert_eq!(bins(&log), bins(&interval));
        }
    }
}
