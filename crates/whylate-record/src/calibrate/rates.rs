//! One rate for all: curves of clients that do not send as much cannot be set beside each other.

use whylate_model::calibration_parts::HeldRate;

/// A rate is held where so much of it came about.
const HELD: f64 = 0.99;
/// What all hold a little less of is tried next.
const A_LITTLE_LESS: f64 = 0.95;
/// Who holds no more than that does not lower everybody's rate: something is wrong with it.
const LEAST_PPS: f64 = 100.0;
/// Achieved rates further apart are of different traffic.
const APART: f64 = 0.01;
/// Frames that come by the wrong port before it is called that: hosts send a few of themselves.
const FEWEST_FRAMES: u64 = 100;
/// Times that a rate is tried.
pub(super) const MOST_TRIES: usize = 4;

/// What is to be done after all were asked for a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// All hold it.
    Held,
    /// Ask all for so many a second.
    Try(f64),
}

/// What came about of what was asked for, by what the sink says.
fn of(held: &HeldRate) -> f64 {
    held.sent_pps.min(held.received_pps)
}

/// Is this one of use at all?
pub(super) fn is_alive(held: &HeldRate) -> bool {
    of(held) >= LEAST_PPS.min(HELD * held.asked_pps)
}

/// Do the client's messages come to the line by its second port, though it sends them to the first? A few
/// frames that hosts send of themselves say nothing.
pub(crate) fn are_ports_swapped([there, back]: [u64; 2]) -> bool {
    back > there && back >= FEWEST_FRAMES
}

/// What the backends that are of use held decides.
pub(super) fn next(asked_pps: f64, held: &[HeldRate]) -> Next {
    let lowest = held.iter().filter(|held| is_alive(held)).map(of).fold(f64::INFINITY, f64::min);
    if lowest >= HELD * asked_pps { Next::Held } else { Next::Try(A_LITTLE_LESS * lowest) }
}

/// Why the curves of two backends are not to be compared; none where all may be.
pub(super) fn apart(achieved: &[(String, f64)]) -> Vec<String> {
    let fastest = achieved.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let Some((most, fastest)) = fastest else { return Vec::new() };
    let slower = achieved.iter().filter(|(_, pps)| *pps < fastest * (1.0 - APART));
    let told = slower.map(|(name, pps)| {
        format!(
            "{name} sent {pps:.0} messages a second and {most} {fastest:.0}, which is more than 1 % \
             apart: their curves are not compared"
        )
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str, asked_pps: f64, sent_pps: f64, received_pps: f64) -> HeldRate {
        HeldRate { backend: name.to_owned(), attempt: 0, asked_pps, sent_pps, received_pps }
    }

    #[test]
    fn the_rate_is_lowered_to_a_little_less_than_what_the_slowest_holds_at_its_sink() {
        let all = [held("a", 1e5, 1e5, 99_900.0), held("b", 1e5, 1e5, 6e4)];
        assert_eq!(next(1e5, &all), Next::Try(A_LITTLE_LESS * 6e4));
        let all = [held("a", 57e3, 57e3, 57e3), held("b", 57e3, 56_900.0, 56_900.0)];
        assert_eq!(next(57e3, &all), Next::Held);
    }

    #[test]
    fn one_that_does_nothing_lowers_nobodys_rate() {
        let all = [held("a", 1e4, 1e4, 1e4), held("b", 1e4, 1e4, 3.0)];
        assert!(!is_alive(&all[1]));
        assert_eq!(next(1e4, &all), Next::Held);
        // Of a rate that is as low itself it is something.
        assert!(is_alive(&held("a", 20.0, 20.0, 20.0)));
    }

    #[test]
    fn ports_are_swapped_where_the_clients_messages_come_by_the_second() {
        assert!(are_ports_swapped([3, 5_000]));
        assert!(!are_ports_swapped([5_000, 3]) && !are_ports_swapped([0, 12]));
    }

    #[test]
    fn achieved_rates_more_than_a_percent_apart_are_not_compared_and_named() {
        let of = |pps: &[f64]| {
            let named = (0..).zip(pps).map(|(number, pps): (u32, _)| (format!("b{number}"), *pps));
            apart(&named.collect::<Vec<_>>())
        };
        assert!(of(&[10_000.0, 9_950.0, 9_910.0]).is_empty());
        let told = of(&[10_000.0, 9_800.0]);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("b1 sent 9800") && told[0].contains("b0 10000"), "{told:?}");
        assert!(of(&[]).is_empty());
    }
}
