//! What is told of a box when everything has been measured.

use whylate_clock::facts::RecordingCost;
use whylate_clock::{Counter, HardwareCounter};
use whylate_model::device::Device;
use whylate_model::flow::Direction;
use whylate_model::run::{Run, RunState};
use whylate_model::series::summary::Identity;
use whylate_model::series::{Definition, Series};
use whylate_model::settings::{Setting, Settings};
use whylate_model::warning::Warning;
use whylate_net::lab;
use whylate_net::schedule::Rate;

use super::super::judge::{Cell, Naming, Place};
use super::super::outcome::DeviceError;
use super::super::place::{LINE_LAW, Places};
use super::super::plan::Slot;
use super::super::question::{LineBetween, Question};
use super::super::the_box::TheBox;
use super::super::words;
use super::{Recording, series_name};
use crate::verdict::{judged, unique};
use crate::{RecordError, Recorded};

impl Recording<'_> {
    fn series(&self, resolution_ns: f64) -> Vec<Series> {
        let boxed = self.ledger.cells.iter().filter(|(of, _)| matches!(of.slot, Slot::Boxed(_)));
        let one = |(place, cell): (&Place, &Cell)| {
            let way = if place.back { Direction::Back } else { Direction::There };
            let (name, way) = (self.name(place.slot), way.name());
            let (from, to) = cell.ends();
            let identity = Identity {
                name: series_name(self.question, *place),
                label: format!("through {name}, {} B {way}", place.frame_bytes),
                paper_row: None,
                from: from.to_owned(),
                to: to.to_owned(),
                clock: HardwareCounter::KIND.to_owned(),
                definition: Definition::OneWay,
                resolution_ns,
                lost: cell.lost(),
            };
            let values = cell.sample.values();
            let n_eff = |percent: f64| {
                values.value_at(percent).map_or(0.0, |value| cell.sample.effective_n(value))
            };
            Series::summarise(identity, values, n_eff, None)
        };
        boxed.map(one).collect()
    }

    /// Stores the run.
    pub(super) fn conclude(mut self) -> Result<Recorded, RecordError> {
        if self.ledger.cells.is_empty() {
            let changed = self.read_back.notes().join("; ");
            let what = self.question.the_box.to_string();
            return Err(RecordError::Device(if changed.is_empty() {
                DeviceError::Stopped
            } else {
                DeviceError::NotMeasured { what, why: changed }
            }));
        }
        let state = if self.is_stopped() { RunState::Stopped } else { RunState::Complete };
        let clock = self.bench.final_clock_facts(RecordingCost::default());
        let series = self.series(clock.resolution_ns);
        self.judge();
        self.storage.close();
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(clock.wall_clock_stepped());
        if state == RunState::Stopped {
            warnings.push(Warning::Interrupted);
        }
        let warnings = unique(warnings);
        let question = self.question;
        let asked = format!("What does {} add to the time of frames?", question.the_box);
        let asked = (&question.command_line[..], &*asked, question.seed);
        let beginning = self.bench.beginning(asked, state, clock);
        let run = Run {
            settings: settings(self.question),
            evidence: self.bench.evidence(),
            series,
            warnings,
            segments: self.storage.segments(),
            device: Some(Box::new(self.device)),
            ..Run::begun(beginning)
        };
        let mut run = judged(run, None);
        self.storage.conclude(&mut run);
        Ok(Recorded { run })
    }

    /// From what was measured to what is told.
    fn judge(&mut self) {
        let question = self.question;
        let configurations: Vec<String> =
            question.configurations.iter().map(|of| of.name().to_owned()).collect();
        let logged_by = logged_by(&question.the_box);
        let naming = Naming {
            configurations: &configurations,
            asked_pps: &|bytes| question.rate.per_second(bytes),
            series: &|place| series_name(question, place),
            missing: &self.places.missing,
            logged_by,
            link_bps: link_bps(question),
            seed: question.seed,
        };
        self.device.sizes = self.ledger.sizes(naming);
        if self.device.sizes.iter().any(|at| at.lost > 0) {
            let note = "frames were lost, nobody knows how late: beyond the share that came there is no \
                        upper bound";
            self.device.notes.push(note.to_owned());
        }
        let by = question.the_box.like();
        let line = match &question.line {
            None => format!("through the delay line ({by}, {LINE_LAW})"),
            Some(LineBetween { client: [near, far], ports: [a, b] }) => format!(
                "through the delay line ({by}, {LINE_LAW}) between {a} and {b}, from {near} to {far}"
            ),
        };
        let least = match (&question.loopback, &question.the_box) {
            (Some([a, b]), _) => format!("over a cable between {a} and {b}"),
            (None, TheBox::Between) => "was not measured".to_owned(),
            (None, _) => "back to back".to_owned(),
        };
        let under = if question.configurations.is_empty() {
            ""
        } else {
            "; both under each configuration, which has bounds of its own"
        };
        let least = format!("{least}{under}");
        self.device.error = self.ledger.source(&line, &least);
        self.device.forwarding = self.ledger.forwarding(naming);
        self.device.bought = self.ledger.bought(naming);
        let read_back = std::mem::take(&mut self.read_back);
        self.device.notes.extend(read_back.notes());
        self.device.configurations = read_back.told(question);
        self.device.doubts = std::mem::take(&mut self.doubts);
    }
}

/// Settings as used.
fn settings(question: &Question) -> Settings {
    let (rate, per_second) = match question.rate {
        Rate::Bits(bits, layer) => (format!("bits at {layer:?} in each direction"), bits),
        // Of these it is the same whatever the size of a frame.
        rate @ (Rate::Packets(_) | Rate::Every(_)) => {
            ("rate in each direction".to_owned(), rate.per_second(0))
        }
    };
    let mut settings = Settings::from([
        ("box".to_owned(), question.the_box.to_string().into()),
        ("client".to_owned(), vec![question.client_cpu].into()),
        ("client by".to_owned(), words::backend(question).into()),
        (rate, Setting::RatePerS(per_second)),
        ("rounds".to_owned(), question.rounds.into()),
        ("each measurement".to_owned(), question.duration.into()),
        ("warm-up".to_owned(), question.warmup.into()),
        ("quick".to_owned(), question.quick.into()),
    ]);
    if let Some(cpu) = question.box_cpu {
        settings.insert("box runs on".to_owned(), vec![cpu].into());
    }
    settings
}

/// What a report of nothing yet says of the box.
pub(super) fn described(question: &Question, places: &Places<'_>) -> Device {
    Device {
        name: question.the_box.to_string(),
        description: description(question, places),
        backend: words::backend(question),
        error: None,
        sizes: Vec::new(),
        forwarding: Vec::new(),
        throughput: Vec::new(),
        configurations: Vec::new(),
        bought: Vec::new(),
        order: Vec::new(),
        fan_in: Vec::new(),
        captures: None,
        notes: Vec::new(),
        doubts: Vec::new(),
    }
}

/// What really carries the frames.
fn description(question: &Question, places: &Places<'_>) -> String {
    match &question.the_box {
        TheBox::Forward(transport) => {
            format!("whylate forward by {transport}, between virtual links")
        }
        TheBox::Delay(law) => format!("whylate delay by packet with {law}, between virtual links"),
        TheBox::Testpmd(_) => "DPDK's testpmd in mode io, between virtual links".to_owned(),
        TheBox::Between => match &question.interfaces {
            Some([a, b]) => format!("what lies between {a} and {b}"),
            None => "what lies between two interfaces".to_owned(),
        },
        TheBox::Bridge | TheBox::Ovs => {
            let status = places.bed_name().and_then(lab::of);
            let datapath = status.and_then(|of| of.notes).map(|notes| notes.datapath);
            datapath.unwrap_or_else(|| question.the_box.to_string())
        }
    }
}

fn logged_by(the_box: &TheBox) -> &'static str {
    match the_box {
        TheBox::Forward(_) => {
            "whylate forward: from when a frame was seen in one ring to when it was handed over to the other, of \
             the intervals of its log that lie within the time in which the client measured"
        }
        TheBox::Delay(_) => "whylate delay: arrival to departure of the frames that were measured",
        _ => "the box",
    }
}

/// Bits a second of a real link, as its driver tells: asked of the interface of this network namespace, and
/// none of what is memory.
fn link_bps(question: &Question) -> Option<f64> {
    let [first, _] = question.interfaces.as_ref()?;
    whylate_sys::ethtool::link_bps(first)
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::settings::unfit;
    use whylate_net::schedule::Layer;

    use super::*;
    use crate::device::question::tests::question;

    #[test]
    fn settings_of_a_box_are_values_and_words_only_where_nothing_else_says_them() {
        let mut question = question(TheBox::Bridge, ["a", "b", "c", "d"]);
        let told = settings(&question);
        assert_eq!(unfit(&told), [""; 0]);
        assert_eq!(told["rate in each direction"], Setting::RatePerS(1e3));
        assert_eq!(told["box runs on"], vec![CpuId(0)].into());
        assert_eq!((&told["quick"], &told["client by"]), (&false.into(), &"packet spin".into()));
        question.rate = Rate::Bits(1e9, Layer::L1);
        assert_eq!(settings(&question)["bits at L1 in each direction"], Setting::RatePerS(1e9));
    }
}
