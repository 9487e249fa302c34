//! What differs between two runs beside their numbers: the host, the tool, the settings.

use std::collections::BTreeSet;

use whylate_model::Printable;
use whylate_model::difference::{Difference, HOST_NAME, UNKNOWN};
use whylate_model::origin::Origin;
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use super::load::Loaded;

/// Settings that say where, not how: they differ from run to run and explain nothing. Load is told
/// by what was made.
const PASSED_OVER: [&str; 2] = ["seed", "load"];

/// What the version of the tool and the load beside a run are called, and how the name of a setting begins.
const TOOL: &str = "whylate";
const LOAD: &str = "load beside it";
const SETTING: &str = "setting ";

/// Name, and whether it was so in each of its recordings, where that is known.
type InForce = (&'static str, fn(&Run) -> BTreeSet<Option<bool>>);

/// What was in force, whatever was asked for.
const IN_FORCE: [InForce; 4] = [
    ("kernel trace", |run| each(run, |run| run.evidence.trace.is_some(), |of| of.traced)),
    // A sum has it where each of its recordings had it.
    ("rseq word", |run| [Some(run.evidence.rseq)].into()),
    ("idle states held", |run| without(run, |of| matches!(of, Warning::IdleStatesNotHeld { .. }))),
    ("memory locked", |run| without(run, |of| matches!(of, Warning::MemoryNotLocked { .. }))),
];

/// Of a recording what it says itself, of a sum what is known of each of its recordings.
fn each(
    run: &Run,
    of_run: impl Fn(&Run) -> bool,
    of_origin: impl Fn(&Origin) -> Option<bool>,
) -> BTreeSet<Option<bool>> {
    if run.is_merged() {
        return run.origins.iter().map(of_origin).collect();
    }
    [Some(of_run(run))].into()
}

/// What a warning would tell that it was not so.
fn without(run: &Run, is: fn(&Warning) -> bool) -> BTreeSet<Option<bool>> {
    let none = |warnings: &[Warning]| !warnings.iter().any(is);
    each(run, |run| none(&run.warnings), |of| Some(none(&of.warnings)))
}

/// In a word; none where one of the recordings does not say.
fn in_a_word(of: &BTreeSet<Option<bool>>) -> Option<&'static str> {
    match (of.contains(&None), of.contains(&Some(true)), of.contains(&Some(false))) {
        (true, ..) => None,
        (_, true, true) => Some("in some recordings"),
        (_, true, _) => Some("yes"),
        _ => Some("no"),
    }
}

/// Between the first run of A and the first of B.
pub(super) fn between(a: &[Loaded], b: &[Loaded]) -> Vec<Difference> {
    match (a.first(), b.first()) {
        (Some(a), Some(b)) => of(&a.run, &b.run),
        _ => Vec::new(),
    }
}

/// Names of what differs among the runs of one side.
pub(super) fn within(runs: &[Loaded]) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let differing = others.iter().flat_map(|other| of(&first.run, &other.run));
    let names: BTreeSet<String> = differing.map(|difference| difference.name).collect();
    names.into_iter().collect()
}

/// The host name, where it is all that is known to differ of two machines.
pub(crate) fn renamed(differences: &[Difference]) -> Option<&Difference> {
    let is_known = |of: &Difference| of.left != UNKNOWN && of.right != UNKNOWN;
    let mut of_machine = differences.iter().filter(|of| is_of_machine(&of.name));
    let first = of_machine.next().filter(|of| of.name == HOST_NAME && is_known(of))?;
    of_machine.next().is_none().then_some(first)
}

/// Is it neither of the tool nor of what it was asked for?
fn is_of_machine(name: &str) -> bool {
    let in_force = IN_FORCE.iter().any(|(of, _)| *of == name);
    !in_force && name != TOOL && name != LOAD && !name.starts_with(SETTING)
}

fn of(a: &Run, b: &Run) -> Vec<Difference> {
    let mut found = a.host.differences(&b.host);
    let mut add = |name: String, left: Option<&String>, right: Option<&String>| {
        if left != right {
            let shown = |text: Option<&String>| {
                text.map_or(UNKNOWN.to_owned(), |text| Printable(text).to_string())
            };
            let name = Printable(&name).to_string();
            found.push(Difference { name, left: shown(left), right: shown(right) });
        }
    };
    add(TOOL.to_owned(), Some(&a.tool_version), Some(&b.tool_version));
    for (name, has) in IN_FORCE {
        // What is not known is no difference.
        if let [Some(left), Some(right)] = [a, b].map(|run| in_a_word(&has(run))) {
            add(name.to_owned(), Some(&left.to_owned()), Some(&right.to_owned()));
        }
    }
    let [left, right] = [a, b].map(load);
    add(LOAD.to_owned(), Some(&left), Some(&right));
    let names: BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
    for name in names.into_iter().filter(|name| !PASSED_OVER.contains(&name.as_str())) {
        let [left, right] = [a, b].map(|run| run.settings.get(name).map(ToString::to_string));
        add(format!("{SETTING}{name}"), left.as_ref(), right.as_ref());
    }
    found
}

/// The load that a run made beside what it measured, in words; of a sum, that of all recordings.
fn load(run: &Run) -> String {
    let of_origins = run.origins.iter().flat_map(|origin| &origin.loads);
    let loads: BTreeSet<String> = run
        .loads
        .iter()
        .chain(of_origins)
        .map(|load| format!("{}: {}", load.load, load.what))
        .collect();
    if loads.is_empty() {
        return "none".to_owned();
    }
    loads.into_iter().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::load::LoadFacts;

    use super::*;
    use crate::execution::recorded::tests::merged;
    use crate::timeline::tests::recorded;

    #[test]
    fn a_host_name_that_alone_differs_of_two_machines_is_told_apart_from_another_machine() {
        let (a, mut b) = (recorded(), recorded());
        b.host.hostname = "renamed".to_owned();
        // What was asked for and the tool are no part of a machine.
        b.tool_version = "9.9.9".to_owned();
        b.evidence.rseq = !a.evidence.rseq;
        b.settings.insert("more".to_owned(), 7_u64.into());
        let name = |a: &Run, b: &Run| renamed(&of(a, b)).map(|of| of.right.clone());
        assert_eq!(name(&a, &b).as_deref(), Some("renamed"));
        assert_eq!(name(&a, &a), None);
        let mut other = b.clone();
        other.host.kernel = "7.1".to_owned();
        assert_eq!(name(&a, &other), None, "another kernel, too");
        other = b.clone();
        other.host.knobs.insert("thp".to_owned(), whylate_model::host::Knob::Value("x".to_owned()));
        assert_eq!(name(&a, &other), None, "another setting of the machine, too");
        b.host.hostname.clear();
        assert_eq!(name(&a, &b), None, "nobody knows its name");
    }

    #[test]
    fn a_sum_was_traced_as_its_recordings_were_and_what_is_not_known_is_no_difference() {
        let sum = |traced: &[Option<bool>]| {
            let mut sum = merged();
            let of = sum.origins[0].clone();
            let origin = |traced: &Option<bool>| Origin { traced: *traced, ..of.clone() };
            sum.origins = traced.iter().map(origin).collect();
            sum.evidence.trace = None;
            sum
        };
        let mut recording = merged();
        recording.origins.clear();
        assert!(recording.evidence.trace.is_some(), "planted");
        let trace = |traced: &[Option<bool>]| {
            let found = of(&recording, &sum(traced));
            let trace = found.into_iter().find(|of| of.name == "kernel trace");
            trace.map(|of| (of.left, of.right))
        };
        let told = |right: &str| Some(("yes".to_owned(), right.to_owned()));
        assert_eq!(trace(&[Some(true); 2]), None);
        assert_eq!(trace(&[Some(true), None]), None, "an older release does not say");
        assert_eq!(trace(&[None; 2]), None);
        assert_eq!(trace(&[Some(false); 2]), told("no"));
        assert_eq!(trace(&[Some(true), Some(false)]), told("in some recordings"));
        let mut warned = sum(&[Some(true); 2]);
        warned.origins[0].warnings.push(Warning::MemoryNotLocked { reason: "EPERM".to_owned() });
        let found = of(&recording, &warned);
        let locked = found.iter().find(|of| of.name == "memory locked").unwrap();
        assert_eq!(locked.right, "in some recordings");
    }

    #[test]
    fn load_on_one_side_is_a_difference_and_the_same_on_both_is_none() {
        let (quiet, mut busy) = (recorded(), recorded());
        busy.loads.push(LoadFacts {
            load: "net".to_owned(),
            what: "TCP bulk over loopback".to_owned(),
            amount: 9,
            unit: "bytes".to_owned(),
            time: Nanos(1),
            offered: None,
            lost: None,
            course: Vec::new(),
            ended_early: false,
            notes: Vec::new(),
        });
        let found = of(&quiet, &busy);
        let load = found.iter().find(|difference| difference.name == "load beside it").unwrap();
        assert_eq!(
            (load.left.as_str(), load.right.as_str()),
            ("none", "net: TCP bulk over loopback")
        );
        // How much it did is a result, not a difference of what was done.
        let mut more = busy.clone();
        more.loads[0].amount = 10;
        assert!(of(&busy, &more).is_empty());
    }
}
