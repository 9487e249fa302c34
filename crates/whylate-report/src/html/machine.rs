//! How far to trust the clock, what the evidence was, and what the host is.

use whylate_model::CpuList;
use whylate_model::run::{ClockFacts, CpuOffset, FrequencySource, Run};
use whylate_model::settings::Setting;

use crate::doc::{Block, Fold, Section, Table};
use crate::evidence;
use crate::numbers::{Names, Value, count, number, signed, time};
use crate::svg::resolution_label;

/// Rows of a table: the knobs of a host are some hundred.
const MOST_ROWS: usize = 200;
/// Counters of /proc shown.
const MOST_COUNTERS: usize = 16;

/// How far to trust the clock, and what the host is.
pub(super) fn sections(run: &Run) -> [Section; 2] {
    let mut trust = vec![Block::Table(words(run))];
    trust.extend([sources(&run.clock), offsets(&run.clock)].map(Block::Table));
    let said = evidence::evidence(run).into_iter().chain(evidence::undigested(run));
    trust.extend([Block::Heading("Evidence".to_owned()), Block::Items(said.collect())]);
    trust.push(Block::Table(counters(run)));
    let knobs = pairs("Its settings, as read back", run.host.knobs.iter());
    let settings: Vec<(&String, String)> =
        run.settings.iter().map(|(name, of)| (name, setting(name, of))).collect();
    let settings = pairs("Settings, as used", settings.iter().map(|(name, value)| (*name, value)));
    let fold = |heading: String, table| {
        Block::Fold(Fold { heading, gap: None, blocks: vec![Block::Table(table)] })
    };
    let host = vec![
        Block::Table(fingerprint(run)),
        fold(format!("{} settings of the machine", run.host.knobs.len()), knobs),
        fold("Settings of the run".to_owned(), settings),
        Block::Code("Command line".to_owned(), vec![run.command_line.join(" ")]),
    ];
    [
        Section::new("trust", "How far to trust the clock and these numbers", trust),
        Section::new("host", "Fingerprint", host),
    ]
}

/// The three words with this run's values, and what each means.
fn words(run: &Run) -> Table {
    let clock = &run.clock;
    let head = ["", "of this run", "what it means"];
    let mut table = Table::new("Resolution, precision and accuracy", &head).words(&[1, 2]);
    let mut row = |word: &str, value: String, means: &str| {
        table.row([word.to_owned(), value, means.to_owned()]);
    };
    row(
        "resolution",
        resolution_label(clock.resolution_ns),
        "The smallest step the clock shows: shorter times print as less than this.",
    );
    row(
        "precision: one reading",
        format!(
            "{} at least, {} median",
            time(clock.read_cost_min_ns),
            time(clock.read_cost_median_ns)
        ),
        "The spread of repeated readings: what reading the clock costs, and how much that varies.",
    );
    for gaps in run.gaps.iter().take(8) {
        let ns = |ticks: f64| ticks * 1e9 / clock.hz.0;
        let (low, high) = gaps.period_spread_ticks;
        row(
            &format!("precision: loop, {}", run.thread_name(gaps)),
            format!(
                "{}, p10 {}, p90 {} ({} quiet blocks)",
                time(ns(gaps.period_ticks)),
                time(ns(low)),
                time(ns(high)),
                count(gaps.blocks)
            ),
            "A constant measured again and again: the period of the loop in stretches without stalls.",
        );
    }
    row(
        "accuracy: frequency",
        accuracy(clock, run.is_merged()),
        "The distance to true time: 1 ppm is 1 µs in each second measured. A clock that agrees with \
         one made from the same oscillator shows nothing of it.",
    );
    if !run.is_merged() {
        let independent = clock.sources.iter().filter(|source| source.independent).count();
        row(
            "accuracy: sources",
            match independent {
                0 => "none independent of the one used".to_owned(),
                some => format!("{some} independent of the one used"),
            },
            "A clock that is wrong in all it is compared with shows no difference: only \
             independent sources can find it out.",
        );
    }
    let bound = clock.cross_cpu.iter().map(|offset| offset.bound.to_nanos(clock.hz)).max();
    if let Some(bound) = bound {
        row(
            "accuracy: between CPUs",
            format!("within {}", Value::from(bound)),
            "Events on different CPUs that are closer than this cannot be ordered.",
        );
    }
    if let Some(bound) = clock.anchors.iter().map(|anchor| anchor.bound_ns).reduce(f64::max) {
        row(
            "accuracy: wall time",
            format!("within {} of CLOCK_REALTIME", time(bound)),
            "How well this run's stamps can be laid beside those of other programs of this machine.",
        );
    }
    table
}

/// How far the frequency lies from true time, as far as any source can tell.
fn accuracy(clock: &ClockFacts, merged: bool) -> String {
    let bound = clock.hz_bound_ppm;
    if merged {
        return format!("each recording's own; the widest bound is {} ppm", number(bound));
    }
    let bounded = |source: &&FrequencySource| {
        source.bound_ppm.filter(|_| source.independent).map(|own| source.difference_ppm.abs() + own)
    };
    let best = clock.sources.iter().filter(|source| bounded(source).is_some()).min_by(|a, b| {
        bounded(a).unwrap_or(f64::INFINITY).total_cmp(&bounded(b).unwrap_or(f64::INFINITY))
    });
    if let Some((source, ppm)) = best.and_then(|source| Some((source, bounded(&source)?))) {
        return format!("within {} ppm, by {}", number(ppm.max(bound)), source.name);
    }
    match clock.sources.iter().find(|source| source.independent) {
        Some(source) => format!(
            "unknown: {} is independent and states no bound; it differs by {} ppm",
            source.name,
            signed(source.difference_ppm)
        ),
        None => format!(
            "unknown (no independent source); agrees with CLOCK_MONOTONIC_RAW within {} ppm",
            number(bound)
        ),
    }
}

fn sources(clock: &ClockFacts) -> Table {
    let head = ["source", "frequency", "bound, ppm", "difference, ppm", "independent"];
    let caption = format!("Frequency of the counter ({})", clock.counter);
    let mut table = Table::new(caption, &head).words(&[4]).most(MOST_ROWS);
    for source in &clock.sources {
        let bound = source.bound_ppm;
        table.row([
            source.name.clone(),
            evidence::megahertz(source.hz, bound.unwrap_or(clock.hz_bound_ppm)),
            bound.map_or("not stated".to_owned(), number),
            signed(source.difference_ppm),
            if source.independent { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn offsets(clock: &ClockFacts) -> Table {
    let head = ["CPU", "against", "offset", "at the end"];
    let mut table = Table::new("Offsets between the counters of CPUs", &head).most(MOST_ROWS);
    for offset in &clock.cross_cpu {
        let at_end = offset
            .offset_ticks_at_end
            .map(|offset_ticks| evidence::offset(&CpuOffset { offset_ticks, ..*offset }, clock.hz));
        table.row([
            offset.cpu.to_string().into(),
            offset.reference.to_string().into(),
            evidence::offset(offset, clock.hz).into(),
            Value::from(at_end),
        ]);
    }
    table
}

fn counters(run: &Run) -> Table {
    let mut deltas: Vec<_> = run.evidence.proc_deltas.iter().filter(|d| d.count > 0).collect();
    deltas.sort_by_key(|delta| std::cmp::Reverse(delta.count));
    let head = ["counter", "CPU", "increase"];
    let mut table = Table::new("Counters of /proc over the run", &head).most(MOST_COUNTERS);
    for delta in deltas {
        table.row([
            Value::from(delta.name.as_str()),
            delta.cpu.to_string().into(),
            Value::Count(delta.count),
        ]);
    }
    table
}

fn fingerprint(run: &Run) -> Table {
    let host = &run.host;
    let rows: [(&str, String); 11] = [
        ("host name", host.hostname.clone()),
        ("processor", host.cpu_model.clone()),
        ("architecture", host.architecture.clone()),
        ("microcode", host.microcode.to_string()),
        ("hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none".to_owned())),
        ("CPUs online", CpuList(&host.cpus_online).to_string()),
        ("CPUs isolated", CpuList(&host.cpus_isolated).to_string()),
        ("memory", format!("{} GiB", number(host.memory_bytes as f64 / f64::from(1 << 30)))),
        ("kernel", host.kernel.clone()),
        ("kernel build", host.kernel_build.clone()),
        ("kernel command line", host.command_line.clone()),
    ];
    pairs("The machine", rows.iter().map(|(name, value)| (name, value)))
}

/// A setting as a reader has it. Words are the user's own, but for the rule of a threshold.
fn setting(name: &str, of: &Setting) -> String {
    match of {
        Setting::TimeNs(time) => Value::from(*time).to_string(),
        Setting::TimesNs(times) => {
            let times: Vec<String> = times.iter().map(|of| Value::from(*of).to_string()).collect();
            times.join(", ")
        }
        Setting::Count(of) => count(*of),
        Setting::SizeBytes(bytes) => format!("{} bytes", count(*bytes)),
        Setting::RatePerS(rate) if rate.fract() == 0.0 && (0.0..1e15).contains(rate) => {
            format!("{}/s", count(*rate as u64))
        }
        Setting::Words(words) if name == "threshold" => Names::default().respelled(words),
        other => other.to_string(),
    }
}

fn pairs<'a, K: ToString + 'a, V: ToString + 'a>(
    caption: &str,
    pairs: impl Iterator<Item = (&'a K, &'a V)>,
) -> Table {
    let mut table = Table::new(caption, &["", ""]).words(&[1]).most(MOST_ROWS);
    for (name, value) in pairs {
        table.row([name.to_string(), value.to_string()]);
    }
    table
}

/// A wall time as `2026-11-21 08:21:58 UTC`.
pub(crate) fn utc(realtime_ns: u64) -> String {
    let seconds = realtime_ns / 1_000_000_000;
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::recorded;

    #[test]
    fn wall_times_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_827_696, "2000-02-29 12:34:56 UTC"),
            (1_795_251_718, "2026-11-21 09:01:58 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000 + 999_999_999), date);
        }
        assert!(utc(u64::MAX).starts_with("2554-"));
    }

    #[test]
    fn accuracy_is_unknown_without_an_independent_source() {
        let source = |independent, bound_ppm| FrequencySource {
            name: "acpi_pm".to_owned(),
            hz: whylate_model::Hertz(1e9),
            bound_ppm,
            independent,
            difference_ppm: -2.0,
        };
        let of = |sources| {
            let clock = ClockFacts { hz_bound_ppm: 0.073, sources, ..recorded().clock };
            accuracy(&clock, false)
        };
        let unknown =
            "unknown (no independent source); agrees with CLOCK_MONOTONIC_RAW within 0.07 ppm";
        assert_eq!(of(vec![]), unknown);
        assert_eq!(of(vec![source(false, Some(0.5))]), unknown);
        assert_eq!(of(vec![source(true, Some(0.5))]), "within 2.50 ppm, by acpi_pm");
        assert_eq!(
            of(vec![source(true, None)]),
            "unknown: acpi_pm is independent and states no bound; it differs by −2.00 ppm"
        );
    }
}
