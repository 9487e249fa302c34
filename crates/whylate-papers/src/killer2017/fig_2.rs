//! Figure 2: a device of constant latency, as each tool reports it, beside the truth. The device is a
//! delay line that writes down how long it held each frame; beside it a bridge of the kernel, of which
//! nobody knows the truth.

use whylate_model::Nanos;
use whylate_model::configuration::interleaved;
use whylate_model::lab::BedKind;
use whylate_model::paper::{Distribution, Distributions, Scenario};

use super::accuracy::{self, Judged};
use super::boxes;
use super::claims;
use super::curves::{curve, faint};
use super::foreign::{self, ImportedFile};
use super::measured::{Measured, left_out};
use super::protocol::{FEWEST_ABOVE, Protocol};
use super::site::Site;
use super::tools::{self, Chosen, SOCKPERF, Tool, UDP_BLOCK, XDP};
use crate::PaperError;
use crate::bench::Bench;

/// What is said of the end of each curve.
pub(super) const CUT: &str =
    "each curve ends at 1/n: no fewer than 1 of its samples lies at or above its end";

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let chosen = tools::chosen(bench.tools())?;
    let files = foreign::imported(bench.imports())?;
    let protocol = Protocol::of(bench);
    protocol.note(scenario);
    let named = chosen.tools.iter().filter(|tool| !tool.across);
    scenario.notes.extend(named.map(|tool| {
        format!(
            "{}: not measured through the device: both of its devices would have to be in one namespace",
            tool.label
        )
    }));
    let line = through_line(bench, &chosen, protocol, scenario)?;
    let bridge = through_bridge(bench, &chosen, protocol, scenario)?;
    tell(bench.seed(), (line, bridge), &files, scenario);
    unrepeated(&mut scenario.commands);
    Ok(())
}

/// Each command once: those of a round are those of the next.
pub(super) fn unrepeated(commands: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|command| seen.insert(command.clone()));
}

/// Each tool through the delay line, in an order that is drawn anew for each round.
fn through_line(
    bench: &mut Bench<'_>,
    chosen: &Chosen,
    protocol: Protocol,
    scenario: &mut Scenario,
) -> Result<Vec<Judged>, PaperError> {
    let site = Site::set_up(bench, BedKind::Open, scenario)?;
    let delay = boxes::delay_held(bench, &site, "fig2-line", scenario)?;
    let tools = chosen.across();
    let mut judged: Vec<Judged> = tools.iter().map(|tool| empty(tool.label, false)).collect();
    let all = tools.len() + usize::from(chosen.sockperf);
    if chosen.sockperf {
        judged.push(empty("sockperf (half of its round trip)", true));
    }
    let mut missing = false;
    for (round, order) in interleaved(all, protocol.runs, bench.seed()).into_iter().enumerate() {
        for at in order {
            let of = &mut judged[at];
            let done = match tools.get(at) {
                Some(tool) => one(bench, &site, (tool, round), (protocol, delay), of, scenario),
                None if missing => Ok(()),
                None => by_sockperf(bench, &site, round, (protocol, delay), of, scenario),
            };
            match done {
                Ok(()) => {}
                Err(PaperError::Stopped) => return Err(PaperError::Stopped),
                Err(error) => {
                    missing |= tools.get(at).is_none();
                    scenario.notes.push(format!(
                        "{}, round {}: not done: {error}",
                        of.label,
                        round + 1
                    ));
                }
            }
        }
    }
    judged.retain(|of| !of.measured.is_empty() && !of.truth.is_empty());
    if judged.is_empty() {
        return Err(PaperError::Nothing("the delay line"));
    }
    Ok(judged)
}

fn empty(label: &str, halved: bool) -> Judged {
    let (measured, truth) = (Measured::default(), Measured::default());
    Judged { label: label.to_owned(), measured, truth, halved }
}

/// One tool through a line of its own.
fn one(
    bench: &mut Bench<'_>,
    site: &Site,
    (tool, round): (&Tool, usize),
    (protocol, delay): (Protocol, Nanos),
    of: &mut Judged,
    scenario: &mut Scenario,
) -> Result<(), PaperError> {
    let part = format!("fig2-{}-{}", tool.word, round + 1);
    let line_part = format!("{part}-line");
    let line = boxes::line(bench, site, &line_part, delay, scenario)?;
    let words = site.across(bench, *tool, protocol);
    let client = bench.tool(&part, &words, scenario);
    let line = line.end(scenario)?;
    let client = client?;
    of.measured.take_client(&part, &client)?;
    if !of.truth.take_log(&line_part, &line, Some(&client.1))? {
        scenario.notes.push(left_out(&line_part));
    }
    Ok(())
}

/// The same by sockperf, both of whose ends sleep on the client's CPU.
fn by_sockperf(
    bench: &mut Bench<'_>,
    site: &Site,
    round: usize,
    (protocol, delay): (Protocol, Nanos),
    of: &mut Judged,
    scenario: &mut Scenario,
) -> Result<(), PaperError> {
    let part = format!("fig2-{SOCKPERF}-{}", round + 1);
    let line_part = format!("{part}-line");
    let line = boxes::line(bench, site, &line_part, delay, scenario)?;
    let found = foreign::sockperf(bench, site, &part, protocol, scenario);
    let line = line.end(scenario)?;
    let found = found?;
    of.measured.take_values(&format!("{part}.csv"), &found.values, 1.0);
    // Held against what was asked for as the rates of all tools are.
    of.measured.per_second.extend(found.per_second);
    for note in found.notes {
        if !scenario.notes.contains(&note) {
            scenario.notes.push(note);
        }
    }
    // It does not tell when it measured: all that its line saw is its truth.
    of.truth.take_log(&line_part, &line, None)?;
    Ok(())
}

/// Each tool through a bridge of the kernel.
fn through_bridge(
    bench: &mut Bench<'_>,
    chosen: &Chosen,
    protocol: Protocol,
    scenario: &mut Scenario,
) -> Result<Vec<(String, Measured)>, PaperError> {
    let site = Site::set_up(bench, BedKind::Bridge, scenario)?;
    let tools = chosen.across();
    let mut found: Vec<(String, Measured)> =
        tools.iter().map(|tool| (tool.label.to_owned(), Measured::default())).collect();
    for (round, order) in
        interleaved(tools.len(), protocol.runs, bench.seed()).into_iter().enumerate()
    {
        for at in order {
            let part = format!("fig2-{}-{}-bridge", tools[at].word, round + 1);
            let words = site.across(bench, tools[at], protocol);
            match bench.tool(&part, &words, scenario) {
                Ok(client) => found[at].1.take_client(&part, &client)?,
                Err(PaperError::Stopped) => return Err(PaperError::Stopped),
                Err(error) => {
                    let tool = tools[at].label;
                    scenario.notes.push(format!("{tool} through the bridge: not done: {error}"));
                }
            }
        }
    }
    found.retain(|(_, measured)| !measured.is_empty());
    Ok(found)
}

/// Figures, tables and claims.
fn tell(
    seed: u64,
    (mut judged, bridge): (Vec<Judged>, Vec<(String, Measured)>),
    files: &[ImportedFile],
    scenario: &mut Scenario,
) {
    let asked = Protocol::asked_per_second();
    // The log of the line sums up all that passed it, whoever sent.
    let mut truth = Measured::default();
    for of in &judged {
        truth.join(&of.truth);
    }
    scenario.tables.push(accuracy::table(&judged, seed));
    judged.retain(|of| {
        let apart = accuracy::apart(&of.label, of.measured.rate(), asked);
        let kept = apart.is_none();
        scenario.notes.extend(apart);
        kept
    });
    scenario.notes.extend(accuracy::order(&mut judged));
    scenario.notes.push(CUT.to_owned());
    scenario.notes.push(format!(
        "the truth is the log of the line, from when it had a frame to when it handed it over, of the same time, or \
         of all that passed where a tool does not tell when it measured; \
         what the virtual links take besides is in every tool's error ({} frames)",
        truth.histogram().len()
    ));
    let drawn = judged.iter().map(|of| (&of.label, &of.measured));
    let drawn = drawn.chain(bridge.iter().map(|of| (&of.0, &of.1)));
    scenario.notes.extend(drawn.filter_map(|(label, of)| faint(label, of)));
    unrepeated(&mut scenario.notes);
    let mut imported: Vec<Distribution> = Vec::new();
    for file in files {
        imported.extend(file.all.iter().map(|of| of.distribution(&file.name, FEWEST_ABOVE)));
    }
    accuracy::order_imported(&mut imported);
    foreign::note(files, scenario);
    let mut curves = imported;
    curves.extend(judged.iter().map(|of| curve(&of.label, &of.measured, FEWEST_ABOVE)));
    curves.push(curve("truth (the line's log)", &truth, FEWEST_ABOVE));
    scenario.distributions.push(Distributions {
        title: "Figure 2: a device of constant latency, by each tool".to_owned(),
        of: "latency through the device".to_owned(),
        cumulative: true,
        fewest_above: FEWEST_ABOVE,
        curves,
    });
    if !bridge.is_empty() {
        scenario.distributions.push(Distributions {
            title: "The same through a bridge of the kernel, of which the truth is not known"
                .to_owned(),
            of: "latency through the bridge".to_owned(),
            cumulative: true,
            fewest_above: FEWEST_ABOVE,
            curves: bridge.iter().map(|(label, of)| curve(label, of, FEWEST_ABOVE)).collect(),
        });
    }
    scenario.rows.push(claims::spread(&truth));
    scenario.rows.extend(claims::near(&judged, seed));
    scenario.rows.push(claims::bypass(&judged, XDP.label, seed));
    scenario.rows.extend(claims::blocking(&judged, UDP_BLOCK.label, seed));
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::planted;
    use super::*;

    #[test]
    fn the_figure_has_its_labels_in_order_the_truth_last_and_what_is_imported_without_a_distance() {
        let judged = |label: &str, over: u64| Judged {
            label: label.to_owned(),
            measured: planted(2, 20, move |_, rng| 2_260 + over + rng.below(50)),
            truth: planted(2, 20, |_, rng| 2_260 + rng.below(20)),
            halved: false,
        };
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trex.json");
        std::fs::write(&path, "{\"histogram\": {\"20\": 7000, \"30\": 10}}").unwrap();
        let wanted = format!("trex={}", path.display()).parse().unwrap();
        let files = foreign::imported(&[wanted]).unwrap();
        let mut scenario = crate::empty("fig2", "x");
        let tools = vec![judged(XDP.label, 6_000), judged(UDP_BLOCK.label, 20_000)];
        let bridge = vec![("xdp spin".to_owned(), planted(1, 20, |_, rng| 4_000 + rng.below(9)))];
        tell(1, (tools, bridge), &files, &mut scenario);
        let figure = &scenario.distributions[0];
        let labels: Vec<&str> = figure.curves.iter().map(|of| of.label.as_str()).collect();
        assert_eq!(labels, ["TRex", "udp block", "xdp spin", "truth (the line's log)"]);
        assert_eq!(scenario.distributions.len(), 2, "and one of the bridge");
        assert!(figure.curves[0].runs.is_empty() && figure.curves[0].imported.is_some());
        assert!(figure.curves[1..].iter().all(|of| !of.runs.is_empty() && of.imported.is_none()));
        assert_eq!(figure.curves[3].n, 80_000, "both tools' lines");
        let notes = scenario.notes.join("\n");
        assert!(notes.contains("order of accuracy") && notes.contains(CUT), "{notes}");
        assert!(notes.contains("no distance from this one's truth is claimed"), "{notes}");
        assert!(scenario.rows.iter().all(|row| !row.why.is_empty()), "{:#?}", scenario.rows);
        let told =
            |start: &str| scenario.rows.iter().find(|row| row.what.starts_with(start)).unwrap();
        assert!(told("overhead of stamps by the CPU").why.starts_with("holds"), "{scenario:#?}");
        assert!(told("overhead of blocking").why.starts_with("holds"), "{scenario:#?}");
    }

    #[test]
    fn sockperf_at_another_rate_than_was_asked_for_is_set_beside_nobody() {
        let judged = |label: &str, over: u64, halved: bool| Judged {
            label: label.to_owned(),
            measured: planted(2, 20, move |_, rng| 2_260 + over + rng.below(50)),
            truth: planted(2, 20, |_, rng| 2_260 + rng.below(20)),
            halved,
        };
        let drawn = |rate: f64| {
            let mut sockperf = judged("sockperf", 9_000, true);
            sockperf.measured.per_second = vec![rate; 2];
            let mut scenario = crate::empty("fig2", "x");
            let tools = vec![judged(XDP.label, 6_000, false), sockperf];
            tell(1, (tools, Vec::new()), &[], &mut scenario);
            let curves = &scenario.distributions[0].curves;
            let drawn = curves.iter().any(|of| of.label == "sockperf");
            let told = scenario.notes.iter().any(|note| note.starts_with("sockperf sent"));
            (drawn, told)
        };
        assert_eq!(drawn(20_000.0 * 1.004), (true, false));
        assert_eq!(drawn(20_000.0 * 0.98), (false, true), "2 % fewer are another load");
    }

    #[test]
    fn commands_of_rounds_are_named_once() {
        let mut commands: Vec<String> = ["a", "b", "a", "c", "b"].map(str::to_owned).to_vec();
        unrepeated(&mut commands);
        assert_eq!(commands, ["a", "b", "c"]);
    }
}
