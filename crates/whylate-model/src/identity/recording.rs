//! What recordings say beside their series: of a sum each of its own, else the run itself.

use std::collections::BTreeSet;

use super::{NOT_RECORDED, distinct};
use crate::flow::Flow;
use crate::host::Fingerprint;
use crate::load::LoadFacts;
use crate::origin::Share;
use crate::run::Run;
use crate::settings::Settings;
use crate::units::CpuId;

/// The recordings of a run.
pub(super) struct Recordings<'a> {
    all: Vec<Recording<'a>>,
}

struct Recording<'a> {
    settings: &'a Settings,
    host: &'a Fingerprint,
    loads: &'a [LoadFacts],
    /// Of a sum: what it added to each series.
    shares: &'a [Share],
}

impl<'a> Recordings<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let one =
            Recording { settings: &run.settings, host: &run.host, loads: &run.loads, shares: &[] };
        let of_origins = run.origins.iter().map(|origin| Recording {
            settings: &origin.settings,
            host: &origin.host,
            loads: &origin.loads,
            shares: &origin.series,
        });
        let all = if run.is_merged() { of_origins.collect() } else { vec![one] };
        Self { all }
    }

    /// A setting; none where no recording says it.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        let said = self.all.iter().filter_map(|one| one.settings.get(name));
        let said = distinct(said.map(ToString::to_string));
        (!said.is_empty()).then_some(said)
    }

    /// The load that was made beside it, in the words that ask for it again where they are known.
    pub(super) fn load(&self) -> String {
        distinct(self.all.iter().map(|one| {
            let asked = one.settings.get("load").map(ToString::to_string);
            let made = || distinct(one.loads.iter().map(|load| load.load.clone()));
            let load = asked.unwrap_or_else(made);
            let others = one.settings.get("competitors").map(ToString::to_string);
            let others = others.filter(|count| count != "0");
            let others = others.map(|count| format!("{count} competitors on each CPU"));
            match [load].into_iter().chain(others).filter(|of| !of.is_empty()).collect::<Vec<_>>() {
                none if none.is_empty() => "none".to_owned(),
                several => several.join(", "),
            }
        }))
    }

    /// The CPUs in the names that this series had where it was recorded, of a sum.
    pub(super) fn cpus_of(&self, series: &str) -> Vec<CpuId> {
        let shares = self.all.iter().flat_map(|one| one.shares);
        let names = shares.filter(|share| share.series == series).map(|share| &share.recorded_as);
        let cpus: BTreeSet<CpuId> = names.flat_map(|name| named(name, "-cpu")).collect();
        cpus.into_iter().collect()
    }

    /// The CPUs of the clients of these flows.
    pub(super) fn clients(&self, flows: &[&Flow]) -> Vec<CpuId> {
        let settings = self.all.iter().flat_map(|one| one.settings);
        let is_client = |setting: &str| match setting.strip_prefix("client") {
            // There is one flow only.
            Some("") => true,
            Some(rest) => flows.iter().any(|flow| rest.strip_prefix(" of ") == Some(&flow.name)),
            None => false,
        };
        let clients = settings.filter(|(name, _)| is_client(name));
        let cpus: BTreeSet<CpuId> =
            clients.flat_map(|(_, said)| named(&said.to_string(), "CPU ")).collect();
        cpus.into_iter().collect()
    }

    /// Are these CPUs kept from other threads?
    pub(super) fn role(&self, cpus: &[CpuId]) -> String {
        if cpus.is_empty() {
            return NOT_RECORDED.to_owned();
        }
        let isolated = |cpu: &CpuId| {
            let count = self.all.iter().filter(|one| one.host.cpus_isolated.contains(cpu)).count();
            [(count > 0, "isolated"), (count < self.all.len(), "shared with other threads")]
        };
        let roles = cpus.iter().flat_map(isolated).filter(|(is, _)| *is);
        distinct(roles.map(|(_, role)| role.to_owned()))
    }
}

/// Numbers of CPUs behind a word.
fn named(text: &str, word: &str) -> Vec<CpuId> {
    let tails = text.split(word).skip(1);
    tails
        .filter_map(|tail| {
            let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            tail[..end].parse().ok().map(CpuId)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_out_of_names_and_settings() {
        assert_eq!(named("gap-cpu1, gap-cpu12", "-cpu"), [CpuId(1), CpuId(12)]);
        assert_eq!(named("CPU 3, SCHED_FIFO 50", "CPU "), [CpuId(3)]);
        assert_eq!(named("udp-rtt-other-core", "-cpu"), []);
    }
}
