//! 5.3: how late a timer wakes a real-time thread while files and the network keep the machine busy.
//! Table 1.

use whylate_load::Kind;
use whylate_model::paper::{Here, Scenario};
use whylate_model::wake::{LaterThan, WakeSummary};
use whylate_model::{Nanos, Printable};

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::beside::{Other, counted, sentence};
use crate::host::late_without;
use crate::rows::{Filled, later as late, row};

/// The paper's six minutes; the control, which it has not, is shorter.
const TIMES: Times = Times { usual: 360, quick: 5 };
const CONTROL: Times = Times { usual: 60, quick: 3 };
/// Samples later than each length, of some 65 000, for plain Linux 2.4.17.
const TABLE_1: [u64; 4] = [284, 56, 45, 1];
/// The least and the most that any system of the table had.
const SYSTEMS: [(u64, u64); 4] = [(0, 284), (0, 112), (0, 112), (0, 1)];
/// Samples of each system in the table.
const SAMPLES: u64 = 65_000;
/// Causes that are told of the wake-ups beyond a length.
const MOST_CAUSES: usize = 2;

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let timer = Bench::real_time_clock(scenario);
    let words = format!("-n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i {timer}");
    scenario.notes.push(
        "files of this machine and TCP over loopback; the paper searched trees that were mounted by \
         NFS from this machine and from another"
            .to_owned(),
    );
    let mut idle: Vec<Here> = Vec::new();
    for (part, name, load, times) in [
        ("5.3-idle", "idle", vec![], CONTROL),
        ("5.3", "with files and network", vec![Kind::DISK, Kind::NET], TIMES),
    ] {
        let contended = !load.is_empty();
        let set = bench.hourglass(part, &words, times, &load, scenario)?;
        let run = &set.recorded.run;
        let Some(wakes) = run.wakes.first() else { continue };
        let latencies: Vec<Nanos> = set.latencies.iter().map(|(_, _, late)| *late).collect();
        let free: Option<Vec<Nanos>> = set.host.as_ref().map(|stretches| {
            let here = stretches.iter().copied().filter(|of| of.cpu == bench.cpu());
            let all = set.latencies.iter().map(|(_, end, late)| (*end, *late));
            late_without(all, &here.collect::<Vec<_>>(), run.clock.hz)
        });
        for (index, later) in wakes.later.iter().enumerate() {
            let of = |count| late(&latencies, later.than, count, wakes.woken);
            let here = of(later.raw);
            let control = idle.get(index).and_then(|of| Other::measured("the idle machine", of));
            let paper = TABLE_1.get(index).filter(|_| contended);
            let counts = paper.map(|count| Other::counted(*count, SAMPLES));
            let beside = [
                control.map(|of| of.told(&here)),
                counts.as_ref().map(|counts| counts.told(&here)),
            ];
            let own = [named(wakes, index), of_the_host(later), latest(wakes, later)];
            let what = format!("wake-ups later than {}, {name}", later.than);
            let mut row = row(what, sentence(beside.into_iter().chain(own)))
                .agrees(counts.and_then(|counts| counts.agreement(&here)));
            if let Some(count) = paper {
                row =
                    row.brief(format!("woken later than {}", later.than), counted(*count, SAMPLES));
            }
            row.paper = paper.map(|count| {
                let (least, most) = SYSTEMS[index];
                format!("{count} of 65 000 (Linux 2.4.17; {least} to {most} by system)")
            });
            let other = later.without_host.filter(|without| *without != later.raw);
            row.without_host =
                other.map(|without| freed(free.as_deref(), later.than, without, wakes.woken));
            scenario.rows.push(row.here(here.clone()));
            if !contended {
                idle.push(here);
            }
        }
        scenario.notes.extend(
            run.loads
                .iter()
                .map(|load| format!("load: {}: {} {}", load.what, load.amount, load.unit)),
        );
        scenario.notes.extend(
            run.loads.iter().flat_map(|load| {
                load.notes.iter().map(|note| format!("load {}: {note}", load.load))
            }),
        );
    }
    Ok(())
}

/// How many of the wake-ups would be later than a length without the host, with an interval that knows
/// of bursts; with none where single latencies do not bear the count out.
fn freed(free: Option<&[Nanos]>, than: Nanos, without: u64, woken: u64) -> Here {
    let free = free.unwrap_or_default();
    let beyond = free.iter().filter(|late| **late > than).count() as u64;
    late(if beyond == without { free } else { &[] }, than, without, woken)
}

/// What the wake-ups beyond a length are named after; that there was none is said, too.
fn named(wakes: &WakeSummary, index: usize) -> Option<String> {
    let later = wakes.later.get(index)?;
    if later.raw == 0 {
        return Some(format!("none of {} was so late", wakes.woken));
    }
    let mut causes: Vec<(u64, &whylate_model::wake::WakeCause)> = wakes
        .causes
        .iter()
        .filter_map(|of| Some((of.later.get(index).copied().filter(|count| *count > 0)?, of)))
        .collect();
    causes.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let told: Vec<String> = causes
        .iter()
        .take(MOST_CAUSES)
        .map(|(count, of)| format!("{} ({count})", of.cause))
        .collect();
    Some(match told.as_slice() {
        [] => format!("what made {} of them so late is not known", later.raw),
        told => format!("late because of {}", told.join(", ")),
    })
}

/// What of it is time without a kernel event.
fn of_the_host(later: &LaterThan) -> Option<String> {
    let (raw, perhaps) = (later.raw, later.perhaps_host.unwrap_or_default());
    let Some(without) = later.without_host else {
        return (raw > 0).then(|| "how much of it has no kernel event is not known".to_owned());
    };
    let shown = match without {
        _ if raw == 0 => return None,
        _ if without == raw && perhaps > 0 => {
            "of none is it shown that time without a kernel event did it".to_owned()
        }
        _ if without == raw => "none is for time without a kernel event alone".to_owned(),
        _ if without * 2 <= raw => format!(
            "mostly time without a kernel event: without it {without} of these {raw} would be so late"
        ),
        _ => format!(
            "without time that has no kernel event {without} of these {raw} would be so late"
        ),
    };
    if perhaps == 0 {
        return Some(shown);
    }
    Some(format!(
        "{shown}, and of {perhaps} it is not known, for they were late before the kernel woke the \
         thread"
    ))
}

/// The latest of all, where it is beyond the length.
fn latest(wakes: &WakeSummary, later: &LaterThan) -> Option<String> {
    let wake = wakes.latest.first().filter(|wake| wake.late > later.than)?;
    Some(format!("the latest by {}: {}", wake.late, Printable(&wake.cause.to_string())))
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::Cause;
    use whylate_model::wake::{LATER_THAN, LateWake, WakeCause};
    use whylate_model::{CpuId, Ticks};

    use super::*;

    fn cause(cause: Cause, later: [u64; 4]) -> WakeCause {
        let (wakes, late_ns, latest) = (50, 1e6, Nanos(9_000_000));
        WakeCause { cause, wakes, late_ns, latest, later: later.to_vec() }
    }

    fn wakes(raw: [u64; 4], causes: Vec<WakeCause>) -> WakeSummary {
        let later = LATER_THAN.into_iter().zip(raw);
        let later = later.map(|(than, raw)| LaterThan {
            than,
            raw,
            corrected: None,
            without_host: Some(raw / 4),
            perhaps_host: Some(0),
        });
        let latest = LateWake {
            intended: Ticks(7),
            late: Nanos(9_000_000),
            cause: Cause::Host,
            parts: Vec::new(),
        };
        WakeSummary {
            thread: "0".to_owned(),
            timer: "clock_nanosleep absolute".to_owned(),
            cpus: vec![CpuId(1)],
            period: Nanos(5_300_000),
            woken: 11_000,
            skipped: None,
            later: later.collect(),
            split: Vec::new(),
            causes,
            late_ns: 1e6,
            latest: vec![latest],
        }
    }

    #[test]
    fn each_length_has_the_causes_of_the_wake_ups_beyond_it_and_of_no_others() {
        let idle = cause(Cause::IdleExit, [3, 0, 0, 0]);
        let of = wakes([9, 6, 0, 0], vec![idle, cause(Cause::Host, [5, 5, 0, 0])]);
        let said = |index| named(&of, index).unwrap();
        let (host, idle) = (Cause::Host.to_string(), Cause::IdleExit.to_string());
        assert_eq!(said(0), format!("late because of {host} (5), {idle} (3)"));
        assert_eq!(said(1), format!("late because of {host} (5)"));
        assert_eq!(said(2), "none of 11000 was so late");
        let bare = wakes([9, 6, 0, 0], vec![cause(Cause::Host, [0; 4])]);
        assert!(named(&bare, 1).unwrap().contains("not known"));
    }

    #[test]
    fn the_hosts_part_of_a_length_follows_from_the_two_counts() {
        for (raw, without_host, perhaps, words) in [
            (8, Some(1), 0, Some("mostly time without a kernel event: without it 1 of these 8")),
            (8, Some(6), 0, Some("without time that has no kernel event 6 of these 8")),
            (8, Some(6), 5, Some("6 of these 8 would be so late, and of 5 it is not known")),
            (8, Some(8), 0, Some("none is for time without a kernel event alone")),
            (
                8,
                Some(8),
                3,
                Some(
                    "of none is it shown that time without a kernel event did it, and of 3 it is not known",
                ),
            ),
            (8, None, 0, Some("not known")),
            (0, Some(0), 0, None),
        ] {
            let (than, perhaps_host) = (Nanos(1_000_000), Some(perhaps));
            let later = LaterThan { than, raw, corrected: None, without_host, perhaps_host };
            let said = of_the_host(&later);
            assert_eq!(said.is_some(), words.is_some(), "{said:?}");
            assert!(words.is_none_or(|words| said.unwrap().contains(words)), "{words:?}");
        }
    }

    #[test]
    fn late_wake_ups_that_come_in_bursts_have_a_wider_interval_without_the_host_too() {
        let ms = |n: u64| Nanos(n * 1_000_000);
        let of = |late: &dyn Fn(u64) -> bool| -> Vec<Nanos> {
            (0..1_000).map(|index| if late(index) { ms(9) } else { ms(0) }).collect()
        };
        let width = |free: &[Nanos]| {
            let (low, high) = freed(Some(free), ms(5), 40, 1_000).interval.unwrap();
            high - low
        };
        let (even, bursts) = (of(&|index| index % 25 == 0), of(&|index| index % 500 < 20));
        assert!(width(&bursts) > 1.2 * width(&even), "{} {}", width(&bursts), width(&even));
        assert_eq!(freed(Some(&even), ms(5), 39, 1_000).interval, None, "not the same wake-ups");
        assert_eq!(freed(None, ms(5), 40, 1_000).interval, None);
    }

    #[test]
    fn the_latest_is_told_only_of_lengths_that_it_is_beyond() {
        let of = wakes([9, 6, 0, 0], Vec::new());
        assert!(latest(&of, &of.later[1]).unwrap().contains("9.00ms"));
        assert_eq!(latest(&of, &of.later[2]), None);
    }
}
