//! The host and the clock of a sum: what all recordings have in common.

use whylate_model::host::{Fingerprint, Knob};
use whylate_model::origin::Origin;
use whylate_model::run::ClockFacts;
use whylate_model::settings::Settings;
use whylate_model::{Hertz, Ticks};

/// What stands where recordings differ.
const VARIOUS: &str = "various";

/// What all hosts have in common; a knob in which they differ is unknown for the sum.
pub(super) fn common(hosts: &[&Fingerprint]) -> Fingerprint {
    let text = |pick: fn(&Fingerprint) -> &String| same(hosts, pick).unwrap_or(VARIOUS.to_owned());
    let names: Vec<&String> = hosts.first().map(|h| h.knobs.keys().collect()).unwrap_or_default();
    let knob = |name: &String| {
        let values = |host: &&Fingerprint| host.knobs.get(name).cloned();
        let mut all = hosts.iter().map(values);
        let first = all.next().flatten()?;
        Some(if all.all(|value| value.as_ref() == Some(&first)) { first } else { Knob::Unknown })
    };
    Fingerprint {
        hostname: same(hosts, |h| &h.hostname).unwrap_or_else(|| {
            let mut names: Vec<&str> = hosts.iter().map(|h| h.hostname.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            // One machine may have had several names; of another kind it was another.
            let alike = |one: &Fingerprint, other: &Fingerprint| {
                let of = [one, other].map(|of| (&of.cpu_model, of.memory_bytes, &of.cpus_online));
                of[0] == of[1]
            };
            let is_one = hosts.windows(2).all(|two| alike(two[0], two[1]));
            let what = if is_one { "host names" } else { "machines" };
            format!("{} {what}", names.len())
        }),
        kernel: text(|h| &h.kernel),
        kernel_build: text(|h| &h.kernel_build),
        architecture: text(|h| &h.architecture),
        command_line: text(|h| &h.command_line),
        cpu_model: text(|h| &h.cpu_model),
        microcode: same(hosts, |h| &h.microcode).unwrap_or_default(),
        hypervisor: same(hosts, |h| &h.hypervisor).unwrap_or_else(|| Some(VARIOUS.to_owned())),
        cpus_online: same(hosts, |h| &h.cpus_online).unwrap_or_default(),
        cpus_isolated: same(hosts, |h| &h.cpus_isolated).unwrap_or_default(),
        memory_bytes: same(hosts, |h| &h.memory_bytes).unwrap_or_default(),
        knobs: names.into_iter().filter_map(|name| Some((name.clone(), knob(name)?))).collect(),
    }
}

/// A clock whose ticks are nanoseconds: the sum has no timeline of its own.
pub(super) fn clock(clocks: &[&ClockFacts]) -> ClockFacts {
    let worst = |pick: fn(&ClockFacts) -> f64| clocks.iter().map(|c| pick(c)).fold(0.0, f64::max);
    let known = |pick: fn(&ClockFacts) -> Option<f64>| {
        clocks.iter().map(|c| pick(c)).reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten()
    };
    ClockFacts {
        counter: same(clocks, |c| &c.counter).unwrap_or(VARIOUS.to_owned()),
        hz: Hertz(1e9),
        hz_bound_ppm: worst(|c| c.hz_bound_ppm),
        sources: Vec::new(),
        drift: None,
        jitter_ns: known(|c| c.jitter_ns),
        epoch: Ticks(0),
        anchors: Vec::new(),
        read_cost_min_ns: worst(|c| c.read_cost_min_ns),
        read_cost_median_ns: worst(|c| c.read_cost_median_ns),
        resolution_ns: worst(|c| c.resolution_ns),
        cross_cpu: Vec::new(),
        gap_recording_ns: known(|c| c.gap_recording_ns),
        sample_recording_ns: known(|c| c.sample_recording_ns),
    }
}

/// Settings that all recordings have in common.
pub(super) fn settings(origins: &[Origin]) -> Settings {
    let Some((first, others)) = origins.split_first() else { return Settings::new() };
    let mut settings = first.settings.clone();
    // In words: those of older versions stored nothing else.
    let words = |of: &Settings, name: &str| of.get(name).map(ToString::to_string);
    settings.retain(|name, value| {
        let value = Some(value.to_string());
        others.iter().all(|other| words(&other.settings, name) == value)
    });
    settings
}

fn same<H, T: PartialEq + Clone>(hosts: &[&H], pick: impl Fn(&H) -> &T) -> Option<T> {
    let (first, others) = hosts.split_first()?;
    let first = pick(first);
    others.iter().all(|other| pick(other) == first).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use whylate_model::settings::Setting;
    use whylate_model::{CpuId, Nanos};

    use super::*;
    use crate::timeline::tests::recorded;

    fn value(of: &str) -> Knob {
        Knob::Value(of.to_owned())
    }

    fn knobs(of: &[(&str, Knob)]) -> BTreeMap<String, Knob> {
        of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn host() -> Fingerprint {
        Fingerprint {
            hostname: "a".to_owned(),
            kernel: "6.1".to_owned(),
            kernel_build: "#1".to_owned(),
            architecture: "x86_64".to_owned(),
            command_line: "quiet".to_owned(),
            cpu_model: "one".to_owned(),
            microcode: value("0x1"),
            hypervisor: Some("kvm".to_owned()),
            cpus_online: vec![CpuId(0), CpuId(1)],
            cpus_isolated: vec![CpuId(1)],
            memory_bytes: 4,
            knobs: knobs(&[("governor", value("performance")), ("smt", value("on"))]),
        }
    }

    #[test]
    fn what_hosts_have_in_common_stays_and_where_they_differ_nothing_is_claimed() {
        assert_eq!(common(&[&host(), &host()]), host());
        let other = Fingerprint {
            hostname: "b".to_owned(),
            kernel: "6.2".to_owned(),
            kernel_build: "#2".to_owned(),
            architecture: "aarch64".to_owned(),
            command_line: String::new(),
            cpu_model: "two".to_owned(),
            microcode: value("0x2"),
            hypervisor: None,
            cpus_online: vec![CpuId(0)],
            cpus_isolated: Vec::new(),
            memory_bytes: 8,
            knobs: knobs(&[("governor", value("powersave")), ("numa", value("off"))]),
        };
        let various = || "various".to_owned();
        let expected = Fingerprint {
            hostname: "2 machines".to_owned(),
            kernel: various(),
            kernel_build: various(),
            architecture: various(),
            command_line: various(),
            cpu_model: various(),
            microcode: Knob::Unknown,
            hypervisor: Some(various()),
            cpus_online: Vec::new(),
            cpus_isolated: Vec::new(),
            memory_bytes: 0,
            knobs: knobs(&[("governor", Knob::Unknown), ("smt", Knob::Unknown)]),
        };
        // Machines are counted, not recordings.
        assert_eq!(common(&[&host(), &other, &host()]), expected);
        // Where the name alone differs it may be the same machine.
        let renamed = Fingerprint { hostname: "b".to_owned(), ..host() };
        assert_eq!(common(&[&host(), &renamed]).hostname, "2 host names");
    }

    #[test]
    fn the_clock_of_a_sum_is_in_nanoseconds_and_as_good_as_the_worst_of_its_recordings() {
        let facts = |n: f64| ClockFacts {
            counter: "tsc".to_owned(),
            hz_bound_ppm: n,
            jitter_ns: Some(2.0 * n),
            read_cost_min_ns: 3.0 * n,
            read_cost_median_ns: 4.0 * n,
            resolution_ns: 5.0 * n,
            gap_recording_ns: Some(6.0 * n),
            sample_recording_ns: Some(7.0 * n),
            ..recorded().clock
        };
        let (one, other) = (facts(1.0), facts(10.0));
        let expected = ClockFacts {
            hz: Hertz(1e9),
            sources: Vec::new(),
            drift: None,
            epoch: Ticks(0),
            anchors: Vec::new(),
            cross_cpu: Vec::new(),
            ..other.clone()
        };
        assert_eq!(clock(&[&one, &other]), expected);
        assert_eq!(clock(&[&other, &one]), expected);
        // What one of them does not know is not known of the sum.
        let blind = ClockFacts {
            counter: "mock".to_owned(),
            jitter_ns: None,
            gap_recording_ns: None,
            sample_recording_ns: None,
            ..one
        };
        for clocks in [[&blind, &other], [&other, &blind]] {
            let sum = clock(&clocks);
            let known = (sum.jitter_ns, sum.gap_recording_ns, sum.sample_recording_ns);
            assert_eq!((sum.counter.as_str(), known), ("various", (None, None, None)));
        }
    }

    #[test]
    fn settings_of_a_sum_are_those_that_all_recordings_have_and_tell_in_the_same_words() {
        let json = include_bytes!("../../../../tests/runs/merge/run.json");
        let path = std::path::Path::new("run.json");
        let kept = whylate_model::directory::parse_run(path, json).unwrap();
        let mut origins = vec![kept.origins[0].clone(); 3];
        let settings_of = |of: &[(&str, Setting)]| -> Settings {
            of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        let words = |of: &str| Setting::Words(of.to_owned());
        let threshold = Setting::TimeNs(Nanos(5_000));
        let told = words(&threshold.to_string());
        let by = |threshold, loops, more: &[(&str, Setting)]| {
            let mut settings = settings_of(&[("threshold", threshold), ("loop", words(loops))]);
            settings.extend(settings_of(more));
            settings
        };
        origins[0].settings = by(threshold.clone(), "pair", &[("one", Setting::On(true))]);
        origins[1].settings = by(told, "pair", &[]);
        origins[2].settings = by(threshold.clone(), "chain", &[("other", Setting::On(true))]);
        assert_eq!(settings(&origins), settings_of(&[("threshold", threshold)]));
        assert_eq!(settings(&origins[..1]), origins[0].settings);
        assert_eq!(settings(&[]), Settings::new());
    }
}
