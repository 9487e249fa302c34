//! What came of a configuration of the host, in tables and sentences that the terminal and the page
//! share.

use whylate_model::configuration::{AppliedConfiguration, KnobReading, NotHere};
use whylate_model::{CpuList, Printable};

use crate::svg::Table;

/// Columns of the table of knobs.
pub(crate) const KNOBS: [&str; 4] = ["knob", "before", "asked", "reads back"];
/// All of them are words.
pub(crate) const LEFT: [usize; 4] = [0, 1, 2, 3];
/// Heading of what the host does not offer.
pub(crate) const MISSING: &str = "Not to be had on this machine";
/// Columns of its table.
pub(crate) const REASONS: [&str; 2] = ["knob", "why"];
/// What was not asked for.
const ONLY_READ: &str = "(only read)";

/// How it is called, and how many of its knobs there were.
pub(crate) fn answer(of: &AppliedConfiguration) -> String {
    let name = Printable(&of.name);
    if of.knobs.is_empty() && of.missing.is_empty() {
        return format!("Configuration {name}: the machine as it was found.");
    }
    let changed = of.knobs.iter().filter(|knob| knob.was_changed()).count();
    let cpus = if of.cpus.is_empty() {
        String::new()
    } else {
        format!(" for the box on CPUs {}", CpuList(&of.cpus))
    };
    let missing = match of.missing.len() {
        0 => "none is missing".to_owned(),
        1 => "1 is not to be had here".to_owned(),
        many => format!("{many} are not to be had here"),
    };
    let knobs = of.knobs.len();
    let were = if changed == 1 { "was" } else { "were" };
    format!(
        "Configuration {name}{cpus}: {knobs} knobs read back, {changed} of which {were} changed; \
         {missing}."
    )
}

/// Rows of [`KNOBS`].
pub(crate) fn knobs(of: &AppliedConfiguration) -> Vec<Vec<String>> {
    let row = |knob: &KnobReading| {
        let asked = knob.asked.as_deref().unwrap_or(ONLY_READ);
        [knob.name.as_str(), &knob.before, asked, &knob.got]
            .map(|text| Printable(text).to_string())
            .to_vec()
    };
    of.knobs.iter().map(row).collect()
}

/// Rows of [`REASONS`].
pub(crate) fn missing(of: &AppliedConfiguration) -> Vec<Vec<String>> {
    let row = |one: &NotHere| {
        [one.knob.as_str(), &one.why].map(|text| Printable(text).to_string()).to_vec()
    };
    of.missing.iter().map(row).collect()
}

/// The tables of a page: what was set, and what is missing. Those without rows are left out.
#[must_use]
pub fn tables(of: &AppliedConfiguration) -> Vec<Table> {
    let mut set = Table::new(format!("Configuration {}", Printable(&of.name)), &KNOBS);
    (set.left, set.rows) = (LEFT.to_vec(), knobs(of));
    let mut not_here = Table::new(MISSING, &REASONS);
    (not_here.left, not_here.rows) = (vec![0, 1], missing(of));
    [set, not_here].into_iter().filter(|table| !table.rows.is_empty()).collect()
}
