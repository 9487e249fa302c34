//! The way from a port into the machine: its PCIe link.

use std::collections::BTreeMap;

use whylate_model::Printable;

use super::exam::{Exam, Outcome, Tally, listed};
use super::network::{ports, speed};
use super::view::{Look, Missing, Said, View, seen};

/// A link: transfers per second and lane, in units of 100 million, and lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    deci_gigatransfers: u64,
    lanes: u64,
}

impl Link {
    /// What the line code leaves of the raw rate, in Mb/s: 8b/10b up to 5 GT/s, 128b/130b up to
    /// 32 GT/s, 242 of 256 bytes of a flit from 64 GT/s on (PCI Express Base Specification 6.0).
    /// Packet headers take some more, so that a port of this very speed does not fit.
    fn megabits(self) -> u64 {
        let raw = self.deci_gigatransfers * 100 * self.lanes;
        match self.deci_gigatransfers {
            ..=50 => raw * 8 / 10,
            51..=320 => raw * 128 / 130,
            _ => raw * 242 / 256,
        }
    }

    pub(super) fn words(self) -> String {
        let (whole, tenth) = (self.deci_gigatransfers / 10, self.deci_gigatransfers % 10);
        format!("{whole}.{tenth} GT/s x{}", self.lanes)
    }
}

/// `8.0 GT/s PCIe` (the last word since Linux 5.8), in tenths.
fn transfers(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    (unit == "GT/s").then_some(())?;
    match number {
        "2.5" => Some(25),
        "5" | "5.0" => Some(50),
        "8" | "8.0" => Some(80),
        "16" | "16.0" => Some(160),
        "32" | "32.0" => Some(320),
        "64" | "64.0" => Some(640),
        _ => None,
    }
}

/// The widths there are.
fn lanes(text: &str) -> Option<u64> {
    text.parse().ok().filter(|lanes| [1, 2, 4, 8, 12, 16, 32].contains(lanes))
}

/// The link of a port as it is now (`current`) or could be (`max`).
pub(super) fn link(view: &View, port: &str, which: &str) -> Look<Link> {
    let device = format!("/sys/class/net/{port}/device");
    let speed = view.look(&format!("{device}/{which}_link_speed"), transfers)?;
    let width = view.look(&format!("{device}/{which}_link_width"), lanes)?;
    let link = Link { deci_gigatransfers: speed.value, lanes: width.value };
    let source = format!("{device}/{which}_link_speed, ..._width");
    Ok(Said { value: link, evidence: seen(&source, &link.words()) })
}

/// The adapter of a port: its place on the bus without the function, since the ports of one
/// adapter are functions of one device and share its link.
fn adapter(view: &View, port: &str) -> Option<String> {
    let uevent = view.text(&format!("/sys/class/net/{port}/device/uevent")).ok()?.value;
    let place = uevent.lines().find_map(|line| line.trim().strip_prefix("PCI_SLOT_NAME="))?;
    let (device, _function) = place.rsplit_once('.')?;
    Some(Printable(device).to_string())
}

/// A virtual function has no link of its own; its traffic is that of the port it is part of.
fn is_virtual_function(view: &View, port: &str) -> bool {
    view.exists(&format!("/sys/class/net/{port}/device/physfn"))
}

/// A device of another bus, such as virtio, has no link that this kernel sees.
fn no_link(port: &str, missing: Missing) -> Missing {
    if !missing.absent {
        return missing;
    }
    let said = "absent: this kernel sees no PCIe link of it, as behind virtio or USB";
    Missing { absent: true, evidence: seen(&format!("link of {port}"), said) }
}

/// Ports of one adapter and the link they share.
struct Shared {
    link: Link,
    ports: Vec<(String, u64)>,
}

pub(super) fn width(exam: &Exam<'_>) -> Outcome {
    let view = &exam.view;
    let mut tally = Tally::default();
    let mut adapters: BTreeMap<String, Shared> = BTreeMap::new();
    let mut narrowed = Vec::new();
    let own = ports(view);
    for port in own.iter().filter(|port| !is_virtual_function(view, port)) {
        let now = link(view, port, "current").map_err(|missing| no_link(port, missing));
        let Some(now) = tally.take(now) else { continue };
        if let Ok(could) = link(view, port, "max")
            && could.value.megabits() > now.megabits()
        {
            narrowed.push(format!("{port} runs at {} of {}", now.words(), could.value.words()));
            tally.evidence.push(could.evidence);
        }
        // A port that is down has no speed, and brings no packets.
        if exam
            .view
            .text(&format!("/sys/class/net/{port}/operstate"))
            .is_ok_and(|s| s.value == "down")
        {
            continue;
        }
        let Some(mbits) = tally.take(speed(view, port)) else { continue };
        let place = adapter(view, port).unwrap_or_else(|| port.clone());
        let shared = adapters.entry(place).or_insert(Shared { link: now, ports: Vec::new() });
        shared.ports.push((port.clone(), mbits));
    }
    if own.is_empty() {
        return no_ports(exam);
    }
    let mut remedy = "move the adapter to a slot of more lanes or a newer generation";
    for shared in adapters.values() {
        let together: u64 = shared.ports.iter().map(|(_, mbits)| mbits).sum();
        if together > shared.link.megabits() {
            let names: Vec<&str> = shared.ports.iter().map(|(port, _)| port.as_str()).collect();
            tally.bad.push(format!(
                "{} together bring {} Gb/s through a link of {} ({} Gb/s)",
                names.join(", "),
                gigabits(together),
                shared.link.words(),
                gigabits(shared.link.megabits()),
            ));
        }
    }
    let too_narrow = !tally.bad.is_empty();
    if !too_narrow {
        tally.bad = narrowed;
        remedy = "lspci -vv shows LnkSta beside LnkCap: reseat the adapter, or choose another slot";
    }
    let fine = "every port's link is as fast as its adapter can, and faster than its ports";
    tally.conclude("whether links are faster than their ports", fine, |bad| {
        let told = listed(bad, 4);
        let outcome = if too_narrow { Outcome::spoils(told) } else { Outcome::note(told) };
        outcome.advise(remedy)
    })
}

/// Gigabits with one decimal.
fn gigabits(mbits: u64) -> String {
    format!("{}.{}", mbits / 1000, mbits % 1000 / 100)
}

fn no_ports(exam: &Exam<'_>) -> Outcome {
    let evidence = seen("/sys/class/net/*/device", "absent");
    if exam.view.names("/sys/class/net").is_empty() {
        Outcome::unknown("which ports there are is not known").seen(evidence)
    } else {
        Outcome::fine_anywhere("this machine has no port with a device").seen(evidence)
    }
}

pub(super) fn power(exam: &Exam<'_>) -> Outcome {
    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
    let off = "echo performance > /sys/module/pcie_aspm/parameters/policy";
    let for_good = "for good, boot with: pcie_aspm.policy=performance";
    // Documentation/ABI/testing/sysfs-bus-pci: 1 is enabled; the file is there where the link can.
    let mut asleep = Vec::new();
    let (mut evidence, mut states) = (Vec::new(), 0);
    for port in ports(&exam.view) {
        for state in ["l0s_aspm", "l1_aspm"] {
            let path = format!("/sys/class/net/{port}/device/link/{state}");
            let said = exam.view.look(&path, |text| match text {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            });
            let Ok(said) = said else { continue };
            states += 1;
            if said.value {
                asleep.push(format!("{port} ({})", state.trim_end_matches("_aspm")));
            }
            evidence.push(said.evidence);
        }
    }
    if !asleep.is_empty() {
        return Outcome::note(format!(
            "the link may sleep between packets: {}",
            listed(&asleep, 4)
        ))
        .all_seen(evidence)
        .run(off)
        .advise(for_good);
    }
    let policy = match exam.view.chosen(POLICY) {
        Ok(policy) => policy,
        Err(_) if states > 0 => {
            return Outcome::fine("no port's link sleeps").all_seen(evidence);
        }
        Err(missing) => return Outcome::missing("whether links sleep", &missing),
    };
    match policy.value.as_str() {
        "powersave" | "powersupersave" => {
            Outcome::note(format!("PCIe links sleep: policy {}", policy.value))
                .seen(policy.evidence)
                .run(off)
                .advise(for_good)
        }
        "performance" => {
            Outcome::fine("PCIe links do not sleep: policy performance").seen(policy.evidence)
        }
        _ if states > 0 => Outcome::fine("no port's link sleeps").all_seen(evidence),
        _ => Outcome::unknown(
            "whether links sleep is not known: the policy is the firmware's, and no port shows a \
             state",
        )
        .seen(policy.evidence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_generation_3_and_8_lanes_carries_63_gigabits() {
        let link = Link { deci_gigatransfers: 80, lanes: 8 };
        assert_eq!(gigabits(link.megabits()), "63.0");
        assert_eq!(link.words(), "8.0 GT/s x8");
        let first = Link { deci_gigatransfers: 25, lanes: 1 };
        assert_eq!(first.megabits(), 2000);
    }

    #[test]
    fn speeds_and_widths_that_do_not_exist_are_not_understood() {
        assert_eq!(transfers("8.0 GT/s PCIe"), Some(80));
        assert_eq!(transfers("2.5 GT/s"), Some(25));
        for nonsense in ["", "Unknown", "9.9 GT/s PCIe", "8.0", "-8.0 GT/s"] {
            assert_eq!(transfers(nonsense), None, "{nonsense}");
        }
        for nonsense in ["0", "x999", "999", "255", "-1"] {
            assert_eq!(lanes(nonsense), None, "{nonsense}");
        }
    }
}
