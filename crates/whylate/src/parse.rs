//! Words of the command line that become checked values once, here.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use whylate_model::configuration::{Configurations, NoConfiguration};
use whylate_model::duration::DurationError;
use whylate_model::{Bytes, CpuId, Nanos};

/// A duration with its unit: `60s`, `1.5ms`, `72h`, `250us`, `800ns`, `3m`.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|error: DurationError| error.to_string())
}

/// Below this no interval, no quantile and no closure means anything.
pub(crate) const SHORTEST: Nanos = Nanos(10_000_000);

/// A duration of a measurement: long enough to measure anything at all.
pub(crate) fn measuring_time(text: &str) -> Result<Nanos, String> {
    let nanos = duration(text)?;
    if nanos < SHORTEST {
        return Err(format!("`{text}` is too short to measure anything: the least is {SHORTEST}"));
    }
    Ok(nanos)
}

/// The length of an interval of a log: a second, or less.
pub(crate) fn log_interval(text: &str) -> Result<Nanos, String> {
    match measuring_time(text)? {
        nanos if nanos > Nanos::SECOND => {
            Err(format!("`{text}` is too long: a log has intervals of a second at most"))
        }
        nanos => Ok(nanos),
    }
}

/// A duration above zero.
pub(crate) fn limit(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(0) => Err("zero is no limit: leave the option out or give a time".to_owned()),
        nanos => Ok(nanos),
    }
}

/// Time between two things that a recording does now and then.
pub(crate) fn beat(text: &str) -> Result<Nanos, String> {
    /// More often than this, and the recording would do little else.
    const SHORTEST: Nanos = Nanos(100_000_000);
    match duration(text)? {
        nanos if nanos < SHORTEST => Err(format!("`{text}` is too often: the least is {SHORTEST}")),
        nanos => Ok(nanos),
    }
}

/// A bound on disk space.
pub(crate) fn disk(text: &str) -> Result<u64, String> {
    /// Below this not even the segments being filled have room.
    const LEAST: u64 = 1 << 20;
    match size(text)? {
        bytes if bytes < LEAST => Err(format!("`{text}` is too little disk: the least is 1MiB")),
        bytes => Ok(bytes),
    }
}

/// A size with its unit: `64KiB`, `1MiB`, `16k`, `8G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let value: u64 =
        number.parse().map_err(|_| format!("`{text}` is not a size: write it as 64KiB or 2GiB"))?;
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(format!("`{unit}` is not a unit of size: use KiB, MiB or GiB")),
    };
    value.checked_mul(scale).ok_or_else(|| format!("`{text}` does not fit into 64 bits"))
}

/// How long runners of one CPU are busy at a time: a minute of real-time priority is enough.
pub(crate) fn row_time(text: &str) -> Result<Nanos, String> {
    const LONGEST: Nanos = Nanos(60 * Nanos::SECOND.0);
    match measuring_time(text)? {
        nanos if nanos > LONGEST => Err(format!("`{text}` is too long: the most is 60s")),
        nanos => Ok(nanos),
    }
}

/// A working set of a runner.
pub(crate) fn working_set(text: &str) -> Result<u64, String> {
    const SMALLEST: u64 = whylate_record::switch_cost::SMALLEST_SET;
    match size(text)? {
        bytes if bytes < SMALLEST => Err(format!(
            "`{text}` is too small for a working set: the least is {}",
            Bytes(SMALLEST)
        )),
        bytes => Ok(bytes),
    }
}

/// After which CPU time a runner gives the CPU up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Of its own accord.
    Of(Nanos),
    /// When the kernel takes it.
    Kernel,
}

/// `200us`, or `kernel`.
pub(crate) fn quantum(text: &str) -> Result<Turn, String> {
    const SHORTEST: Nanos = Nanos(10_000);
    const LONGEST: Nanos = Nanos(100_000_000);
    if text == "kernel" {
        return Ok(Turn::Kernel);
    }
    match duration(text)? {
        nanos if (SHORTEST..=LONGEST).contains(&nanos) => Ok(Turn::Of(nanos)),
        _ => Err(format!("`{text}` is no quantum: give {SHORTEST} to {LONGEST}, or kernel")),
    }
}

/// What the loop does between readings: `none` or `memmove:SIZE`.
pub(crate) fn work(text: &str) -> Result<whylate_gap::Work, String> {
    /// More than any cache of today, and two of them still fit into a small machine's memory.
    const LARGEST: u64 = 1 << 30;
    match text.split_once(':') {
        None if text == "none" => Ok(whylate_gap::Work::Nothing),
        Some(("memmove", text)) => match size(text)? {
            0 => Err("memmove of nothing is no work: give a size such as memmove:64KiB".to_owned()),
            bytes if bytes > LARGEST => Err(format!("memmove:{text} is larger than 1GiB")),
            bytes => Ok(whylate_gap::Work::Memmove { bytes: bytes as usize }),
        },
        _ => Err(format!("`{text}` is not a workload: use none or memmove:SIZE")),
    }
}

/// How long a server waits for anybody: a time of a second or more, or `never`, which is 366 days.
pub(crate) fn idle(text: &str) -> Result<Nanos, String> {
    const LONGEST: Nanos = Nanos(366 * 86_400 * Nanos::SECOND.0);
    if text == "never" {
        return Ok(LONGEST);
    }
    match duration(text)? {
        nanos if (Nanos::SECOND..=LONGEST).contains(&nanos) => Ok(nanos),
        _ => Err(format!("`{text}` is outside 1s to 366 days: choose one inside, or never")),
    }
}

/// Scheduling policy of a thread that measures or serves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sched {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_FIFO` with this priority.
    Fifo(u8),
}

impl Sched {
    /// The real-time priority, where it has one.
    pub(crate) fn fifo(self) -> Option<u8> {
        match self {
            Self::Other => None,
            Self::Fifo(priority) => Some(priority),
        }
    }
}

/// `other` or `fifo:N` with N from 1 to 98: 99 is left to the kernel's migration and watchdog threads. A
/// number alone is the priority of `fifo`, as `--fifo 50` once said it.
pub(crate) fn sched(text: &str) -> Result<Sched, String> {
    if text == "other" {
        return Ok(Sched::Other);
    }
    if text.starts_with("rr:") {
        return Err(format!(
            "`{text}` shares a CPU in turns among threads of one priority, and this thread is alone at \
             its own: write fifo:1-98"
        ));
    }
    match text.strip_prefix("fifo:").unwrap_or(text).parse() {
        Ok(priority @ 1..=98) => Ok(Sched::Fifo(priority)),
        _ => Err(format!(
            "`{text}` is no scheduling policy: write other, or fifo:1-98 such as fifo:50"
        )),
    }
}

/// An address of one host, with a port or without, which is any.
pub(crate) fn own_address(text: &str) -> Result<SocketAddr, String> {
    let alone = |_| text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    let told =
        || format!("`{text}` is not an address: use 198.18.0.1, 198.18.0.1:4021 or [fd00::1]:4021");
    text.parse::<SocketAddr>().or_else(alone).map_err(|_| told())
}

/// The CPU of what runs on one alone.
pub(crate) fn cpu(text: &str) -> Result<CpuId, String> {
    let told = |_| {
        if text.contains([',', '-']) {
            format!("`{text}` names several CPUs, and a thread here runs on one: write its number")
        } else {
            format!("`{text}` is no CPU: write its number")
        }
    };
    text.parse().map(CpuId).map_err(told)
}

/// Busy work for a frame: with a millisecond of it a forwarder hardly forwards.
pub(crate) fn work_of_frame(text: &str) -> Result<Nanos, String> {
    const LONGEST: Nanos = Nanos(1_000_000);
    match duration(text)? {
        nanos if nanos <= LONGEST => Ok(nanos),
        _ => Err(format!("`{text}` is too much work for a frame: the most is {LONGEST}")),
    }
}

/// A count above zero that is not absurd.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    match text.parse::<NonZeroU32>() {
        Ok(count) if count.get() <= 4096 => Ok(count),
        _ => Err(format!("`{text}` is not a count from 1 to 4096")),
    }
}

/// Requests that may be in flight, of an option as of a flow in words.
pub(crate) fn outstanding(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
        format!("`{text}` is no number of requests in flight: write 1 or more, such as 8")
    })
}

/// Configurations of the host for a box, with commas between them: `local,local+isolset`.
pub(crate) fn configurations(text: &str) -> Result<Configurations, String> {
    text.parse().map_err(|error: NoConfiguration| error.to_string())
}

/// Load to make beside a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Loads(pub(crate) Vec<whylate_load::Kind>);

/// Words for load with commas between them.
pub(crate) fn loads(text: &str) -> Result<Loads, String> {
    whylate_load::parse(text).map(Loads).map_err(|error| error.to_string())
}

/// A rate that a counter may have.
pub(crate) fn hertz(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hz) if (1e6..=1e11).contains(&hz) => Ok(hz),
        _ => Err("not a counter's rate: give from 1e6 to 1e11 Hz".to_owned()),
    }
}

/// A percentile in the upper half: `99`, `p99.9`.
pub(crate) fn percentile(text: &str) -> Result<f64, String> {
    let percent = text.strip_prefix('p').unwrap_or(text).parse::<f64>().ok();
    percent
        .filter(|percent| (50.0..100.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is no percentile from 50 to below 100, such as 99.9"))
}

/// A share above 0 and below 1: `0.001`, or `0.1%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share.filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(|| {
        format!("`{text}` is no share: write one between 0 and 1, such as 0.001 or 0.1%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counters_rate_is_one_that_a_counter_may_have() {
        assert_eq!(hertz("2596120000.125"), Ok(2_596_120_000.125));
        for text in ["", "0", "-1e9", "nan", "inf", "1e5", "1e12", "2 GHz"] {
            assert!(hertz(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scheduling_policy_is_other_or_fifo_with_a_priority() {
        for (text, policy) in [
            ("other", Sched::Other),
            ("fifo:1", Sched::Fifo(1)),
            ("fifo:98", Sched::Fifo(98)),
            ("50", Sched::Fifo(50)),
        ] {
            assert_eq!(sched(text), Ok(policy));
        }
        for (text, part) in [
            ("rr:50", "write fifo:1-98"),
            ("fifo:99", "fifo:1-98"),
            ("fifo:0", "fifo:1-98"),
            ("fifo", "fifo:1-98"),
            ("", "no scheduling policy"),
        ] {
            let refusal = sched(text).unwrap_err();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_list_of_cpus_where_there_is_one_is_refused_with_the_reason() {
        assert_eq!(cpu("3"), Ok(CpuId(3)));
        for (text, part) in
            [("0-1", "runs on one"), ("0,1", "runs on one"), ("x", "no CPU"), ("", "no CPU")]
        {
            let refusal = cpu(text).unwrap_err();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }

    #[test]
    fn durations_carry_their_unit() {
        for (text, ns) in
            [("1ns", 1), ("1.5us", 1_500), ("2ms", 2_000_000), ("3m", 180_000_000_000)]
        {
            assert_eq!(duration(text), Ok(Nanos(ns)), "{text}");
        }
        for text in ["", "s", "5", "-1s", "1.2.3s", "4 s", "7parsecs", "nan", "inf s", "10000d"] {
            assert!(duration(text).is_err(), "{text} was taken for a duration");
        }
    }

    #[test]
    fn an_address_of_ones_own_has_a_port_or_any() {
        for (text, address) in [
            ("198.18.0.1", "198.18.0.1:0"),
            ("198.18.0.1:7", "198.18.0.1:7"),
            ("fd00::1", "[fd00::1]:0"),
            ("[fd00::1]:7", "[fd00::1]:7"),
        ] {
            assert_eq!(own_address(text).unwrap().to_string(), address);
        }
        for text in ["", "localhost", "198.18.0.1:x", "198.18.0"] {
            assert!(own_address(text).is_err(), "{text} was taken for an address");
        }
    }

    #[test]
    fn configurations_are_words_with_plus_between_steps_and_commas_between_them() {
        let list = configurations("local,local+isolset+power").unwrap();
        assert_eq!(list.0.len(), 2);
        for text in ["", "local,", "local+isolated", "remote+local"] {
            let why = configurations(text).unwrap_err();
            assert!(why.contains("is no configuration"), "{text}: {why}");
        }
    }

    #[test]
    fn a_measurement_is_neither_nothing_nor_ten_years() {
        for text in ["0s", "1ns", "3650d"] {
            assert!(measuring_time(text).is_err(), "{text} was taken for a measuring time");
        }
    }

    #[test]
    fn sizes_and_workloads_are_checked() {
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(work("memmove:1k"), Ok(whylate_gap::Work::Memmove { bytes: 1024 }));
        for text in ["memmove", "memmove:", "memmove:0", "memmove:9999G", "sort"] {
            assert!(work(text).is_err(), "{text} was taken for a workload");
        }
    }
}
