//! Figure 3: a network function under configurations of the operating system, by each tool, beside its own
//! log and a reference; and what of their effects each tool preserves.

use crate::spelled::in_unit;
use whylate_host::configuration::{
    self, AppliedConfiguration, Configuration, Configurations, Plan, Subject, interleaved,
};
use whylate_host::journal::Journal;
use whylate_model::lab::BedKind;
use whylate_model::paper::{Distributions, Effect, Here, Row, Scenario, TextTable, Unit};
use whylate_model::{CpuId, Nanos, Pid};
use whylate_stats::quantile::smallest_n;

use super::boxes;
use super::claims;
use super::curves::{curve, faint};
use super::effects::{self, PERCENTS, Under};
use super::fig_2::{CUT, unrepeated};
use super::measured::{Measured, left_out};
use super::protocol::{FEWEST_ABOVE, Protocol};
use super::site::Site;
use super::tools::{self, Tool, UDP_BLOCK, XDP};
use crate::PaperError;
use crate::bench::Bench;
use crate::rows::{Filled, row};

/// What is tried where the paper's last configuration is not to be had.
const WITHOUT_ISOLSET: &str = "local+power";
/// The step that the claim on tails is about.
const POWER: &str = "power";
/// Knobs of one configuration that are named.
const MOST_KNOBS: usize = 16;
/// The name of the reference among the curves.
const REFERENCE: &str = "reference (delay line)";

/// What can be had on this host.
#[derive(Debug, Default)]
struct Offered {
    configurations: Vec<Configuration>,
    /// Why the remote one is not.
    no_remote: Option<String>,
    notes: Vec<String>,
}

/// What one tool saw.
struct Panel {
    tool: Tool,
    under: Vec<Under>,
    reference: Measured,
}

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let chosen = tools::chosen(bench.tools())?;
    let protocol = Protocol::of(bench);
    protocol.note(scenario);
    let site = Site::set_up(bench, BedKind::Open, scenario)?;
    let offered = offered(&subject(&site, None), bench.configurations())?;
    scenario.notes.extend(offered.notes.iter().cloned());
    let delay = boxes::delay_held(bench, &site, "fig3-line", scenario)?;
    let empty = |configuration: &Configuration| Under {
        name: configuration.name().to_owned(),
        reported: Measured::default(),
        truth: Measured::default(),
    };
    let panel = |tool: Tool| Panel {
        tool,
        under: offered.configurations.iter().map(empty).collect(),
        reference: Measured::default(),
    };
    let mut panels: Vec<Panel> = chosen.across().into_iter().map(panel).collect();
    // The reference is one more of them.
    let settings = offered.configurations.len() + 1;
    let all = panels.len() * settings;
    for (round, order) in interleaved(all, protocol.runs, bench.seed()).into_iter().enumerate() {
        for item in order {
            let (panel, at) = (&mut panels[item / settings], item % settings);
            let done = match offered.configurations.get(at) {
                Some(configuration) => {
                    let turn = Turn { round, at, configuration };
                    boxed(bench, &site, turn, protocol, panel, scenario)
                }
                None => reference(bench, &site, round, (protocol, delay), panel, scenario),
            };
            match done {
                Ok(()) => {}
                Err(PaperError::Stopped) => return Err(PaperError::Stopped),
                Err(error) => {
                    let what =
                        offered.configurations.get(at).map_or(REFERENCE, Configuration::name);
                    scenario.notes.push(format!(
                        "{}, {what}, round {}: not done: {error}",
                        panel.tool.label,
                        round + 1
                    ));
                }
            }
        }
    }
    tell(bench.seed(), &offered, &panels, scenario)?;
    unrepeated(&mut scenario.commands);
    unrepeated(&mut scenario.notes);
    Ok(())
}

/// The named configurations or the paper's, as far as this host has them; those that it has not, by name.
fn offered(subject: &Subject, named: Option<&Configurations>) -> Result<Offered, PaperError> {
    let mut offered = Offered::default();
    let mut refused_last = false;
    for configuration in named.cloned().unwrap_or_else(Configurations::of_the_paper).0 {
        match Plan::of(&configuration, subject) {
            Ok(_) => offered.configurations.push(configuration),
            Err(error) => {
                let name = configuration.name();
                if name == "remote" {
                    offered.no_remote = Some(error.to_string());
                }
                refused_last |= name.ends_with(POWER);
                offered.notes.push(format!("{name}: not measured: {error}"));
            }
        }
    }
    if refused_last
        && named.is_none()
        && let Ok(instead) = WITHOUT_ISOLSET.parse::<Configuration>()
        && Plan::of(&instead, subject).is_ok()
    {
        offered.notes.push(format!(
            "{WITHOUT_ISOLSET} in place of local+isolset+power, so that what power does is told all the same"
        ));
        offered.configurations.push(instead);
    }
    if offered.configurations.is_empty() {
        return Err(PaperError::Nothing("configurations: this machine offers none of them"));
    }
    Ok(offered)
}

/// The box on its CPU. Its interfaces are virtual and belong to no memory node.
fn subject(site: &Site, pid: Option<Pid>) -> Subject {
    Subject {
        pids: pid.into_iter().collect(),
        cpus: vec![site.other],
        interfaces: Vec::new(),
        clients: vec![site.client],
    }
}

/// Which configuration in which round.
#[derive(Clone, Copy)]
struct Turn<'a> {
    round: usize,
    at: usize,
    configuration: &'a Configuration,
}

/// One tool through the forwarder under a configuration, which is put in force for the process that runs
/// and taken back before the next.
fn boxed(
    bench: &mut Bench<'_>,
    site: &Site,
    turn: Turn<'_>,
    protocol: Protocol,
    panel: &mut Panel,
    scenario: &mut Scenario,
) -> Result<(), PaperError> {
    let name = turn.configuration.name();
    let part = format!("fig3-{}-{}-{}", panel.tool.word, name.replace('+', "."), turn.round + 1);
    let box_part = format!("{part}-box");
    let forwarder = boxes::forwarder(bench, site, &box_part, scenario)?;
    let subject = subject(site, Some(forwarder.pid()));
    let applied = configuration::apply(turn.configuration, &subject, &Journal::open()?)?;
    scenario.notes.push(knobs(applied.facts()));
    let words = site.across(bench, panel.tool, protocol);
    let client = bench.tool(&part, &words, scenario);
    let changed: Vec<String> = applied
        .changed_since()
        .into_iter()
        .map(|knob| format!("{} is now {}", knob.name, knob.got))
        .collect();
    drop(applied);
    let forwarder = forwarder.end(scenario)?;
    let client = client?;
    if !changed.is_empty() {
        scenario.notes.push(format!(
            "{part} is not of {name}, and is left out: somebody changed it meanwhile: {}",
            changed.join(", ")
        ));
        return Ok(());
    }
    let under = &mut panel.under[turn.at];
    under.reported.take_client(&part, &client)?;
    if !under.truth.take_log(&box_part, &forwarder, Some(&client.1))? {
        scenario.notes.push(left_out(&box_part));
    }
    Ok(())
}

/// The same through the delay line.
fn reference(
    bench: &mut Bench<'_>,
    site: &Site,
    round: usize,
    (protocol, delay): (Protocol, Nanos),
    panel: &mut Panel,
    scenario: &mut Scenario,
) -> Result<(), PaperError> {
    let part = format!("fig3-{}-reference-{}", panel.tool.word, round + 1);
    let line = boxes::line(bench, site, &format!("{part}-line"), delay, scenario)?;
    let words = site.across(bench, panel.tool, protocol);
    let client = bench.tool(&part, &words, scenario);
    line.end(scenario)?;
    panel.reference.take_client(&part, &client?)
}

/// What a configuration is on this host, as it read back.
fn knobs(of: &AppliedConfiguration) -> String {
    let mut set: Vec<String> = of
        .knobs
        .iter()
        .filter(|knob| knob.asked.is_some())
        .map(|knob| format!("{} {}", knob.name, knob.got))
        .collect();
    let more = set.len().saturating_sub(MOST_KNOBS);
    set.truncate(MOST_KNOBS);
    let set = if set.is_empty() { "no knob had to be set".to_owned() } else { set.join(", ") };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let missing: Vec<String> =
        of.missing.iter().map(|knob| format!("{} ({})", knob.knob, knob.why)).collect();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!("; this machine does not offer {}", missing.join(", "))
    };
    let cpus: Vec<String> = of.cpus.iter().map(CpuId::to_string).collect();
    format!("{} on CPU {}: as read back: {set}{more}{missing}", of.name, cpus.join(","))
}

/// Figures, tables and claims.
fn tell(
    seed: u64,
    offered: &Offered,
    panels: &[Panel],
    scenario: &mut Scenario,
) -> Result<(), PaperError> {
    let own = own_logs(panels);
    if own.iter().all(|of| of.truth.is_empty()) {
        return Err(PaperError::Nothing("the forwarder"));
    }
    scenario.distributions.push(figure(
        "Figure 3: the network function by its own log",
        own.iter().map(|of| (of.name.as_str(), &of.truth)),
    ));
    for panel in panels {
        let under = panel.under.iter().map(|of| (of.name.as_str(), &of.reported));
        let title = format!("Figure 3: the network function as {} reports it", panel.tool.label);
        let all = under.chain([(REFERENCE, &panel.reference)]);
        scenario.distributions.push(figure(&title, all));
        let reported = panel.under.iter().map(|of| &of.reported).chain([&panel.reference]);
        let notes = reported.filter_map(|of| faint(panel.tool.label, of));
        scenario.notes.extend(notes);
    }
    scenario.notes.push(CUT.to_owned());
    scenario.tables.push(bought(&own, seed));
    for panel in panels {
        scenario.effects.extend(effects::of_tool(panel.tool.label, &panel.under, seed));
    }
    if own.len() < 2 {
        scenario.notes.push(
            "one configuration alone is to be had on this machine: there is no effect of one to preserve or lose"
                .to_owned(),
        );
    }
    let rows = rows(seed, offered, &own, &scenario.effects);
    scenario.rows.extend(rows);
    Ok(())
}

/// What all runs of a configuration say by the log of the box, whoever measured.
fn own_logs(panels: &[Panel]) -> Vec<Under> {
    let Some(first) = panels.first() else { return Vec::new() };
    let joined = |at: usize| {
        let mut truth = Measured::default();
        for panel in panels {
            truth.join(&panel.under[at].truth);
        }
        Under { name: first.under[at].name.clone(), reported: Measured::default(), truth }
    };
    (0..first.under.len()).map(joined).collect()
}

fn figure<'a>(title: &str, of: impl Iterator<Item = (&'a str, &'a Measured)>) -> Distributions {
    let measured = of.filter(|(_, measured)| !measured.is_empty());
    Distributions {
        title: title.to_owned(),
        of: "latency of the network function".to_owned(),
        cumulative: false,
        fewest_above: FEWEST_ABOVE,
        curves: measured.map(|(name, measured)| curve(name, measured, FEWEST_ABOVE)).collect(),
    }
}

/// What each step buys, by the log of the box.
fn bought(own: &[Under], seed: u64) -> TextTable {
    let mut head = vec!["by the box's own log".to_owned()];
    head.extend(PERCENTS.iter().map(|percent| format!("p{percent}")));
    let ns = |value: f64| in_unit(value, Unit::Nanoseconds);
    let row = |pair: &[Under]| {
        let mut cells = vec![format!("{} over {}", pair[1].name, pair[0].name)];
        cells.extend(effects::sizes(&pair[0].truth, &pair[1].truth, seed).map(|size| {
            size.map_or("-".to_owned(), |of| {
                format!("{} ({} .. {})", ns(of.ns), ns(of.low_ns), ns(of.high_ns))
            })
        }));
        cells
    };
    TextTable {
        caption: "What each configuration buys over the one before it: the difference of the percentile, with \
                  95 % intervals; below 0 is faster"
            .to_owned(),
        head,
        rows: own.windows(2).map(row).collect(),
        left: Vec::new(),
    }
}

fn rows(seed: u64, offered: &Offered, own: &[Under], effects: &[Effect]) -> Vec<Row> {
    let no_remote = offered.no_remote.as_deref();
    let of_box: Vec<Effect> = own_effects(own, seed);
    let (pairs, missing) = with_power(own);
    vec![
        best(own),
        claims::local(&of_box, no_remote),
        claims::power(&pairs, missing, seed),
        claims::captures(effects, XDP.label, claims::CAPTURES),
        claims::captures(effects, UDP_BLOCK.label, claims::DOES_NOT),
    ]
}

/// The effects in the box's own log alone.
fn own_effects(own: &[Under], seed: u64) -> Vec<Effect> {
    let as_reported: Vec<Under> =
        own.iter().map(|of| Under { reported: of.truth.clone(), ..of.clone() }).collect();
    effects::of_tool("its own log", &as_reported, seed)
}

const BEST: &str = "spread of the box, best tuned";

/// "The 'local+isolset+power' configuration has a minimum of 3.73 us and a maximum of 10.72 us."
fn best(own: &[Under]) -> Row {
    let last = own.iter().rev().find(|of| !of.truth.is_empty());
    let what = |name: &str| format!("largest less smallest under {name}, by the box's own log");
    let Some((of, min, max)) = last.and_then(|of| {
        let values = of.truth.histogram();
        Some((of, values.min()?, values.max()?))
    }) else {
        return row(what("the last configuration"), "nothing was measured")
            .paper("6.99us")
            .brief(BEST, "6.99 µs");
    };
    let ns = |value: u64| in_unit(value as f64, Unit::Nanoseconds);
    let why = format!(
        "{} to {}; the paper's 3.73us to 10.72us, by an appliance outside",
        ns(min),
        ns(max)
    );
    let here = Here {
        value: (max - min) as f64,
        unit: Unit::Nanoseconds,
        interval: None,
        n: Some(of.truth.histogram().len()),
    };
    row(what(&of.name), why).paper("6.99us").here(here).brief(BEST, "6.99 µs")
}

/// The p99.99 of each run without power settings and with them, and why there is none.
fn with_power(own: &[Under]) -> (Vec<(f64, f64)>, Option<&'static str>) {
    let with = own.iter().position(|of| of.name.ends_with(POWER));
    let Some(with) = with.filter(|at| *at > 0) else {
        return (
            Vec::new(),
            Some("this machine has no configuration with power settings, and one without"),
        );
    };
    // The same without its last step, else the first.
    let wanted = own[with].name.trim_end_matches(POWER).trim_end_matches('+');
    let without = own.iter().find(|of| of.name == wanted).unwrap_or(&own[0]);
    let (before, after) = (tails(&without.truth), tails(&own[with].truth));
    if before.len() != after.len() || before.is_empty() {
        return (
            Vec::new(),
            Some("its runs are too short for a p99.99, or not all of them were made"),
        );
    }
    (before.into_iter().zip(after).collect(), None)
}

/// The p99.99 of each run that shows one.
fn tails(of: &Measured) -> Vec<f64> {
    const PERCENT: f64 = 99.99;
    let one = |counts: Vec<(u64, u64)>| {
        let n: u64 = counts.iter().map(|(_, count)| count).sum();
        let rank = (n as f64 * PERCENT / 100.0).ceil();
        let mut seen = 0;
        let found = counts.into_iter().find(|(_, count)| {
            seen += count;
            seen as f64 >= rank
        });
        found.filter(|_| n >= smallest_n(PERCENT / 100.0)).map(|(value, _)| value as f64)
    };
    of.sample.runs().iter().filter_map(|run| one(run.pooled())).collect()
}

#[cfg(test)]
mod tests {
    use whylate_model::configuration::{KnobReading, NotHere};
    use whylate_model::paper::EffectVerdict;

    use super::super::measured::tests::planted;
    use super::*;

    fn under(name: &str, tail: u64, over: u64) -> Under {
        let stay = move |n: u64| if n.is_multiple_of(50) { tail } else { 3_730 };
        Under {
            name: name.to_owned(),
            truth: planted(3, 40, move |n, rng| stay(n) + rng.below(100)),
            reported: planted(3, 40, move |n, rng| stay(n) + over + rng.below(200)),
        }
    }

    fn panel(tool: Tool, tails: [u64; 2]) -> Panel {
        Panel {
            tool,
            under: vec![under("local", tails[0], 6_000), under("local+power", tails[1], 6_000)],
            reference: planted(1, 20, |_, rng| 8_000 + rng.below(50)),
        }
    }

    #[test]
    fn each_tool_has_a_panel_beside_the_boxs_own_log_and_its_effects_a_verdict() {
        let panels = [panel(XDP, [28_000, 10_000])];
        let offered = Offered { no_remote: Some("one node".to_owned()), ..Offered::default() };
        let mut scenario = crate::empty("fig3", "x");
        tell(1, &offered, &panels, &mut scenario).unwrap();
        assert_eq!(scenario.distributions.len(), 2);
        let labels: Vec<&str> =
            scenario.distributions[1].curves.iter().map(|of| of.label.as_str()).collect();
        assert_eq!(labels, ["local", "local+power", REFERENCE]);
        let tail = scenario.effects.iter().find(|of| (of.percent - 99.0).abs() < 1e-9).unwrap();
        assert_eq!(tail.verdict, EffectVerdict::Preserved, "{tail:?}");
        assert!((tail.truth.unwrap().ns + 18_000.0).abs() < 300.0, "{tail:?}");
        let row = |words: &str| scenario.rows.iter().find(|row| row.what.contains(words)).unwrap();
        assert_eq!(row("local memory node").why, "cannot be told here: one node");
        let factor = row("power saving off").here.as_ref().unwrap();
        assert!((factor.value - 2.8).abs() < 0.05, "{factor:?}");
        assert!(row("xdp spin captures").why.starts_with("holds"), "{:#?}", scenario.rows);
        assert!(row("udp block captures").why.starts_with("cannot be told here"));
        let bought = scenario.tables.last().unwrap();
        assert_eq!(bought.rows[0][0], "local+power over local");
        assert!(bought.rows[0][2].starts_with("-18.0us"), "{bought:?}");
    }

    #[test]
    fn one_configuration_has_no_effect_and_nothing_measured_is_told() {
        let mut one = panel(XDP, [28_000, 10_000]);
        one.under.truncate(1);
        let mut scenario = crate::empty("fig3", "x");
        tell(1, &Offered::default(), &[one], &mut scenario).unwrap();
        assert!(scenario.effects.is_empty() && scenario.tables[0].rows.is_empty());
        assert!(scenario.notes.iter().any(|note| note.starts_with("one configuration alone")));
        let power = scenario.rows.iter().find(|row| row.what.starts_with("power")).unwrap();
        assert!(power.why.starts_with("cannot be told here: this machine has no"), "{power:?}");
        assert!(tell(1, &Offered::default(), &[], &mut scenario).is_err());
    }

    #[test]
    fn a_configuration_is_told_as_it_read_back_with_what_the_host_does_not_offer() {
        let knob = |name: &str, asked: Option<&str>| KnobReading {
            name: name.to_owned(),
            before: "powersave".to_owned(),
            asked: asked.map(str::to_owned),
            got: "performance".to_owned(),
        };
        let told = knobs(&AppliedConfiguration {
            name: "local+power".to_owned(),
            cpus: vec![CpuId(0)],
            knobs: vec![knob("cpu0.governor", Some("performance")), knob("read", None)],
            missing: vec![NotHere {
                knob: "turbo".to_owned(),
                why: "a virtual machine".to_owned(),
            }],
        });
        assert_eq!(
            told,
            "local+power on CPU 0: as read back: cpu0.governor performance; this machine does not offer turbo (a \
             virtual machine)"
        );
    }

    #[test]
    fn what_this_host_refuses_is_named_and_power_is_tried_alone() {
        let subject = Subject {
            pids: Vec::new(),
            cpus: whylate_sys::affinity::get()[..1].to_vec(),
            interfaces: Vec::new(),
            clients: whylate_sys::affinity::get().into_iter().skip(1).collect(),
        };
        let wanted: Configurations = "unchanged,local".parse().unwrap();
        let two = super::offered(&subject, Some(&wanted)).unwrap();
        assert_eq!(two.configurations, wanted.0, "no others than were named");
        let offered = offered(&subject, None).unwrap();
        let names: Vec<&str> = offered.configurations.iter().map(Configuration::name).collect();
        assert!(names.contains(&"local"), "{offered:?}");
        for paper in ["remote", "local+isolset", "local+isolset+power"] {
            let refused =
                offered.notes.iter().any(|note| note.starts_with(&format!("{paper}: not")));
            assert_ne!(names.contains(&paper), refused, "{paper}: {offered:?}");
        }
        let last = names.iter().any(|name| name.ends_with(POWER));
        assert!(last, "with or without isolset: {offered:?}");
    }
}
