//! Table 1: the tools, who stamps for them, and how finely, as measured at the start of a run of each.

use crate::spelled::in_unit;
use whylate_model::flow::Way;
use whylate_model::lab::BedKind;
use whylate_model::paper::{Scenario, TextTable, Unit};

use super::foreign::{self, ImportedFile};
use super::site::Site;
use super::tools::{self, Tool};
use crate::PaperError;
use crate::bench::{Bench, Times};

/// A tool's stamps are measured before its first message: little need follow.
const TIMES: Times = Times { usual: 3, quick: 2 };
/// What is kept of each value, whoever stamps.
const KEPT: &str = "1ns to 2us, then 0.1%";

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let chosen = tools::chosen(bench.tools())?;
    let files = foreign::imported(bench.imports())?;
    let mut table = TextTable {
        caption: "Tools: who stamps, the smallest step and the cost of a stamp (least, median), the spread of \
                  repeated stamps of a constant (p1 to p99), and how finely values are kept"
            .to_owned(),
        head: ["tool", "characteristics", "stamped by", "step", "cost", "precision", "granularity"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
        left: vec![1, 2, 6],
    };
    let site = Site::set_up(bench, BedKind::Direct, scenario)?;
    for tool in &chosen.tools {
        match way(bench, &site, tool, scenario) {
            Ok(way) => table.rows.push(row(tool, &way)),
            Err(PaperError::Stopped) => return Err(PaperError::Stopped),
            Err(error) => scenario.notes.push(format!("{}: not measured: {error}", tool.label)),
        }
    }
    if chosen.sockperf {
        table.rows.push(of_sockperf());
    }
    table.rows.extend(files.iter().flat_map(of_file));
    scenario.tables.push(table);
    scenario.notes.push(
        "the paper's: Spirent by FPGA, 10ns, 1us and 5us; MoonGen by the card 10ns, in software 100ns; TRex \
         and netperf by the CPU, 100ns, each with histograms that its authors made finer"
            .to_owned(),
    );
    Ok(())
}

/// The way of a short run.
fn way(
    bench: &mut Bench<'_>,
    site: &Site,
    tool: &Tool,
    scenario: &mut Scenario,
) -> Result<Way, PaperError> {
    let seconds = bench.time(TIMES).0 / 1_000_000_000;
    let words = format!(
        "rtt --bed {} {} --rate 1kpps --duration {seconds}s --warmup 500ms --cpus {} --reflector-cpus {} \
         --no-trace --seed {}",
        site.bed().name(),
        tool.words,
        site.client,
        site.other,
        bench.seed()
    );
    let (_, run) = bench.tool(&format!("table1-{}", tool.word), &words, scenario)?;
    let flow = run.flows.into_iter().next();
    flow.map(|flow| flow.way).ok_or(PaperError::Nothing("the stamps"))
}

fn row(tool: &Tool, way: &Way) -> Vec<String> {
    let ns = |value: f64| {
        // Below ten nanoseconds a digit more says something.
        if value < 10.0 { format!("{value:.1}ns") } else { in_unit(value, Unit::Nanoseconds) }
    };
    vec![
        tool.label.to_owned(),
        tool.characteristics.to_owned(),
        way.stamps.clone(),
        ns(way.resolution_ns),
        format!("{}, {}", ns(way.read_cost_min_ns), ns(way.read_cost_median_ns)),
        ns(way.precision_ns),
        KEPT.to_owned(),
    ]
}

fn of_sockperf() -> Vec<String> {
    let unknown = || "-".to_owned();
    vec![
        "sockperf".to_owned(),
        "datagrams by a socket; sleeps in the kernel; halves round trips".to_owned(),
        "its own readings of the CPU's counter around system calls".to_owned(),
        unknown(),
        unknown(),
        unknown(),
        "1ns (its log of every message)".to_owned(),
    ]
}

fn of_file(file: &ImportedFile) -> Vec<Vec<String>> {
    let one = |imported: &whylate_report::import::Imported| {
        let unknown = || "-".to_owned();
        vec![
            imported.label.clone(),
            format!("results of {}: {}", file.name, imported.measures.words()),
            "not told by its file".to_owned(),
            unknown(),
            unknown(),
            unknown(),
            in_unit(imported.granularity_ns, Unit::Nanoseconds),
        ]
    };
    file.all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_what_its_run_measured_of_its_stamps() {
        let way = Way {
            backend: "af_xdp".to_owned(),
            path: String::new(),
            wait: "spin".to_owned(),
            protocol: "raw".to_owned(),
            stamps: "by the CPU's counter".to_owned(),
            resolution_ns: 0.9,
            read_cost_min_ns: 8.0,
            read_cost_median_ns: 21.0,
            precision_ns: 1_500.0,
            socket: None,
            frames: None,
            costs: None,
            resolved_in: None,
            across: None,
        };
        let row = row(&tools::XDP, &way);
        assert_eq!(row[0], "xdp spin");
        assert_eq!(row[2..6], ["by the CPU's counter", "0.9ns", "8.0ns, 21ns", "1.50us"]);
        assert_eq!(of_sockperf().len(), row.len());
    }
}
