//! When a CPU took frames in, by the kernel's own entry to that softirq and exit from it: what keeps such
//! a softirq busy, and for how long, told by nothing that a request's parts are told by.

use whylate_model::breakdown::{Part, Point};
use whylate_model::{CpuId, Ticks};
use whylate_sys::tracefs::{Instance, Tracefs};

use crate::looked::{Looked, median};
use crate::needs;

/// Stamps of this clock are readings of the counter, and are printed as they are.
const CLOCK: &str = if cfg!(target_arch = "x86_64") { "x86-tsc" } else { "counter" };
/// The softirq that takes frames in, as the kernel numbers them.
const TAKES_FRAMES_IN: &str = "vec == 3";
/// A request's wait ends within this share of a datagram's time of what was left of the softirq.
const WITHIN: f64 = 0.1;

/// One run of the softirq: from and to.
pub type Burst = (Ticks, Ticks);

/// A trace of its own that has these softirqs alone, removed in the end.
pub struct Traced {
    tracefs: Tracefs,
    instance: Instance,
}

impl Traced {
    pub fn begin() -> Option<Self> {
        let tracefs = needs::tracefs()?;
        let instance = tracefs.create_instance(&format!("planted-{}", std::process::id())).unwrap();
        // From here on dropping it removes the instance.
        let traced = Self { tracefs, instance };
        traced.instance.write("trace_clock", CLOCK).unwrap();
        for event in ["softirq_entry", "softirq_exit"] {
            let folder = format!("events/irq/{event}");
            traced.instance.write(&format!("{folder}/filter"), TAKES_FRAMES_IN).unwrap();
            traced.instance.write(&format!("{folder}/enable"), "1").unwrap();
        }
        Some(traced)
    }

    /// The runs on this CPU since it was asked last, in their order.
    pub fn taken(&self, cpu: CpuId) -> Result<Vec<Burst>, String> {
        let text = self.instance.read("trace").map_err(|error| error.to_string())?;
        self.instance.clear("trace").map_err(|error| error.to_string())?;
        runs(&text, cpu)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.tracefs.remove_instance(self.instance.name());
    }
}

/// Runs of one CPU by the text of a trace, of which nothing was overwritten.
fn runs(text: &str, cpu: CpuId) -> Result<Vec<Burst>, String> {
    let header =
        text.lines().find_map(|line| line.split_once("entries-in-buffer/entries-written:"));
    let kept = header.and_then(|(_, counts)| counts.split_whitespace().next()?.split_once('/'));
    match kept {
        Some((there, written)) if there == written => (),
        _ => return Err(format!("the trace does not have all that was written: {kept:?}")),
    }
    let (mut all, mut entered) = (Vec::new(), None);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let told = ["softirq_entry", "softirq_exit"].map(|event| stamp(line, event, cpu));
        match told {
            [Some(from), _] => entered = Some(from),
            [_, Some(to)] => all.extend(entered.take().map(|from| (from, to))),
            [None, None] => (),
        }
    }
    Ok(all)
}

/// When this event of the CPU was, if the line is of it: `thread [001] flags STAMP: event: what`.
fn stamp(line: &str, event: &str, cpu: CpuId) -> Option<Ticks> {
    let (before, _) = line.split_once(&format!(": {event}: "))?;
    // Names of threads may hold anything, also brackets.
    let mut words = before.split_whitespace().rev();
    let at = words.next()?.parse().ok()?;
    let where_at = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    (where_at == Some(cpu.0)).then_some(Ticks(at))
}

/// Requests that waited behind long softirqs, and others that waited as long.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Given to the driver while a datagram was taken in for long.
    pub planted: u64,
    /// Of them, those taken in when that was over, as the kernel itself tells it: within a tenth of a
    /// datagram's time.
    pub right: u64,
    /// Of them, those that were to wait for long.
    pub expected: f64,
    /// Waited for long without datagrams.
    pub before: f64,
    /// Waited for long with them, and were given to the driver when none was taken in.
    pub others: f64,
}

/// Holds requests against the softirq's runs. After a request is taken in, the softirq goes on with it for
/// as long as it does without datagrams.
pub fn waited(
    (quiet, taken_quietly): (&Looked, &[Burst]),
    (busy, taken): (&Looked, &[Burst]),
    way: Part,
    each: f64,
) -> Waits {
    let ns = |from: Ticks, to: Ticks| (to.0 as f64 - from.0 as f64) * busy.tick_ns;
    let ends = |of: &Looked| -> Vec<(Ticks, Ticks)> {
        let both = of.journeys.iter().filter_map(|of| {
            let at = |point: Point| of.passed[point.index()].map(|(at, _)| at);
            Some((at(way.from)?, at(way.to)?))
        });
        both.collect()
    };
    let within = |bursts: &[Burst], at: Ticks| -> Option<Burst> {
        bursts.iter().copied().find(|(from, to)| (*from..=*to).contains(&at))
    };
    let goes_on = ends(quiet)
        .into_iter()
        .filter_map(|(_, arrived)| within(taken_quietly, arrived).map(|(_, to)| ns(arrived, to)));
    let goes_on = median(goes_on.collect());
    let long: Vec<Burst> =
        taken.iter().copied().filter(|(from, to)| ns(*from, *to) > each / 2.0).collect();
    // Of each: what was left when the driver was given it, and by how much longer it waited.
    let planted: Vec<(f64, f64)> = ends(busy)
        .into_iter()
        .filter_map(|(given, arrived)| {
            let left = ns(given, within(&long, given)?.1) - goes_on;
            Some((left, ns(given, arrived) - left))
        })
        .collect();
    let usual = median(quiet.times(way));
    let is_long = |waited: f64| waited - usual > each / 4.0;
    let waited =
        |of: &Looked| ends(of).iter().filter(|(from, to)| is_long(ns(*from, *to))).count() as f64;
    let before = waited(quiet);
    // Those that waited for long and were not given to the driver while a datagram was taken in.
    let others = ends(busy)
        .iter()
        .filter(|(given, arrived)| is_long(ns(*given, *arrived)) && within(&long, *given).is_none())
        .count() as f64;
    let expected = planted.iter().filter(|(left, _)| is_long(*left)).count() as f64;
    let right = planted.iter().filter(|(_, more)| more.abs() <= WITHIN * each).count();
    Waits { planted: planted.len() as u64, right: right as u64, expected, before, others }
}

#[test]
fn runs_of_a_softirq_are_read_cpu_by_cpu_and_a_trace_that_lost_some_is_refused() {
    // As the kernel prints it, with a thread of a name that is no help.
    const TEXT: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 6/6   #P:2
#
          <idle>-0       [001] ..s.. 1000: softirq_entry: vec=3 [action=NET_RX]
 odd [000] name-7        [000] ..s.. 1100: softirq_entry: vec=3 [action=NET_RX]
          <idle>-0       [001] ..s.. 1400: softirq_exit: vec=3 [action=NET_RX]
 odd [000] name-7        [000] ..s.. 1500: softirq_exit: vec=3 [action=NET_RX]
     ksoftirqd/1-24      [001] ..s.. 2000: softirq_exit: vec=3 [action=NET_RX]
 odd [000] name-7        [001] ..s.. 2500: softirq_entry: vec=3 [action=NET_RX]
";

    let run = |from, to| (Ticks(from), Ticks(to));
    // An exit whose entry was before, and an entry whose exit is to come, are none.
    assert_eq!(runs(TEXT, CpuId(1)), Ok(vec![run(1_000, 1_400)]));
    assert_eq!(runs(TEXT, CpuId(0)), Ok(vec![run(1_100, 1_500)]));
    assert_eq!(runs(TEXT, CpuId(2)), Ok(Vec::new()));
    assert!(runs(&TEXT.replace("6/6", "6/9"), CpuId(1)).unwrap_err().contains("(\"6\", \"9\")"));
    assert!(runs("", CpuId(1)).is_err());
}
