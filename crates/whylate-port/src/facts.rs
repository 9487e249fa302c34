//! What a reader of a port's numbers must know: whose clock, how fine, how dear, how steady.

use whylate_clock::{Counter, cost};
use whylate_model::Hertz;

use crate::port::Wait;

/// Pairs of stamps taken in a row: their distance is the cost of one, and a constant.
const PAIRS: usize = 10_001;

/// A port's own description.
#[derive(Debug, Clone, PartialEq)]
pub struct PortFacts {
    /// `unix datagram`, `udp over ipv4`, `udp over ipv6`, `memory`.
    pub backend: &'static str,
    /// From where to where, as far as addresses tell: `127.0.0.1:4021 -> 127.0.0.1:4022`.
    pub path: String,
    /// How it waits.
    pub wait: Wait,
    /// How it stamps.
    pub stamps: StampFacts,
    /// The longest message in bytes.
    pub max_message: usize,
}

/// How a port stamps, measured when it was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct StampFacts {
    /// Who stamps, by which clock, and where: the vantage point.
    pub source: String,
    /// Smallest step that the clock shows.
    pub resolution_ns: f64,
    /// Cost of a stamp: smallest.
    pub read_cost_min_ns: f64,
    /// Cost of a stamp: median.
    pub read_cost_median_ns: f64,
    /// Spread of repeated measurements of a constant, the cost of a stamp: p99 minus p1.
    pub precision_ns: f64,
}

impl StampFacts {
    /// Measures stamps that are readings of `counter` around the system call.
    pub fn of_counter<C: Counter>(counter: &mut C, rate: Hertz) -> Self {
        let resolution = cost::resolution_ticks(counter);
        let mut distances: Vec<u64> = (0..PAIRS)
            .map(|_| {
                let (first, _) = counter.read_ordered();
                let (second, _) = counter.read_ordered();
                second.since(first).0
            })
            .collect();
        distances.sort_unstable();
        let ns = |ticks: u64| ticks as f64 * 1e9 / rate.0;
        Self {
            source: format!("{} read around the system call", C::KIND),
            resolution_ns: ns(resolution.0),
            read_cost_min_ns: ns(distances[0]),
            read_cost_median_ns: ns(distances[PAIRS / 2]),
            precision_ns: ns(distances[PAIRS * 99 / 100] - distances[PAIRS / 100]),
        }
    }
}
