//! Patterns of arrivals, and how they are written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use super::MOST_PARTS;
use super::due::Picos;

/// Requests of a burst or a train at most: a socket's queue holds a few hundred.
const MOST_IN_GROUP: u32 = 4_096;
/// Requests with one gap of a sweep at most.
const MOST_EACH: u32 = 100_000_000;
/// The usual number of requests with each gap of a sweep.
const USUAL_EACH: u32 = 1_000;
const BURST: &str = "burst(32)";
const PAIR: &str = "pair(10us)";
const TRAIN: &str = "train(8,5us)";
const SWEEP: &str = "sweep(2us,1ms,10) or sweep(2us,1ms,10,5000)";

/// In which pattern requests are intended.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// One after every period.
    Constant,
    /// Independent of each other: exponential distances.
    Poisson,
    /// So many at one instant, then a pause.
    Burst {
        /// Requests of a burst.
        count: u32,
    },
    /// Two, then a pause.
    Pair {
        /// Distance of the two.
        apart: Nanos,
    },
    /// So many at a distance, then a pause.
    Train {
        /// Requests of a train.
        count: u32,
        /// Distance of neighbours.
        apart: Nanos,
    },
    /// One distance after the other, in equal ratios, and again from the first.
    Sweep {
        /// The first distance.
        from: Nanos,
        /// The last one.
        to: Nanos,
        /// Distances in all.
        steps: u32,
        /// Requests with each.
        each: u32,
    },
    /// The next when the reply to the one before has come: nothing is intended.
    Closed,
    /// At the instants of a capture, and again from the first.
    Capture {
        /// Since the first one; ascending.
        instants: Arc<[Picos]>,
    },
}

/// Why a text is no pattern of arrivals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalsError {
    /// The text is no call, or an argument is wrong.
    #[error(transparent)]
    Call(#[from] CallError),
    /// No such pattern.
    #[error(
        "`{0}` is not an arrival pattern: use constant, poisson, {BURST}, {PAIR}, {TRAIN}, \
         {SWEEP}, closed, or capture(FILE)"
    )]
    Unknown(String),
}

impl Arrivals {
    /// Requests of a group, and the distance of neighbours in it.
    #[must_use]
    pub(super) fn group(&self) -> (u32, Nanos) {
        match *self {
            Self::Burst { count } => (count, Nanos(0)),
            Self::Pair { apart } => (2, apart),
            Self::Train { count, apart } => (count, apart),
            _ => (1, Nanos(0)),
        }
    }

    /// What the parts of the schedule are, one label each; one part alone has none.
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        match *self {
            Self::Sweep { from, to, steps, .. } => {
                let gap = |step| super::due::sweep_gap(from, to, steps, step);
                (0..steps).map(|step| format!("gap {}", Nanos(gap(step).0 / 1_000))).collect()
            }
            _ => match self.group() {
                (1, _) => Vec::new(),
                (count, _) => {
                    (1..=count.min(MOST_PARTS)).map(|place| format!("place {place}")).collect()
                }
            },
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Closed => f.write_str("closed loop"),
            Self::Burst { count } => write!(f, "burst({count})"),
            Self::Pair { apart } => write!(f, "pair({apart})"),
            Self::Train { count, apart } => write!(f, "train({count},{apart})"),
            Self::Sweep { from, to, steps, each } => write!(f, "sweep({from},{to},{steps},{each})"),
            Self::Capture { instants } => write!(f, "capture of {} packets", instants.len()),
        }
    }
}

impl FromStr for Arrivals {
    type Err = ArrivalsError;

    fn from_str(text: &str) -> Result<Self, ArrivalsError> {
        let call = Call::parse(text)?;
        let arrivals = match call.name.to_ascii_lowercase().as_str() {
            "constant" => taking(&call, 0, "constant", Self::Constant)?,
            "poisson" => taking(&call, 0, "poisson", Self::Poisson)?,
            "closed" => taking(&call, 0, "closed", Self::Closed)?,
            "burst" => {
                let count = count(&call, 0, "count", BURST, MOST_IN_GROUP)?;
                taking(&call, 1, BURST, Self::Burst { count })?
            }
            "pair" => {
                let apart = call.time(0, "distance", PAIR)?;
                taking(&call, 1, PAIR, Self::Pair { apart })?
            }
            "train" => {
                let count = count(&call, 0, "count", TRAIN, MOST_IN_GROUP)?;
                let apart = call.time(1, "distance", TRAIN)?;
                taking(&call, 2, TRAIN, Self::Train { count, apart })?
            }
            "sweep" => {
                let from = call.time(0, "first distance", SWEEP)?;
                let to = call.time(1, "last distance", SWEEP)?;
                let steps = count(&call, 2, "number of distances", SWEEP, MOST_PARTS)?;
                let each = match call.arguments.len() {
                    0..=3 => USUAL_EACH,
                    _ => count(&call, 3, "requests with each", SWEEP, MOST_EACH)?,
                };
                taking(&call, 4, SWEEP, Self::Sweep { from, to, steps, each })?
            }
            _ => return Err(ArrivalsError::Unknown(text.to_owned())),
        };
        Ok(arrivals)
    }
}

fn taking(
    call: &Call,
    arguments: usize,
    usage: &'static str,
    arrivals: Arrivals,
) -> Result<Arrivals, CallError> {
    call.takes(arguments, usage).map(|()| arrivals)
}

/// Argument `index` as a number from 1 to `most`.
fn count(
    call: &Call,
    index: usize,
    what: &'static str,
    usage: &'static str,
    most: u32,
) -> Result<u32, CallError> {
    let text = call.argument(index, what, usage)?;
    match text.parse::<u32>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(call.refused(what, format!("`{text}` is not a number from 1 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_as_it_is_written() {
        for text in ["constant", "poisson", "burst(32)", "pair(10.0us)", "train(8,5.00us)"] {
            let arrivals: Arrivals = text.parse().unwrap();
            assert_eq!(arrivals.to_string(), text, "{text}");
        }
        let sweep: Arrivals = "SWEEP(2us, 1ms, 10)".parse().unwrap();
        let Arrivals::Sweep { from, to, steps: 10, each: USUAL_EACH } = sweep else { panic!() };
        assert_eq!((from, to), (Nanos(2_000), Nanos(1_000_000)));
        assert_eq!(sweep.parts().len(), 10);
        assert_eq!(Arrivals::Constant.parts(), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_what_is_one() {
        for (text, expected) in [
            ("", "a name is missing"),
            ("uniform", "use constant, poisson"),
            ("burst", "lacks its count"),
            ("burst(0)", "from 1 to 4096"),
            ("burst(4097)", "from 1 to 4096"),
            ("burst(3,4)", "too many"),
            ("pair(0us)", "the time must be above zero"),
            ("train(8)", "lacks its distance"),
            ("sweep(1us,2us,65)", "from 1 to 64"),
            ("constant(3)", "too many"),
        ] {
            let error = text.parse::<Arrivals>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
