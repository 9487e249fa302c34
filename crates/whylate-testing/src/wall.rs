//! Whether the wall clock of this machine is set while a test looks: a daemon that keeps the time may do so at any
//! moment, and what is told of a step is then true.

use whylate_sys::nanosleep::{Clock, clock_ns};

/// What a daemon may slew it by in as long, as a share: twice what the kernel lets it.
const SLEW: f64 = 1e-3;
/// What two readings are apart on a machine that leaves the reader its CPU between them.
const APART_NS: f64 = 5e5;

/// The wall clock beside one that nobody sets or slews.
pub struct Wall {
    raw_ns: u64,
    beside_ns: i128,
}

impl Wall {
    pub fn now() -> Self {
        // The quickest of some: of a reader that lost its CPU between two readings they are far apart.
        let reading = |_| {
            let before = clock_ns(Clock::MonotonicRaw);
            let wall = clock_ns(Clock::Realtime);
            let after = clock_ns(Clock::MonotonicRaw);
            (after - before, before, i128::from(wall) - i128::from(before))
        };
        let (_, raw_ns, beside_ns) = (0..10).map(reading).min().unwrap();
        Self { raw_ns, beside_ns }
    }

    /// Was it set since then?
    pub fn was_set(&self) -> bool {
        let now = Self::now();
        was_set(now.raw_ns - self.raw_ns, now.beside_ns - self.beside_ns)
    }
}

/// Did it move by more against the other clock in so long than a daemon slews it?
fn was_set(took_ns: u64, moved_ns: i128) -> bool {
    moved_ns.unsigned_abs() as f64 > APART_NS + SLEW * took_ns as f64
}

#[test]
fn a_clock_that_is_slewed_was_not_set_and_one_that_moved_by_more_was() {
    let (second, half_an_ms) = (1_000_000_000, 500_000);
    assert!(!was_set(second, half_an_ms) && !was_set(second, -half_an_ms));
    assert!(was_set(second, 4 * half_an_ms) && was_set(second, -4 * half_an_ms));
    assert!(was_set(0, -86_400_000_000_000));
}
