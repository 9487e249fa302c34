//! What recordings say beside their series: of a sum each of its own, else the run itself.

use std::collections::BTreeSet;

use super::{NOT_RECORDED, distinct};
use crate::flow::Flow;
use crate::host::Fingerprint;
use crate::load::LoadFacts;
use crate::origin::Share;
use crate::run::Run;
use crate::settings::{Setting, Settings};
use crate::units::CpuId;

/// The setting of a self-test, and what it is called among the loads.
pub const INJECTED: &str = "injected interruptions";

/// The recordings of a run.
pub(super) struct Recordings<'a> {
    all: Vec<Recording<'a>>,
}

struct Recording<'a> {
    settings: &'a Settings,
    host: &'a Fingerprint,
    loads: &'a [LoadFacts],
    /// Interruptions of its own were injected to test what is said of them.
    injects: bool,
    /// Of a sum: what it added to each series.
    shares: &'a [Share],
}

impl<'a> Recordings<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let injects = |settings: &Settings| settings.contains_key(INJECTED);
        let one = Recording {
            settings: &run.settings,
            host: &run.host,
            loads: &run.loads,
            injects: run.selftest.is_some() || injects(&run.settings),
            shares: &[],
        };
        let of_origins = run.origins.iter().map(|origin| Recording {
            settings: &origin.settings,
            host: &origin.host,
            loads: &origin.loads,
            injects: injects(&origin.settings),
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

    /// What a loop of gaps does between two readings, and on how much.
    pub(super) fn work(&self) -> Option<String> {
        let said = self.all.iter().filter_map(|one| {
            let size = one.settings.get("work size");
            let size = size.map_or_else(String::new, |size| format!(" of {size}"));
            Some(format!("{}{size}", one.settings.get("work")?))
        });
        let said = distinct(said);
        (!said.is_empty()).then_some(said)
    }

    /// The load that was made beside it, in the words that ask for it again where they are known.
    pub(super) fn load(&self) -> String {
        distinct(self.all.iter().map(|one| {
            let asked = one.settings.get("load").map(ToString::to_string);
            let made = || distinct(one.loads.iter().map(|load| load.load.clone()));
            let load = asked.unwrap_or_else(made);
            let others = one.settings.get("competitors");
            let others = others.filter(|count| **count != Setting::Count(0));
            let others = others.map(|count| format!("{count} competitors on each CPU"));
            let injected = one.injects.then(|| INJECTED.to_owned());
            match [load]
                .into_iter()
                .chain(others)
                .chain(injected)
                .filter(|of| !of.is_empty())
                .collect::<Vec<_>>()
            {
                none if none.is_empty() => "none".to_owned(),
                several => several.join(", "),
            }
        }))
    }

    /// The CPUs in the names that this series had where it was recorded, of a sum.
    pub(super) fn cpus_of(&self, series: &str) -> Vec<CpuId> {
        let shares = self.all.iter().flat_map(|one| one.shares);
        let names = shares.filter(|share| share.series == series).map(|share| &share.recorded_as);
        let cpus: BTreeSet<CpuId> = names.flat_map(|name| in_name(name)).collect();
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
        let places = clients.filter_map(|(_, setting)| match setting {
            Setting::Thread(placed) => Some(&placed.cpus),
            _ => None,
        });
        let cpus: BTreeSet<CpuId> = places.flatten().copied().collect();
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

/// The CPUs in the name of a series.
fn in_name(name: &str) -> Vec<CpuId> {
    let tails = name.split("-cpu").skip(1);
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
    fn cpus_are_read_out_of_names_of_series() {
        assert_eq!(in_name("gap-cpu1, gap-cpu12"), [CpuId(1), CpuId(12)]);
        assert_eq!(in_name("udp-rtt-other-core"), []);
    }
}
