//! Wake-ups of several recordings, added up thread by thread.
//!
//! Counts and times add. The latest wake-ups stay with their recordings: their ticks are of one clock
//! each, and a sum has none.

use whylate_model::wake::{LaterThan, WakeCause, WakePart, WakeSummary};

/// Adds the wake-ups of a recording to those of the ones before. Threads are the same where name,
/// timer and period are.
pub(super) fn add(all: &mut Vec<WakeSummary>, wakes: &[WakeSummary]) {
    for of in wakes {
        let same = |known: &&mut WakeSummary| {
            known.thread == of.thread && known.timer == of.timer && known.period == of.period
        };
        match all.iter_mut().find(same) {
            Some(known) => add_one(known, of),
            None => all.push(WakeSummary { latest: Vec::new(), ..of.clone() }),
        }
    }
    all.sort_by(|a, b| (&a.thread, &a.timer, a.period).cmp(&(&b.thread, &b.timer, b.period)));
}

fn add_one(known: &mut WakeSummary, of: &WakeSummary) {
    known.woken += of.woken;
    known.skipped = both(known.skipped, of.skipped);
    known.late_ns += of.late_ns;
    for cpu in &of.cpus {
        if !known.cpus.contains(cpu) {
            known.cpus.push(*cpu);
        }
    }
    known.cpus.sort_unstable();
    for later in &of.later {
        match known.later.iter_mut().find(|known| known.than == later.than) {
            Some(LaterThan { raw, corrected, without_host, perhaps_host, .. }) => {
                *raw += later.raw;
                *corrected = both(*corrected, later.corrected);
                *without_host = both(*without_host, later.without_host);
                *perhaps_host = both(*perhaps_host, later.perhaps_host);
            }
            None => known.later.push(*later),
        }
    }
    for part in &of.split {
        match known.split.iter_mut().find(|known| known.stage == part.stage) {
            Some(WakePart { total_ns, wakes, most, .. }) => {
                *total_ns += part.total_ns;
                *wakes += part.wakes;
                *most = (*most).max(part.most);
            }
            None => known.split.push(*part),
        }
    }
    known.split.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    for cause in &of.causes {
        match known.causes.iter_mut().find(|known| known.cause == cause.cause) {
            Some(WakeCause { wakes, late_ns, latest, later, .. }) => {
                *wakes += cause.wakes;
                *late_ns += cause.late_ns;
                *latest = (*latest).max(cause.latest);
                // Counted in both, or not known of the sum.
                later.truncate(cause.later.len());
                later.iter_mut().zip(&cause.later).for_each(|(sum, more)| *sum += more);
            }
            None => known.causes.push(cause.clone()),
        }
    }
    known.causes.sort_by(|a, b| b.wakes.cmp(&a.wakes).then_with(|| a.cause.cmp(&b.cause)));
}

/// The sum where both are known: a schedule that starts anew with each wake-up skips nothing, and
/// has nothing to correct.
fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.zip(b).map(|(a, b)| a + b)
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::Cause;
    use whylate_model::wake::{LateWake, WakeStage};
    use whylate_model::{CpuId, Nanos, Ticks};

    use super::*;

    fn summary(thread: &str, cpu: u32, woken: u64, late: u64) -> WakeSummary {
        WakeSummary {
            thread: thread.to_owned(),
            timer: "clock_nanosleep absolute".to_owned(),
            cpus: vec![CpuId(cpu)],
            period: Nanos(1_000_000),
            woken,
            skipped: Some(10),
            later: vec![LaterThan {
                than: Nanos(1_000_000),
                raw: late,
                corrected: Some(2 * late),
                without_host: Some(1),
                perhaps_host: Some(4),
            }],
            split: vec![WakePart {
                stage: WakeStage::Host,
                total_ns: 1e6,
                wakes: late,
                most: Nanos(late),
            }],
            causes: vec![WakeCause {
                cause: Cause::Host,
                wakes: late,
                late_ns: 1e6,
                latest: Nanos(1_000 * late),
                later: vec![late, 0, 0, 0],
            }],
            late_ns: 2e6,
            latest: Vec::new(),
        }
    }

    #[test]
    fn wake_ups_of_one_thread_add_up_and_those_of_two_stay_apart() {
        let mut all = Vec::new();
        add(&mut all, &[summary("HR", 1, 990, 3)]);
        add(&mut all, &[summary("HR", 2, 1_990, 5), summary("RTC", 1, 7, 1)]);
        assert_eq!(all.len(), 2);
        let sum = &all[0];
        assert_eq!((sum.woken, sum.skipped), (2_980, Some(20)));
        assert_eq!((sum.later[0].raw, sum.later[0].corrected), (8, Some(16)));
        assert_eq!(sum.later[0].perhaps_host, Some(8));
        assert_eq!(
            (sum.later[0].without_host, &sum.causes[0].later[..]),
            (Some(2), &[8, 0, 0, 0][..])
        );
        assert_eq!(sum.cpus, [CpuId(1), CpuId(2)]);
        assert_eq!((sum.split[0].wakes, sum.split[0].most), (8, Nanos(5)));
        assert_eq!((sum.causes[0].wakes, sum.causes[0].latest), (8, Nanos(5_000)));
        assert!((sum.late_ns - 4e6).abs() < 1e-9);
        assert_eq!(all[1].woken, 7);
    }

    #[test]
    fn where_one_schedule_skips_nothing_the_sum_does_not_know_what_was_skipped() {
        let mut all = vec![summary("LAT", 1, 10, 1)];
        let again = WakeSummary { skipped: None, ..summary("LAT", 1, 10, 1) };
        add(&mut all, &[again]);
        assert_eq!((all[0].woken, all[0].skipped), (20, None));
    }

    #[test]
    fn threads_of_another_timer_or_period_stay_apart_and_stand_in_order() {
        let one = summary("HR", 1, 10, 1);
        let timer = WakeSummary { timer: "timerfd".to_owned(), ..one.clone() };
        let period = WakeSummary { period: Nanos(500_000), ..one.clone() };
        let latest =
            LateWake { intended: Ticks(1), late: Nanos(9), cause: Cause::Host, parts: Vec::new() };
        let named = WakeSummary { latest: vec![latest], ..summary("A", 1, 10, 1) };
        let mut all = Vec::new();
        add(&mut all, &[timer.clone(), one.clone(), period.clone(), named.clone()]);
        let without_latest = WakeSummary { latest: Vec::new(), ..named };
        assert_eq!(all, [without_latest, period, one, timer]);
    }

    #[test]
    fn what_only_one_recording_has_stays_as_it_is_and_rows_stand_in_their_order() {
        let part = |stage, total_ns| WakePart { stage, total_ns, wakes: 2, most: Nanos(7) };
        let cause = |cause, wakes, latest| WakeCause {
            cause,
            wakes,
            late_ns: 3e6,
            latest: Nanos(latest),
            later: vec![1, 1, 0, 0],
        };
        let one = WakeSummary {
            cpus: vec![CpuId(3), CpuId(1)],
            split: vec![part(WakeStage::Host, 5e6), part(WakeStage::Kernel, 1e6)],
            causes: vec![cause(Cause::Host, 5, 90), cause(Cause::TimerLate, 2, 10)],
            ..summary("HR", 1, 10, 1)
        };
        let longer = LaterThan { than: Nanos(5_000_000), raw: 9, ..one.later[0] };
        let counted_nowhere = WakeCause { later: Vec::new(), ..cause(Cause::Host, 1, 20) };
        let other = WakeSummary {
            cpus: vec![CpuId(2), CpuId(1)],
            later: vec![LaterThan { corrected: None, ..one.later[0] }, longer],
            split: vec![part(WakeStage::Kernel, 7e6), part(WakeStage::IdleExit, 2e6)],
            causes: vec![
                counted_nowhere,
                cause(Cause::IdleExit, 6, 30),
                cause(Cause::TimerLate, 4, 40),
            ],
            ..summary("HR", 1, 20, 2)
        };
        let mut all = Vec::new();
        add(&mut all, std::slice::from_ref(&one));
        add(&mut all, &[other]);
        let [sum] = &all[..] else { panic!("{all:?}") };
        assert_eq!(sum.cpus, [CpuId(1), CpuId(2), CpuId(3)]);
        let twice = LaterThan {
            raw: 2,
            corrected: None,
            without_host: Some(2),
            perhaps_host: Some(8),
            ..one.later[0]
        };
        assert_eq!(sum.later, [twice, longer]);
        let kernel = WakePart { wakes: 4, ..part(WakeStage::Kernel, 8e6) };
        assert_eq!(sum.split, [kernel, part(WakeStage::Host, 5e6), part(WakeStage::IdleExit, 2e6)]);
        let sums = |of: &WakeCause, wakes, late_ns, latest, later: &[u64]| WakeCause {
            wakes,
            late_ns,
            latest: Nanos(latest),
            later: later.to_vec(),
            ..of.clone()
        };
        // Of as many wake-ups each, causes stand in the order that they have.
        let mut expected = [
            sums(&cause(Cause::Host, 0, 0), 6, 6e6, 90, &[]),
            cause(Cause::IdleExit, 6, 30),
            sums(&cause(Cause::TimerLate, 0, 0), 6, 6e6, 40, &[2, 2, 0, 0]),
        ];
        expected.sort_by(|a, b| a.cause.cmp(&b.cause));
        assert_eq!(sum.causes, expected);
    }
}
