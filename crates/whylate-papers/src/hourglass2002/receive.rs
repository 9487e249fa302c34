//! 5.4: a real-time thread that needs 4 of every 5 ms while the machine receives from the network as
//! fast as it can. Table 2 and Figure 6.

use whylate_load::Kind;
use whylate_model::paper::Scenario;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, missed_for, misses, row, throughput};

const TIMES: Times = Times { usual: 20, quick: 3 };
const SHORT: &str = "-n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i HR";
const LONG: &str = "-n 1 -t 0 -p RTHIGH -w PERIODIC 8ms 10ms -i HR";
/// Wakes once in a second and measures how late that was.
const IDLE: &str = "-n 1 -t 0 -p LOW -w LAT 1s -i HR";
const NET: [Kind; 1] = [Kind::NET];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    scenario.notes.push("HR in place of the paper's timer, which was the RTC".to_owned());
    // A thread that does nothing makes of the load a recording that can be repeated.
    let alone = bench.hourglass("5.4-network", IDLE, TIMES, &NET, scenario)?;
    let loopback = "over loopback, sender on another CPU; the paper's wire carried 100 Mbit/s";
    let control = row("throughput, only the network (control 2)", loopback);
    scenario.rows.push(control.paper("94 Mbit/s").here(throughput(&alone.recorded.run.loads)));
    for (part, words, name, paper) in [
        ("5.4-control", SHORT, "4 in 5ms, only the thread (control 1)", ("0.0 %", None)),
        (
            "5.4",
            SHORT,
            "4 in 5ms beside the network",
            ("33.0 % (Linux 2.4.17), 0.4 % (RML), 0.0 % (TimeSys)", Some("68, 66 and 59 Mbit/s")),
        ),
        ("5.4-long", LONG, "8 in 10ms beside the network", ("essentially 0 %", Some("52 Mbit/s"))),
    ] {
        let load: &[Kind] = if paper.1.is_some() { &NET } else { &[] };
        let set = bench.hourglass(part, words, TIMES, load, scenario)?;
        let run = &set.recorded.run;
        let Some(thread) = run.threads.first() else { continue };
        let why = missed_for(thread, 3);
        scenario.rows.push(
            row(format!("missed deadlines, {name}"), why).paper(paper.0).here(misses(thread)),
        );
        if let Some(received) = paper.1 {
            let why = "the receiver has an ordinary priority: it has what the thread leaves; the time \
                       just before and after the thread's is in it";
            let row = row(format!("throughput, {name}"), why);
            scenario.rows.push(row.paper(received).here(throughput(&run.loads)));
        }
    }
    Ok(())
}
