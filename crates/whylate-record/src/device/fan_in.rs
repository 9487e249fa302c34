//! From several ports to one: the share that each of them gets when together they send more than it takes.
//!
//! Several subsets of the ports are measured in each round, in an order that the seed draws: a share that
//! depends on who else sends shows only so. Frames leave at random distances, so that no phase of two
//! schedules favours a port. A share is that of the frames that came, counted where they are received; its
//! interval is that of rounds, which are independent of each other.

mod ours;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_host::journal::Journal;
use whylate_model::device::{FanIn, FanInShare};
use whylate_model::{CpuId, Nanos, Printable};
use whylate_net::lab::{Joining, MOST_SOURCES, Narrow, Source, borrow_fan_in};
use whylate_net::schedule::Rate;
use whylate_stats::rng::Rng;
use whylate_stats::student::Spread;
use whylate_sys::interface;

use super::outcome::DeviceError;
use crate::RecordError;
use crate::progress::{Progress, Step};

use traffic::{Counted, Flood, Way};

/// Pairs of ports that are measured at most: of many ports some are drawn.
const MOST_PAIRS: usize = 6;
/// All sources together send so many times what the port takes.
const OVERLOAD: f64 = 2.0;
/// The port's queue is filled for so long before anything is counted.
const FILLING: Nanos = Nanos(200_000_000);
/// A port that takes more keeps this machine busy with sending, not with queueing.
const MOST_TAKEN: f64 = 1e9;
/// And one that takes less passes too few frames in a second for any share.
const LEAST_TAKEN: f64 = 1e5;
/// A port that took so much of what was sent was not the narrow place.
const TOOK_ALL: f64 = 0.99;
/// Streams of random numbers of their own, apart from those of the rounds.
const ORDER: u64 = 0xfa11;

/// What joins the ports of a fan-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FanInOver {
    /// A bridge or a switch in a bed of its own, whose one port is made narrow.
    Bed(Joining),
    /// Whatever lies between these interfaces of this machine.
    Between(RealPorts),
}

/// Interfaces of this network namespace, with something between them that passes frames by their addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPorts {
    /// Those that send.
    pub from: Vec<String>,
    /// The one that receives.
    pub to: String,
}

/// What is asked of a fan-in.
#[derive(Debug, Clone, PartialEq)]
pub struct FanInQuestion {
    /// What joins the ports.
    pub over: FanInOver,
    /// Ports that send.
    pub ports: u32,
    /// What the one that receives takes: made so in a bed, told of a real one.
    pub takes: Rate,
    /// Bytes of the frames, check sequence included.
    pub frame_bytes: u32,
    /// What each port sends, against the others; empty: all the same.
    pub sends: Vec<u32>,
    /// The one port serves the others by these weights; empty: in the order in which frames come.
    pub weights: Vec<u32>,
    /// Rounds.
    pub rounds: u32,
    /// How long one subset is measured in a round.
    pub duration: Nanos,
    /// Seed.
    pub seed: u64,
}

/// Ports that send together, and what came of it in each round.
struct Subset {
    ports: Vec<u32>,
    rounds: Vec<Vec<Counted>>,
}

impl FanInQuestion {
    /// Refuses what is no fan-in.
    ///
    /// # Errors
    /// Says what to ask instead.
    pub fn check(&self) -> Result<(), DeviceError> {
        let refused = |why: String| Err(DeviceError::Refused(why));
        if !(2..=MOST_SOURCES).contains(&self.ports) {
            return refused(format!("a fan-in has 2 to {MOST_SOURCES} ports, not {}", self.ports));
        }
        for (list, name) in [(&self.sends, "--fan-in-sends"), (&self.weights, "--fan-in-weights")] {
            if !list.is_empty() && (list.len() != self.ports as usize || list.contains(&0)) {
                return refused(format!(
                    "{name} has a number above zero for each of {} ports",
                    self.ports
                ));
            }
        }
        if let FanInOver::Between(real) = &self.over {
            self.check_real(real)?;
        }
        let bits = self.bits_per_second();
        if !(LEAST_TAKEN..=MOST_TAKEN).contains(&bits) {
            return refused(format!(
                "--fan-in-takes comes to {bits:.0} bit/s, and is from {LEAST_TAKEN:.0} to {MOST_TAKEN:.0}"
            ));
        }
        Ok(())
    }

    /// Real ports are as many as are said, each once, and nobody makes them narrow.
    fn check_real(&self, RealPorts { from, to }: &RealPorts) -> Result<(), DeviceError> {
        let refused = |why: String| Err(DeviceError::Refused(why));
        let mut known: Vec<&String> = vec![to];
        for name in from {
            if known.contains(&name) {
                return refused(format!(
                    "`{}` is named twice: --fan-in-from names several interfaces, and --fan-in-to one more",
                    Printable(name)
                ));
            }
            known.push(name);
        }
        if !self.weights.is_empty() {
            return refused(
                "a real box cannot be told its weights, and --fan-in-weights is for --box bridge or ovs: leave \
                 --fan-in-weights out"
                .to_owned(),
            );
        }
        Ok(())
    }

    /// What the source with this number is called.
    fn source(&self, number: u32) -> String {
        match &self.over {
            FanInOver::Bed(_) => Source::interface(number),
            FanInOver::Between(RealPorts { from, .. }) => {
                from.get(number as usize).cloned().unwrap_or_default()
            }
        }
    }

    /// What the port is called that they send to.
    fn sink(&self) -> String {
        match &self.over {
            FanInOver::Bed(_) => "server0".to_owned(),
            FanInOver::Between(RealPorts { to, .. }) => to.clone(),
        }
    }

    /// What is told of the port: none of a real one, which nobody made narrow.
    fn narrow(&self, ports: &[u32]) -> Option<String> {
        if matches!(self.over, FanInOver::Between(_)) {
            return None;
        }
        let by = if self.weights.is_empty() {
            "a token bucket, in the order in which frames come".to_owned()
        } else {
            let weights: Vec<String> =
                ports.iter().map(|port| self.weights[*port as usize].to_string()).collect();
            format!("by weights {}", weights.join(":"))
        };
        Some(format!("{:.0} frames a second ({by})", self.frames_per_second()))
    }

    /// What the port takes, in bits of layer 2 a second.
    fn bits_per_second(&self) -> f64 {
        self.frames_per_second() * f64::from(self.frame_bytes) * 8.0
    }

    /// And in frames.
    fn frames_per_second(&self) -> f64 {
        self.takes.per_second(self.frame_bytes)
    }

    /// Frames a second that these ports send, each by its part.
    fn offered(&self, ports: &[u32]) -> Vec<f64> {
        let part = |port: u32| self.sends.get(port as usize).copied().map_or(1.0, f64::from);
        let sum: f64 = ports.iter().map(|port| part(*port)).sum();
        let all = OVERLOAD * self.frames_per_second();
        ports.iter().map(|port| all * part(*port) / sum).collect()
    }
}

/// Where it is measured.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) journal: &'a Journal,
    /// CPUs for sources and sink: this thread has left those that are measured.
    pub(super) allowed: &'a [CpuId],
    pub(super) stop: &'a AtomicBool,
}

/// Measures all subsets in all rounds; what a reader must know beside the shares.
pub(super) fn measure(
    question: &FanInQuestion,
    ground: Ground<'_>,
    progress: &mut dyn Progress,
) -> Result<(Vec<FanIn>, Vec<String>), RecordError> {
    question.check()?;
    let Ground { journal, allowed, stop } = ground;
    let narrow = Narrow {
        bits_per_second: question.bits_per_second() as u64,
        frame_bytes: question.frame_bytes,
        weights: question.weights.clone(),
    };
    let name = format!("fan-{}", std::process::id());
    let borrowed = match &question.over {
        FanInOver::Bed(joining) => {
            Some(borrow_fan_in(journal, &name, *joining, question.ports, &narrow)?)
        }
        FanInOver::Between(_) => None,
    };
    let way = match (&borrowed, &question.over) {
        (Some(borrowed), _) => Way::Bed(borrowed.bed()),
        (None, FanInOver::Between(real)) => Way::Ports(real),
        (None, FanInOver::Bed(_)) => {
            return Err(DeviceError::FanIn("there is no bed".to_owned()).into());
        }
    };
    let mut subsets: Vec<Subset> = subsets(question.ports, question.seed)
        .into_iter()
        .map(|ports| Subset { ports, rounds: Vec::new() })
        .collect();
    let mut missed = 0;
    for round in 0..question.rounds {
        let mut order: Vec<usize> = (0..subsets.len()).collect();
        Rng::stream(question.seed ^ ORDER, u64::from(round)).shuffle(&mut order);
        for index in order {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let subset = &mut subsets[index];
            let what = format!("fan-in of {} ports, round {}", subset.ports.len(), round + 1);
            progress.step(&Step::of(&what, question.duration));
            let flood = Flood {
                way,
                allowed,
                ports: &subset.ports,
                per_second: &question.offered(&subset.ports),
                frame_bytes: question.frame_bytes,
                filling: FILLING,
                duration: question.duration,
                seed: question.seed.wrapping_add(u64::from(round) << 8).wrapping_add(index as u64),
            };
            let came = flood.run(stop)?;
            missed += came.missed_by_the_sink;
            subset.rounds.push(came.counted);
        }
    }
    let mut notes = Vec::new();
    if missed > 0 {
        notes.push(format!(
            "fan-in: {missed} frames came and found no room at the receiving socket: shares are those of the \
             frames that were taken in"
        ));
    }
    let told = subsets.iter().filter(|subset| !subset.rounds.is_empty());
    let told: Vec<FanIn> = told.map(|subset| subset.told(question)).collect();
    if let FanInOver::Between(real) = &question.over {
        notes.extend(of_real_ports(real, &told));
    }
    Ok((told, notes))
}

/// About how long it takes.
pub(super) fn about(question: &FanInQuestion) -> Nanos {
    let subsets = subsets(question.ports, question.seed).len() as u64;
    Nanos(subsets * u64::from(question.rounds) * (question.duration.0 + FILLING.0))
}

/// Refuses ports that are not there, before anything is measured.
pub(super) fn are_here(question: &FanInQuestion) -> Result<(), DeviceError> {
    let FanInOver::Between(RealPorts { from, to }) = &question.over else { return Ok(()) };
    for name in from.iter().chain([to]) {
        let found = interface::named(name).map_err(|why| DeviceError::FanIn(why.to_string()))?;
        let name = Printable(name);
        match found {
            Some(found) if found.up && found.hardware.is_some() => {}
            Some(found) if found.up => {
                return Err(DeviceError::Refused(format!(
                    "`{name}` carries no frames of Ethernet: it is no port of a fan-in"
                )));
            }
            Some(_) => {
                return Err(DeviceError::Refused(format!(
                    "`{name}` is switched off: `ip link set {name} up`"
                )));
            }
            None => {
                return Err(DeviceError::Refused(format!(
                    "there is no interface `{name}` in this network namespace"
                )));
            }
        }
    }
    Ok(())
}

/// What must be known of shares between ports that nobody made narrow.
fn of_real_ports(real: &RealPorts, told: &[FanIn]) -> Vec<String> {
    let to = Printable(&real.to);
    let mut notes = Vec::new();
    for name in &real.from {
        let own = || told.iter().flat_map(|one| &one.sources).filter(move |of| of.from == *name);
        if own().map(|of| of.sent).sum::<u64>() > 0 && own().all(|of| of.received == 0) {
            let name = Printable(name);
            notes.push(format!(
                "fan-in: nothing that {name} sent came to {to}: does what lies between join them?"
            ));
        }
    }
    let took_all = |one: &&FanIn| {
        let sent: u64 = one.sources.iter().map(|of| of.sent).sum();
        sent > 0 && one.received as f64 >= TOOK_ALL * sent as f64
    };
    let all = told.iter().filter(took_all).count();
    if all > 0 {
        notes.push(format!(
            "fan-in: in {all} of {} subsets {to} took all that was sent: it was not the narrow place, and shares are \
             those of what each port sent. Twice --fan-in-takes is sent: name there what the port takes",
            told.len()
        ));
    }
    notes
}

/// Which ports send together: pairs, one of each size between, and all.
fn subsets(ports: u32, seed: u64) -> Vec<Vec<u32>> {
    let mut rng = Rng::stream(seed ^ ORDER, u64::MAX);
    let pairs = (0..ports).flat_map(|a| (a + 1..ports).map(move |b| vec![a, b]));
    let mut all: Vec<Vec<u32>> = pairs.collect();
    if all.len() > MOST_PAIRS {
        rng.shuffle(&mut all);
        all.truncate(MOST_PAIRS);
        all.sort_unstable();
    }
    for size in 3..ports {
        let mut drawn: Vec<u32> = (0..ports).collect();
        rng.shuffle(&mut drawn);
        drawn.truncate(size as usize);
        drawn.sort_unstable();
        all.push(drawn);
    }
    if ports > 2 {
        all.push((0..ports).collect());
    }
    all
}

impl Subset {
    fn told(&self, question: &FanInQuestion) -> FanIn {
        let places = 0..self.ports.len();
        let received: u64 = self.rounds.iter().flatten().map(|of| of.received).sum();
        let sources = places.map(|place| self.source(question, place, received)).collect();
        let offered = question.offered(&self.ports);
        FanIn {
            to: question.sink(),
            offered_pps: offered.iter().sum::<f64>() / offered.len().max(1) as f64,
            takes: question.narrow(&self.ports),
            sources,
            received,
        }
    }

    fn source(&self, question: &FanInQuestion, place: usize, of_all: u64) -> FanInShare {
        let own = || self.rounds.iter().filter_map(|round| round.get(place));
        let received: u64 = own().map(|of| of.received).sum();
        let share = if of_all > 0 { received as f64 / of_all as f64 } else { 0.0 };
        let shares: Vec<f64> =
            self.rounds.iter().filter_map(|round| share_of(round, place)).collect();
        let interval = Spread::of_mean(&shares).map(|spread| spread.around(share));
        FanInShare {
            from: question.source(self.ports[place]),
            sent: own().map(|of| of.sent).sum(),
            received,
            share,
            low: interval.map(|of| of.low.max(0.0)),
            high: interval.map(|of| of.high.min(1.0)),
        }
    }
}

/// The share of one source in one round; none where nothing came.
fn share_of(round: &[Counted], place: usize) -> Option<f64> {
    let all: u64 = round.iter().map(|of| of.received).sum();
    let own = round.get(place)?.received;
    (all > 0).then(|| own as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(ports: u32) -> FanInQuestion {
        FanInQuestion {
            over: FanInOver::Bed(Joining::Bridge),
            ports,
            takes: "20Mbit/s@L2".parse().unwrap(),
            frame_bytes: 512,
            sends: Vec::new(),
            weights: Vec::new(),
            rounds: 3,
            duration: Nanos::SECOND,
            seed: 7,
        }
    }

    #[test]
    fn pairs_and_a_subset_of_each_size_and_all_of_them_send_together() {
        assert_eq!(subsets(2, 1), [vec![0, 1]]);
        assert_eq!(subsets(3, 1), [vec![0, 1], vec![0, 2], vec![1, 2], vec![0, 1, 2]]);
        for (ports, seed) in [(4, 1), (8, 2), (16, 3)] {
            let all = subsets(ports, seed);
            assert_eq!(all, subsets(ports, seed), "the seed decides");
            assert_eq!(all.len(), MOST_PAIRS + ports as usize - 3 + 1);
            let each = Nanos::SECOND.0 + FILLING.0;
            assert_eq!(about(&question(ports)).0, 3 * all.len() as u64 * each, "as is told before");
            assert_eq!(all.last().unwrap().len(), ports as usize);
            for ports in &all {
                assert!(ports.windows(2).all(|two| two[0] < two[1]), "{ports:?}");
            }
        }
    }

    #[test]
    fn all_ports_together_send_twice_what_the_one_takes_each_by_its_part() {
        let plain = question(4);
        let offered = plain.offered(&[0, 2]);
        assert!((offered.iter().sum::<f64>() - 2.0 * 20e6 / 8.0 / 512.0).abs() < 1e-6);
        assert!((offered[0] - offered[1]).abs() < 1e-9);
        let weighted = FanInQuestion { sends: vec![3, 1, 1, 1], ..question(4) };
        let offered = weighted.offered(&[0, 2]);
        assert!((offered[0] / offered[1] - 3.0).abs() < 1e-9);
    }

    #[test]
    fn planted_counts_give_their_shares_with_the_interval_of_rounds() {
        let counted = |received| Counted { sent: 100, received };
        let rounds = vec![
            vec![counted(60), counted(40)],
            vec![counted(62), counted(38)],
            vec![counted(58), counted(42)],
        ];
        let told = Subset { ports: vec![1, 3], rounds }.told(&question(4));
        assert_eq!((told.received, told.sources.len()), (300, 2));
        let first = &told.sources[0];
        assert_eq!((first.from.as_str(), first.sent, first.received), ("source1", 300, 180));
        assert!((first.share - 0.6).abs() < 1e-9);
        let (low, high) = (first.low.unwrap(), first.high.unwrap());
        assert!(low < 0.6 && high > 0.6 && high - low < 0.12, "{low} {high}");
        let jain = told.fairness().unwrap();
        assert!((jain - 1.0 / (2.0 * (0.36 + 0.16))).abs() < 1e-9, "{jain}");
    }

    fn between(from: &[&str], to: &str) -> FanInQuestion {
        let from: Vec<String> = from.iter().map(|name| (*name).to_owned()).collect();
        let ports = from.len() as u32;
        FanInQuestion {
            over: FanInOver::Between(RealPorts { from, to: to.to_owned() }),
            ..question(ports)
        }
    }

    #[test]
    fn real_ports_are_named_once_each_and_are_not_made_narrow() {
        assert!(between(&["a", "b", "c"], "d").check().is_ok());
        let why = |of: FanInQuestion| of.check().unwrap_err().to_string();
        assert!(why(between(&["a", "b", "a"], "d")).contains("`a` is named twice"));
        assert!(why(between(&["a", "d"], "d")).contains("`d` is named twice"));
        assert!(why(between(&["a"], "d")).contains("2 to 16 ports"));
        let weighted = FanInQuestion { weights: vec![1, 2], ..between(&["a", "b"], "d") };
        assert!(why(weighted).contains("--fan-in-weights is for --box bridge or ovs"));
        let missing = are_here(&between(&["never-was", "b"], "d")).unwrap_err().to_string();
        assert!(missing.contains("no interface `never-was`"), "{missing}");
        assert!(are_here(&question(2)).is_ok(), "a bed makes its own");
    }

    #[test]
    fn a_real_port_that_took_all_or_got_nothing_is_told() {
        let asked = between(&["a", "b"], "d");
        let FanInOver::Between(real) = &asked.over else { unreachable!() };
        let told = |sent: u64, a: u64, b: u64| {
            let rounds = vec![vec![Counted { sent, received: a }, Counted { sent, received: b }]];
            Subset { ports: vec![0, 1], rounds }.told(&asked)
        };
        let narrow = told(100, 60, 40);
        assert_eq!((narrow.to.as_str(), narrow.takes.as_ref()), ("d", None));
        assert_eq!((narrow.sources[0].from.as_str(), narrow.sources[1].from.as_str()), ("a", "b"));
        assert!(of_real_ports(real, &[narrow]).is_empty());
        let notes = of_real_ports(real, &[told(100, 100, 0)]).join("\n");
        assert!(notes.contains("nothing that b sent came to d"), "{notes}");
        assert!(!notes.contains("took all"), "{notes}");
        let notes = of_real_ports(real, &[told(100, 60, 40), told(100, 100, 99)]).join("\n");
        assert!(notes.contains("in 1 of 2 subsets d took all"), "{notes}");
    }

    #[test]
    fn what_is_no_fan_in_is_refused() {
        assert!(question(2).check().is_ok());
        for wrong in [
            question(1),
            question(17),
            FanInQuestion { sends: vec![1], ..question(2) },
            FanInQuestion { weights: vec![1, 0], ..question(2) },
            FanInQuestion { takes: "100Gbit/s".parse().unwrap(), ..question(2) },
        ] {
            assert!(matches!(wrong.check(), Err(DeviceError::Refused(_))), "{wrong:?}");
        }
    }
}
