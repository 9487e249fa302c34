//! 5.4: a real-time thread that needs 4 of every 5 ms while the machine receives from the network as
//! fast as it can. Table 2 and Figure 6.

use crate::spelled::in_unit;
use whylate_load::{HELD_BACK, Kind};
use whylate_model::Nanos;
use whylate_model::load::LoadFacts;
use whylate_model::paper::{Here, Scenario, Unit};
use whylate_model::threads::ThreadSummary;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::beside::{Other, sentence};
use crate::missed::{Facts, Spread};
use crate::rows::{Filled, row, throughput};

const TIMES: Times = Times { usual: 20, quick: 3 };
/// Wakes once in a second and measures how late that was.
const IDLE: &str = "-n 1 -t 0 -p LOW -w LAT 1s -i HR";
const NET: [Kind; 1] = [Kind::NET];
/// What the paper's machine received with nothing beside, in bits per second.
const ALONE: f64 = 94e6;

/// A part: execution time and period of the thread in ms, and the paper's figures.
struct Part {
    name: &'static str,
    what: &'static str,
    /// The same in few words.
    short: &'static str,
    ms: (u64, u64),
    missed: (&'static str, &'static str, f64),
    /// What was received, in all its words and of plain Linux; none without load.
    received: Option<(&'static str, f64)>,
}

const PARTS: [Part; 3] = [
    Part {
        name: "5.4-control",
        what: "4 in 5ms, only the thread (control 1)",
        short: "4 in 5 ms, alone",
        ms: (4, 5),
        missed: ("0.0 %", "0.0%", 0.0),
        received: None,
    },
    Part {
        name: "5.4",
        what: "4 in 5ms beside the network",
        short: "4 in 5 ms, network",
        ms: (4, 5),
        missed: (
            "33.0 % (Linux 2.4.17), 0.4 % (RML), 0.0 % (TimeSys)",
            "33.0% of plain Linux 2.4.17",
            0.33,
        ),
        received: Some(("68, 66 and 59 Mbit/s", 68e6)),
    },
    Part {
        name: "5.4-long",
        what: "8 in 10ms beside the network",
        short: "8 in 10 ms, network",
        ms: (8, 10),
        missed: ("essentially 0 %", "essentially 0%", 0.0),
        received: Some(("52 Mbit/s", 52e6)),
    },
];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let timer = Bench::real_time_clock(scenario);
    // A thread that does nothing makes of the load a recording that can be repeated.
    let alone = bench.hourglass("5.4-network", IDLE, TIMES, &NET, scenario)?;
    let loads = &alone.recorded.run.loads;
    let all = throughput(loads, bench.seed());
    let what = loads.first().map_or("", |load| load.what.as_str());
    let bound = limited(loads);
    let paper = Other::stated("94 Mbit/s", ALONE);
    let why = all.as_ref().map_or_else(String::new, |all| {
        let beside = paper.told(all);
        format!(
            "{beside}, over a wire of 100 Mbit/s: here {what}, which has none; its interval is over \
             equal parts of the time"
        )
    });
    told_of_loads("5.4-network", loads, scenario);
    let control = row("throughput, only the network (control 2)", why);
    let agreement = all.as_ref().and_then(|all| paper.agreement(all));
    scenario.rows.push(
        control
            .paper("94 Mbit/s")
            .here(all.clone())
            .agrees(agreement)
            .brief("throughput, network alone", "94 Mbit/s"),
    );
    let mut control: Option<Here> = None;
    for part in &PARTS {
        let (needs, period) = part.ms;
        let words = format!("-n 1 -t 0 -p RTHIGH -w PERIODIC {needs}ms {period}ms -i {timer}");
        let load: &[Kind] = if part.received.is_some() { &NET } else { &[] };
        let set = bench.hourglass(part.name, &words, TIMES, load, scenario)?;
        let jobs = bench.jobs(part.name)?;
        let run = &set.recorded.run;
        let Some(thread) = run.threads.first() else { continue };
        if let Some(facts) = Facts::of(&set, &jobs, 0, (bench.cpu(), None)) {
            let (words, name, value) = part.missed;
            let paper = Other::stated(name, value);
            let beside = control.as_ref().and_then(|of| Other::measured("control 1", of));
            let clauses = [
                facts.beside(beside.as_ref()),
                facts.beside(Some(&paper)),
                facts.interrupts.map(|of| interfered(of, Nanos((period - needs) * 1_000_000))),
            ];
            let row = facts.row(&format!("missed deadlines, {}", part.what), clauses);
            scenario.rows.push(
                row.paper(words)
                    .agrees(paper.agreement(&facts.here))
                    .brief(format!("misses, {}", part.short), in_unit(value, Unit::Share)),
            );
            control.get_or_insert(facts.here);
        }
        if let Some((words, paper)) = part.received {
            let here = throughput(&run.loads, bench.seed());
            told_of_loads(part.name, &run.loads, scenario);
            let bound = bound || limited(&run.loads);
            let hz = run.clock.hz;
            let left = left(thread, thread.end.since(thread.start).to_nanos(hz));
            let why = here.as_ref().zip(all.as_ref());
            let why = why
                .map_or_else(String::new, |(here, all)| received((here, all), left, paper, bound));
            let row = row(format!("throughput, {}", part.what), why);
            scenario.rows.push(row.paper(words).here(here));
        }
    }
    Ok(())
}

/// The share of its CPU that a thread left to others.
fn left(thread: &ThreadSummary, elapsed: Nanos) -> f64 {
    thread.waited.0 as f64 / (elapsed.0 as f64).max(1.0)
}

/// What interrupts, faults and the kernel's ways in and out took of a job, beside what it can spare.
fn interfered(of: Spread, spare: Nanos) -> String {
    let Spread { median, most } = of;
    let enough = if most > spare { "more than" } else { "of" };
    format!(
        "interrupts and the kernel's own time took {median} of a job (median), at most {most}, \
         {enough} the {spare} that it can spare"
    )
}

/// What the generators say of themselves is said beside the figures.
fn told_of_loads(part: &str, loads: &[LoadFacts], scenario: &mut Scenario) {
    let notes = loads.iter().flat_map(|load| load.notes.iter().map(move |note| (load, note)));
    scenario
        .notes
        .extend(notes.map(|(load, note)| format!("load of {part}, {}: {note}", load.load)));
}

/// Did a stream send all that its own bound lets it? Then more could have been received.
fn limited(loads: &[LoadFacts]) -> bool {
    loads.iter().flat_map(|load| &load.notes).any(|note| note.starts_with(HELD_BACK))
}

/// What was received beside a thread, and what was without one; nothing is made of two figures of
/// which one is the generator's own bound.
fn received((here, all): (&Here, &Here), left: f64, paper: f64, bound: bool) -> String {
    let share = |value: f64| in_unit(value, Unit::Share);
    let beside = if bound {
        Some(
            "the load was held back by its own bound, so that nothing is claimed beside control 2"
                .to_owned(),
        )
    } else {
        Other::measured("control 2", all).map(|other| other.told(here))
    };
    let kept = format!(
        "{} of control 2, where the thread leaves the CPU for {} of the time; the paper's was {}",
        share(here.value / all.value.max(1.0)),
        share(left),
        share(paper / ALONE)
    );
    sentence([beside, Some(kept)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_receiving_took_is_told_beside_what_a_job_can_spare() {
        let of = |median, most| Spread { median: Nanos(median), most: Nanos(most) };
        let little = interfered(of(12_000, 80_000), Nanos(1_000_000));
        assert!(little.ends_with("at most 80.0us, of the 1.00ms that it can spare"), "{little}");
        let much = interfered(of(12_000, 1_800_000), Nanos(1_000_000));
        assert!(much.contains("at most 1.80ms, more than the 1.00ms"), "{much}");
    }

    #[test]
    fn what_a_load_says_of_itself_is_told_and_its_bound_is_known() {
        let load = |notes: Vec<String>| LoadFacts {
            load: "net".to_owned(),
            what: "TCP".to_owned(),
            amount: 7,
            unit: "bytes".to_owned(),
            time: Nanos(1),
            offered: None,
            lost: None,
            course: Vec::new(),
            ended_early: false,
            notes,
        };
        let held = load(vec![format!("{HELD_BACK} of 10000 Mbit/s")]);
        let loads = [load(vec!["files in memory".to_owned()]), held];
        assert_eq!([limited(&loads[..1]), limited(&loads), limited(&[])], [false, true, false]);
        let mut scenario = Scenario {
            place: "5.4".to_owned(),
            title: String::new(),
            commands: Vec::new(),
            runs: Vec::new(),
            rows: Vec::new(),
            bars: Vec::new(),
            tables: Vec::new(),
            distributions: Vec::new(),
            effects: Vec::new(),
            notes: Vec::new(),
        };
        told_of_loads("5.4", &loads, &mut scenario);
        assert_eq!(scenario.notes.len(), 2);
        assert!(
            scenario.notes[1].starts_with("load of 5.4, net: held back"),
            "{:?}",
            scenario.notes
        );
    }

    #[test]
    fn what_was_received_is_told_beside_the_control_and_the_paper() {
        let bits = |value: f64, half: f64| Here {
            value,
            unit: Unit::BitsPerSecond,
            interval: Some((value - half, value + half)),
            n: Some(40),
        };
        let told = received((&bits(1e9, 1e8), &bits(4e9, 1e8)), 0.19, 68e6, false);
        assert!(told.starts_with("less than control 2"), "{told}");
        assert!(
            told.contains("25.0% of control 2") && told.contains("19.0% of the time"),
            "{told}"
        );
        assert!(told.contains("the paper's was 72.3%"), "{told}");
        let told = received((&bits(4.05e9, 1e8), &bits(4e9, 1e8)), 0.19, 68e6, false);
        assert!(told.starts_with("no difference from control 2"), "{told}");
        let told = received((&bits(1e10, 1e8), &bits(1e10, 1e8)), 0.19, 68e6, true);
        assert!(told.contains("nothing is claimed beside control 2"), "{told}");
        assert!(!told.contains("no difference"), "{told}");
    }
}
