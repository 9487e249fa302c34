//! What every check looks at, and what it says.

use whylate_model::doctor::{Evidence, Level, Remedy, Subject};
use whylate_model::host::{Fingerprint, Knob};
use whylate_model::{CpuId, CpuList, Printable};

use super::live::Live;
use super::processes::Process;
use super::view::{Look, Missing, Said, View, seen};
use crate::cpufreq::Policies;
use crate::last_run::Recall;
use crate::topology::Topology;

/// Most pieces of evidence that a symptom carries; a host has hundreds of CPUs.
const MAX_EVIDENCE: usize = 8;

/// One check.
pub(super) struct Check {
    /// Stable: runs and scripts refer to it.
    pub(super) name: &'static str,
    pub(super) subject: Subject,
    /// Why it matters to a measurement.
    pub(super) why: &'static str,
    pub(super) look: fn(&Exam<'_>) -> Outcome,
}

/// A host, read for the checks; pure given the tree below its root.
pub(super) struct Exam<'a> {
    pub(super) view: View,
    /// The CPUs that are to be measured; empty where they are not known.
    pub(super) cpus: Vec<CpuId>,
    pub(super) topology: Option<Topology>,
    pub(super) host: Fingerprint,
    pub(super) command_line: Option<String>,
    /// The kernel's configuration, and where it was found.
    pub(super) config: Option<(String, &'static str)>,
    pub(super) processes: Vec<Process>,
    /// Where the frequency settings lie.
    pub(super) policies: Policies,
    /// What only calls tell; none for a collected tree.
    pub(super) live: Option<&'a Live>,
    /// What was kept of the last recording; none for a collected tree.
    pub(super) last: Option<&'a Recall>,
}

/// What a check has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) level: Level,
    pub(super) finding: String,
    pub(super) remedy: Vec<Remedy>,
    pub(super) evidence: Vec<Evidence>,
    /// It holds in a guest whatever its host does.
    anywhere: bool,
}

impl Outcome {
    fn new(level: Level, finding: impl Into<String>) -> Self {
        let (remedy, evidence) = (Vec::new(), Vec::new());
        Self { level, finding: finding.into(), remedy, evidence, anywhere: false }
    }

    pub(super) fn fine(finding: impl Into<String>) -> Self {
        Self::new(Level::Fine, finding)
    }

    /// Fine in a guest whatever its host does.
    pub(super) fn fine_anywhere(finding: impl Into<String>) -> Self {
        Self { anywhere: true, ..Self::fine(finding) }
    }

    /// Is it fine by what the machine shows of itself?
    pub(super) fn is_about_the_machine(&self) -> bool {
        self.level == Level::Fine && !self.anywhere
    }

    /// What is fine in the guest, of which the host has another side.
    pub(super) fn known_of_the_guest_only(self, other_side: &str) -> Self {
        let finding =
            format!("not known on a virtual machine: {other_side}; in the guest {}", self.finding);
        Self { level: Level::Unknown, finding, ..self }
    }

    pub(super) fn unknown(finding: impl Into<String>) -> Self {
        Self::new(Level::Unknown, finding)
    }

    pub(super) fn note(finding: impl Into<String>) -> Self {
        Self::new(Level::Note, finding)
    }

    pub(super) fn spoils(finding: impl Into<String>) -> Self {
        Self::new(Level::Spoils, finding)
    }

    /// Nothing is known, because of this.
    pub(super) fn missing(what: &str, missing: &Missing) -> Self {
        let Evidence { source, said } = &missing.evidence;
        Self::unknown(format!("{what} is not known: {source} is {said}"))
            .seen(missing.evidence.clone())
    }

    pub(super) fn seen(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    pub(super) fn all_seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        let more = self.evidence.len().saturating_sub(MAX_EVIDENCE);
        if more > 0 {
            self.evidence.truncate(MAX_EVIDENCE);
            self.evidence.push(seen("more of the kind", &format!("{more} not shown")));
        }
        self
    }

    /// A line for a root shell. Names that come from the host go through [`quoted`].
    pub(super) fn run(mut self, line: impl Into<String>) -> Self {
        self.remedy.push(Remedy::Command(line.into()));
        self
    }

    pub(super) fn advise(mut self, line: impl Into<String>) -> Self {
        self.remedy.push(Remedy::Advice(line.into()));
        self
    }
}

impl Exam<'_> {
    /// The CPUs to be measured, in words.
    pub(super) fn measured(&self) -> String {
        let cpus = CpuList(&self.cpus);
        if self.cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
    }

    pub(super) fn is_measured(&self, cpu: CpuId) -> bool {
        self.cpus.contains(&cpu)
    }

    /// Those of a list that are to be measured.
    pub(super) fn measured_of(&self, list: &[CpuId]) -> Vec<CpuId> {
        list.iter().copied().filter(|cpu| self.is_measured(*cpu)).collect()
    }

    /// Those to be measured that a list lacks.
    pub(super) fn measured_beside(&self, list: &[CpuId]) -> Vec<CpuId> {
        self.cpus.iter().copied().filter(|cpu| !list.contains(cpu)).collect()
    }

    /// Online CPUs that are left for everything else.
    pub(super) fn elsewhere(&self) -> Vec<CpuId> {
        let online = self.topology.as_ref().map_or(&[][..], Topology::online);
        online.iter().copied().filter(|cpu| !self.is_measured(*cpu)).collect()
    }

    /// What the configuration says of an option: `y`, `m`, a value, or `n` where it is not set.
    /// `None` where there is no configuration to read.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let (config, _) = self.config.as_ref()?;
        let line = config.lines().find_map(|line| {
            let (option, value) = line.split_once('=')?;
            (option == name).then(|| value.trim())
        });
        Some(line.unwrap_or("n"))
    }

    /// Evidence for an option that is not built in.
    pub(super) fn not_built(&self, name: &str) -> Option<Evidence> {
        let (_, source) = self.config.as_ref()?;
        (self.option(name)? == "n").then(|| seen(source, &format!("{name} is not set")))
    }

    /// The value of a parameter of the kernel's command line: the last one wins, as in the kernel;
    /// `None` where it is not there, or the command line is not known.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let line = self.command_line.as_deref()?;
        // What follows `--` belongs to init.
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let values = words.filter_map(|word| match word.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if word == name => Some(""),
            _ => None,
        });
        values.last()
    }

    /// A knob of the fingerprint, where it is known.
    pub(super) fn knob(&self, name: &str) -> Option<&str> {
        match self.host.knobs.get(name) {
            Some(Knob::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// The release of the kernel as (major, minor).
    pub(super) fn release(&self) -> Option<(u32, u32)> {
        let mut parts = self.host.kernel.split('.');
        let major = parts.next()?.parse().ok()?;
        let digits = parts.next()?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        Some((major, digits[..end].parse().ok()?))
    }

    /// What to say where the CPUs to be measured are not known.
    pub(super) fn no_cpus(&self) -> Option<Outcome> {
        self.cpus.is_empty().then(|| {
            Outcome::unknown("which CPUs are to be measured is not known; name them with --cpus")
        })
    }
}

/// Findings about one thing after another: CPUs, interrupts, ports.
#[derive(Default)]
pub(super) struct Tally {
    /// What is wrong, a phrase each.
    pub(super) bad: Vec<String>,
    /// What was read.
    pub(super) evidence: Vec<Evidence>,
    /// What could not be.
    pub(super) missing: Vec<Evidence>,
}

impl Tally {
    /// Keeps the evidence and gives the value.
    pub(super) fn take<T>(&mut self, look: Look<T>) -> Option<T> {
        match look {
            Ok(Said { value, evidence }) => {
                self.evidence.push(evidence);
                Some(value)
            }
            Err(missing) => {
                self.missing.push(missing.evidence);
                None
            }
        }
    }

    /// What is wrong first; else what could not be read, unless nothing was missing.
    pub(super) fn conclude(
        self,
        what: &str,
        fine: impl Into<String>,
        bad: impl FnOnce(&[String]) -> Outcome,
    ) -> Outcome {
        if !self.bad.is_empty() {
            return bad(&self.bad).all_seen(self.evidence).all_seen(self.missing);
        }
        if let Some(first) = self.missing.first() {
            let others = match self.missing.len() {
                1 => String::new(),
                all => format!(", and {} more like it", all - 1),
            };
            let why = format!("{what} is not known: {} is {}{others}", first.source, first.said);
            return Outcome::unknown(why).all_seen(self.missing).all_seen(self.evidence);
        }
        Outcome::fine(fine).all_seen(self.evidence)
    }
}

/// A name as one word of a shell: a port or a cgroup of a foreign tree can be called anything, and
/// the line is there to be pasted.
pub(super) fn quoted(name: &str) -> String {
    let name = Printable(name).to_string();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-:@%+=".contains(&b);
    if !name.is_empty() && name.bytes().all(plain) {
        name
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

/// At most `most` phrases in one.
pub(super) fn listed(phrases: &[String], most: usize) -> String {
    let shown = phrases.iter().take(most).map(String::as_str).collect::<Vec<_>>().join("; ");
    match phrases.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_word_of_a_shell() {
        assert_eq!(quoted("/sys/class/net/eth0.5"), "/sys/class/net/eth0.5");
        assert_eq!(quoted("eth0;reboot"), "'eth0;reboot'");
        assert_eq!(quoted("a'$(b)"), "'a'\\''$(b)'");
        assert_eq!(quoted("a\nb"), "'a\\nb'");
        assert_eq!(quoted(""), "''");
    }
}
