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
            format!("{} machines", names.len())
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
