//! Configurations of the operating system under which a box is measured, and what stands in its place.
//!
//! What cannot be had on this host is refused by name before anything is measured, and the others are
//! measured all the same: what is missing is a note. Each is put in force when the box runs, read back, and
//! taken back when it has been measured.

use std::collections::BTreeMap;

use whylate_host::configuration::{
    Applied, AppliedConfiguration, Configuration, Plan, Subject, apply,
};
use whylate_host::journal::Journal;
use whylate_model::configuration::KnobReading;
use whylate_model::{CpuId, Pid};

use super::outcome::DeviceError;
use super::plan::Slot;
use super::question::Question;
use crate::RecordError;

/// Those of the configurations asked for that this host can have, and why it cannot have the others.
pub(super) fn possible(
    question: &Question,
) -> Result<(Vec<Configuration>, Vec<String>), DeviceError> {
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for configuration in &question.configurations {
        match Plan::of(configuration, &subject(question, Slot::Boxed(0), None)) {
            Ok(_) => possible.push(configuration.clone()),
            Err(error) => refused.push(error.to_string()),
        }
    }
    if possible.is_empty() && !refused.is_empty() {
        return Err(DeviceError::Refused(refused.join("; ")));
    }
    Ok((possible, refused))
}

/// Puts the configuration of this slot in force for what stands there; none where none was asked for.
pub(super) fn in_force(
    question: &Question,
    slot: Slot,
    pid: Option<Pid>,
    journal: &Journal,
) -> Result<Option<Applied>, RecordError> {
    let Some(configuration) = question.configurations.get(slot.configuration()) else {
        return Ok(None);
    };
    Ok(Some(apply(configuration, &subject(question, slot, pid), journal)?))
}

/// What a configuration is of. The bare link and the delay line stand on the box's CPU, each between
/// interfaces of its own.
fn subject(question: &Question, slot: Slot, pid: Option<Pid>) -> Subject {
    let interfaces: Vec<String> = match slot {
        Slot::Boxed(_) => question.interfaces.iter().flatten().cloned().collect(),
        Slot::Link(_) => question.loopback.iter().flatten().cloned().collect(),
        Slot::Line(_) => {
            let line = question.line.iter();
            line.flat_map(|of| of.client.iter().chain(&of.ports)).cloned().collect()
        }
    };
    Subject {
        pids: pid.into_iter().collect(),
        cpus: question.box_cpu.into_iter().collect(),
        interfaces,
        clients: vec![question.client_cpu],
    }
}

/// Where the client may run: on no CPU of the box, which may have them for itself, unless these are all there are.
pub(super) fn beside(allowed: &[CpuId], of_box: &[CpuId]) -> Vec<CpuId> {
    let left: Vec<CpuId> = allowed.iter().filter(|cpu| !of_box.contains(cpu)).copied().collect();
    if left.is_empty() { allowed.to_vec() } else { left }
}

/// What a configuration read back as, once for each of them.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    facts: Vec<AppliedConfiguration>,
    /// Those whose knobs were changed by others while they were in force.
    changed: Vec<String>,
    /// How many measurements are in no number for that, by what they were of.
    left_out: BTreeMap<String, u32>,
}

impl ReadBack {
    /// Takes what is in force now, before it is taken back. Did somebody else change it meanwhile?
    pub(super) fn take(&mut self, slot: Slot, applied: &Applied) -> bool {
        self.read(slot, applied.facts(), &applied.changed_since())
    }

    /// What is told of a configuration is of the box.
    fn read(&mut self, slot: Slot, facts: &AppliedConfiguration, changed: &[KnobReading]) -> bool {
        let is_box = matches!(slot, Slot::Boxed(_));
        if is_box && !self.facts.iter().any(|known| known.name == facts.name) {
            self.facts.push(facts.clone());
        }
        for knob in changed {
            let what = format!(
                "{}: {} was set from {} to {} by somebody else meanwhile",
                facts.name, knob.name, knob.before, knob.got
            );
            if !self.changed.contains(&what) {
                self.changed.push(what);
            }
        }
        !changed.is_empty()
    }

    /// A measurement of this was made while a configuration was changed: it is in no number.
    pub(super) fn leave_out(&mut self, what: String) {
        *self.left_out.entry(what).or_insert(0) += 1;
    }

    /// What was changed by others, and what is left out for it.
    pub(super) fn notes(&self) -> Vec<String> {
        let left_out = |(what, times): (&String, &u32)| {
            format!(
                "{times} of the measurements of {what} left out: its configuration was changed meanwhile"
            )
        };
        self.changed.iter().cloned().chain(self.left_out.iter().map(left_out)).collect()
    }

    /// In the order in which they were asked for.
    pub(super) fn told(mut self, question: &Question) -> Vec<AppliedConfiguration> {
        let place = |of: &AppliedConfiguration| {
            question.configurations.iter().position(|one| one.name() == of.name)
        };
        self.facts.sort_by_key(place);
        self.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_runs_where_the_box_does_not_unless_there_is_nothing_else() {
        let [first, second, third] = [0, 1, 2].map(CpuId);
        assert_eq!(beside(&[first, second, third], &[first]), [second, third]);
        assert_eq!(beside(&[first, second], &[]), [first, second]);
        assert_eq!(beside(&[first], &[first, second]), [first]);
    }

    #[test]
    fn what_was_measured_while_somebody_changed_a_knob_is_counted_as_left_out_and_both_are_told() {
        let facts = AppliedConfiguration {
            name: "local".to_owned(),
            cpus: Vec::new(),
            knobs: Vec::new(),
            missing: Vec::new(),
        };
        let knob = KnobReading {
            name: "cpu1.governor".to_owned(),
            before: "performance".to_owned(),
            asked: None,
            got: "powersave".to_owned(),
        };
        let mut read_back = ReadBack::default();
        assert!(!read_back.read(Slot::Boxed(0), &facts, &[]));
        assert!(read_back.notes().is_empty());
        for _ in 0..2 {
            assert!(read_back.read(Slot::Line(0), &facts, std::slice::from_ref(&knob)));
            read_back.leave_out("delay line local with 128 bytes".to_owned());
        }
        let notes = read_back.notes();
        let [changed, left_out] = &notes[..] else { panic!("{notes:?}") };
        assert!(
            changed.contains("cpu1.governor was set from performance to powersave"),
            "{changed}"
        );
        assert!(left_out.starts_with("2 of the measurements of delay line local"), "{left_out}");
    }
}
