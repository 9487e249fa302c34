//! Configurations of a host under which a box is measured: their words, their order over runs, and
//! what came of each.
//!
//! A configuration is a list of steps, each on top of those before it: `local+isolset+power`. Here
//! are words and records; the host is changed, and read back, by `whylate_host::configuration`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use whylate_stats::rng::Rng;

use crate::units::CpuId;

/// Most configurations of one list: each multiplies the length of an experiment.
const MOST_CONFIGURATIONS: usize = 32;

/// One step of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// Nothing is changed: the machine as it was found.
    Unchanged,
    /// The box runs on, and takes its memory from, the memory node of its interfaces.
    Local,
    /// The box runs on, and takes its memory from, another node than that of its interfaces.
    Remote,
    /// The box has its CPUs alone: an exclusive cpuset, other tasks, interrupts and unbound kernel
    /// work elsewhere, and the lowest niceness.
    Isolset,
    /// Nothing saves power on the box's CPUs at the cost of time: idle states, frequency, turbo,
    /// power management of PCI Express.
    Power,
    /// What is left of the paper's list against jitter: NUMA balancing, huge pages made behind the
    /// back, the watchdog's interrupts, interrupts that a card holds back.
    Quiet,
}

impl Element {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 6] =
        [Self::Unchanged, Self::Local, Self::Remote, Self::Isolset, Self::Power, Self::Quiet];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Isolset => "isolset",
            Self::Power => "power",
            Self::Quiet => "quiet",
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Words that are no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no configuration: {why}")]
pub struct NoConfiguration {
    /// As given.
    pub text: String,
    /// What is wrong with it, and what to write.
    pub why: String,
}

/// A configuration: steps, each on top of those before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Configuration {
    name: String,
    elements: Vec<Element>,
}

impl Configuration {
    /// The paper's four, in its order.
    pub const OF_THE_PAPER: &str = "local,remote,local+isolset,local+isolset+power";

    /// Its steps as they are written: `local+isolset`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its steps, in the order in which they are made.
    #[must_use]
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Is this one of its steps?
    #[must_use]
    pub fn has(&self, element: Element) -> bool {
        self.elements.contains(&element)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl FromStr for Configuration {
    type Err = NoConfiguration;

    fn from_str(text: &str) -> Result<Self, NoConfiguration> {
        let refused = |why: String| NoConfiguration { text: text.to_owned(), why };
        let mut elements = Vec::new();
        for word in text.split('+') {
            let word = word.trim();
            let Some(element) = Element::ALL.into_iter().find(|one| one.word() == word) else {
                let all = Element::ALL.map(Element::word).join(", ");
                let why = format!("`{word}` is none of {all}; put a + between steps");
                return Err(refused(why));
            };
            if elements.contains(&element) {
                return Err(refused(format!("`{word}` is there twice; write each step once")));
            }
            elements.push(element);
        }
        if elements.contains(&Element::Local) && elements.contains(&Element::Remote) {
            return Err(refused("a box is either local or remote; choose one".to_owned()));
        }
        if elements.contains(&Element::Unchanged) && elements.len() > 1 {
            return Err(refused("unchanged stands alone; leave it out".to_owned()));
        }
        let name = elements.iter().map(|one| one.word()).collect::<Vec<_>>().join("+");
        Ok(Self { name, elements })
    }
}

/// Several configurations, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configurations(pub Vec<Configuration>);

impl Configurations {
    /// The paper's four, in its order.
    ///
    /// # Panics
    ///
    /// Never: the words are those of this file.
    #[must_use]
    pub fn of_the_paper() -> Self {
        Configuration::OF_THE_PAPER.parse().expect("invariant: the words are those of this file")
    }
}

impl fmt::Display for Configurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(Configuration::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Configurations {
    type Err = NoConfiguration;

    /// Configurations with commas between them: `local,local+isolset`.
    fn from_str(text: &str) -> Result<Self, NoConfiguration> {
        let mut list: Vec<Configuration> = Vec::new();
        for word in text.split(',') {
            let one: Configuration = word.trim().parse()?;
            let same = |other: &Configuration| {
                let alike = |element: &Element| other.has(*element);
                other.elements.len() == one.elements.len() && one.elements.iter().all(alike)
            };
            if let Some(other) = list.iter().find(|other| same(other)) {
                let why = format!("{other} is there already; write each configuration once");
                return Err(NoConfiguration { text: text.to_owned(), why });
            }
            list.push(one);
        }
        if list.len() > MOST_CONFIGURATIONS {
            let why =
                format!("there are {} of them, the most is {MOST_CONFIGURATIONS}", list.len());
            return Err(NoConfiguration { text: text.to_owned(), why });
        }
        Ok(Self(list))
    }
}

/// The order in which `configurations` are measured in `rounds`: one list of their indices per
/// round, each index once in it, drawn anew for each round. What the machine does in the course of an
/// experiment then meets all of them alike. The same seed gives the same order.
#[must_use]
pub fn interleaved(configurations: usize, rounds: u32, seed: u64) -> Vec<Vec<usize>> {
    let drawn = |round: u32| {
        let mut order: Vec<usize> = (0..configurations).collect();
        Rng::stream(seed, u64::from(round)).shuffle(&mut order);
        order
    };
    (0..rounds).map(drawn).collect()
}

/// What came of a configuration in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppliedConfiguration {
    /// Its steps: `local+isolset`.
    pub name: String,
    /// The CPUs of the box.
    pub cpus: Vec<CpuId>,
    /// Knobs in the order in which they were set, as they read back.
    pub knobs: Vec<KnobReading>,
    /// Knobs that this machine does not offer.
    pub missing: Vec<NotHere>,
}

/// One knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobReading {
    /// Its name, the same on every host that has it: `cpu1.governor`.
    pub name: String,
    /// What it said before.
    pub before: String,
    /// What was asked of it; none where it was only read.
    pub asked: Option<String>,
    /// What it said afterwards.
    pub got: String,
}

impl KnobReading {
    /// Did it say something else before?
    #[must_use]
    pub fn was_changed(&self) -> bool {
        self.before != self.got
    }
}

/// A knob that a host does not offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotHere {
    /// Its name.
    pub knob: String,
    /// Why not.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_papers_four_are_words_and_come_out_as_they_went_in() {
        let four = Configurations::of_the_paper();
        assert_eq!(four.to_string(), Configuration::OF_THE_PAPER);
        let last = &four.0[3];
        assert_eq!(last.name(), "local+isolset+power");
        assert_eq!(last.elements(), [Element::Local, Element::Isolset, Element::Power]);
        assert!(last.has(Element::Power) && !last.has(Element::Remote));
        let spaced: Configurations = " local , local + isolset ".parse().unwrap();
        assert_eq!(spaced.to_string(), "local,local+isolset");
    }

    #[test]
    fn words_that_are_no_configuration_are_refused_with_what_to_write() {
        for (text, why) in [
            ("", "none of unchanged, local, remote"),
            ("local+", "put a + between steps"),
            ("Local", "none of"),
            ("local+local", "twice"),
            ("local+remote", "either local or remote"),
            ("unchanged+power", "stands alone"),
            ("local,,power", "none of"),
            ("local+power,power+local", "is there already"),
        ] {
            let refusal = text.parse::<Configurations>().unwrap_err().to_string();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_record_comes_out_as_it_went_in() {
        let applied = AppliedConfiguration {
            name: "local+power".to_owned(),
            cpus: vec![CpuId(1)],
            knobs: vec![KnobReading {
                name: "turbo".to_owned(),
                before: "0".to_owned(),
                asked: Some("1".to_owned()),
                got: "1".to_owned(),
            }],
            missing: vec![NotHere { knob: "aspm".to_owned(), why: "absent".to_owned() }],
        };
        let text = serde_json::to_string(&applied).unwrap();
        assert_eq!(serde_json::from_str::<AppliedConfiguration>(&text).unwrap(), applied);
        assert!(applied.knobs[0].was_changed());
    }

    #[test]
    fn rounds_are_drawn_each_for_itself_and_by_the_seed_alone() {
        let order = interleaved(4, 50, 7);
        assert_eq!(order, interleaved(4, 50, 7));
        assert_ne!(order, interleaved(4, 50, 8));
        let first: Vec<usize> = order.iter().map(|round| round[0]).collect();
        assert!((0..4).all(|one| first.contains(&one)), "{first:?}");
        assert!(interleaved(0, 2, 1).iter().all(Vec::is_empty));
        assert!(interleaved(3, 0, 1).is_empty());
    }

    proptest! {
        #[test]
        fn every_configuration_is_once_in_every_round(
            configurations in 0_usize..20, rounds in 0_u32..20, seed: u64,
        ) {
            let order = interleaved(configurations, rounds, seed);
            prop_assert_eq!(order.len(), rounds as usize);
            for mut round in order {
                round.sort_unstable();
                prop_assert_eq!(round, (0..configurations).collect::<Vec<_>>());
            }
        }

        #[test]
        fn any_text_is_configurations_or_a_refusal(text in "[a-z+, ]{0,60}") {
            if let Ok(list) = text.parse::<Configurations>() {
                prop_assert_eq!(list.to_string().parse::<Configurations>(), Ok(list));
            }
        }
    }
}
