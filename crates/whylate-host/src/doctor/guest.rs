//! What a guest cannot know of the machine below it.
//!
//! A hypervisor shows its guest a machine: cores, a processor, memory, ports. What is fine about
//! those says nothing of the host's, so on a virtual machine it is unknown. What is found bad in
//! the guest stays found, and what the guest's own kernel does with its CPUs it knows as well as
//! any: that the host takes time from them is told by `hypervisor` and `steal`.

use super::exam::{Exam, Outcome};

/// Checks of which the guest sees its own side only, and what lies on the other.
const HIDDEN: [(&str, &str); 16] = [
    ("smt-siblings", "a virtual CPU may be one thread of a core that others use, too"),
    ("governor", "how fast its CPUs run is for the hypervisor to say"),
    ("turbo", "how fast its CPUs run is for the hypervisor to say"),
    ("idle-states", "a CPU that halts goes to the hypervisor, which puts it to sleep as it likes"),
    (
        "transparent-hugepages",
        "the hypervisor may join, split and move the pages below this memory",
    ),
    ("same-page-merging", "the hypervisor may merge this memory with that of other guests"),
    ("numa-balancing", "the hypervisor may move this memory between its nodes"),
    ("swap", "the hypervisor may write this memory out"),
    ("nmi-watchdog", "the hypervisor's own interrupts the CPUs below"),
    ("mitigations", "which processor there is, is what the hypervisor says"),
    ("microcode", "the revision is what the hypervisor says, often one that no processor has"),
    ("nic-node", "the nodes are those that the hypervisor shows"),
    ("nic-pcie-width", "the hypervisor's adapter and its slot are not shown"),
    ("pcie-power", "the hypervisor's adapter and its slot are not shown"),
    ("nic-coalescing", "the hypervisor's port behind this one is not shown"),
    ("nic-offloads", "the hypervisor's port behind this one is not shown"),
];

/// What a check found, as far as it holds on this machine.
pub(super) fn as_far_as_known(exam: &Exam<'_>, check: &str, outcome: Outcome) -> Outcome {
    if exam.host.hypervisor.is_none() || !outcome.is_about_the_machine() {
        return outcome;
    }
    match hidden(check) {
        Some(other_side) => outcome.known_of_the_guest_only(other_side),
        None => outcome,
    }
}

pub(super) fn hidden(check: &str) -> Option<&'static str> {
    HIDDEN.iter().find(|(name, _)| *name == check).map(|(_, other_side)| *other_side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks;

    #[test]
    fn each_is_a_check() {
        for (name, _) in HIDDEN {
            assert!(checks().any(|check| check == name), "{name}");
        }
    }
}
