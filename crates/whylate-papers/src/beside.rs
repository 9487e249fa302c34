//! A figure of this host beside another one: is a difference shown?
//!
//! Two figures differ where their 95 % intervals lie apart, which is stricter than a test of the
//! difference. Where they overlap, no difference is shown: that is a result, and it is said.

use crate::spelled::{in_unit, shares};
use whylate_model::paper::{Agreement, Here, Unit};
use whylate_stats::share;

/// A figure that one of this host is set beside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Other {
    /// Whose it is, as in "no difference from NAME is shown".
    pub(crate) name: String,
    /// The ends are not in the name.
    ends: bool,
    low: f64,
    high: f64,
}

/// How a figure stands to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The intervals overlap.
    Same,
    Below,
    Above,
}

impl Other {
    /// A share that a paper counted; its interval is by the counts alone.
    pub(crate) fn counted(yes: u64, all: u64) -> Self {
        let (low, high) = share::interval(yes as f64, all as f64);
        Self { name: format!("the paper's {yes} of {all}"), ends: true, low, high }
    }

    /// A figure of a paper that has no interval.
    pub(crate) fn stated(name: &str, value: f64) -> Self {
        Self { name: format!("the paper's {name}"), ends: false, low: value, high: value }
    }

    /// What is expected of this host, between two ends.
    pub(crate) fn own(name: &str, (low, high): (f64, f64)) -> Self {
        Self { name: name.to_owned(), ends: true, low, high }
    }

    /// Another figure of this host; none where it has no interval.
    pub(crate) fn measured(name: &str, here: &Here) -> Option<Self> {
        let (low, high) = interval(here)?;
        Some(Self { name: name.to_owned(), ends: true, low, high })
    }

    /// How a figure stands to it; none where the figure has no interval.
    pub(crate) fn standing(&self, here: &Here) -> Option<Standing> {
        let (low, high) = interval(here)?;
        Some(match () {
            () if high < self.low => Standing::Below,
            () if low > self.high => Standing::Above,
            () => Standing::Same,
        })
    }

    /// Does the figure agree with it? None where the figure has no interval.
    pub(crate) fn agreement(&self, here: &Here) -> Option<Agreement> {
        Some(Agreement::of(self.standing(here)? == Standing::Same))
    }

    /// The same as a clause of a sentence.
    pub(crate) fn told(&self, here: &Here) -> String {
        let name = &self.name;
        let unit = unit(here);
        let own = match () {
            () if !self.ends => String::new(),
            () if self.low < self.high && unit == Unit::Share => {
                format!(" ({})", shares(self.low, self.high))
            }
            () if self.low < self.high => {
                format!(" ({} .. {})", in_unit(self.low, unit), in_unit(self.high, unit))
            }
            () => format!(" ({})", in_unit(self.low, unit)),
        };
        match self.standing(here) {
            Some(Standing::Same) if self.low < self.high => {
                format!("no difference from {name}{own} is shown: the intervals overlap")
            }
            Some(Standing::Same) => {
                format!("no difference from {name}{own} is shown: it is within the interval")
            }
            Some(Standing::Below) => format!("less than {name}{own}"),
            Some(Standing::Above) => format!("more than {name}{own}"),
            None => format!("it has no interval, so that nothing is claimed beside {name}"),
        }
    }
}

/// What a paper counted, with its share where there were some.
pub(crate) fn counted(yes: u64, all: u64) -> String {
    let [yes_of, of] = [yes, all].map(|n| in_unit(n as f64, Unit::Count));
    match yes {
        0 => format!("{yes_of} of {of}"),
        _ => format!("{yes_of} of {of} ({:.0}%)", 100.0 * yes as f64 / (all as f64).max(1.0)),
    }
}

/// Counts are compared as shares of what they were counted of.
fn unit(here: &Here) -> Unit {
    if here.unit == Unit::Count { Unit::Share } else { here.unit }
}

fn interval(here: &Here) -> Option<(f64, f64)> {
    let (low, high) = here.interval?;
    match here.unit {
        Unit::Count => {
            let n = here.n.filter(|n| *n > 0)? as f64;
            Some((low / n, high / n))
        }
        _ => Some((low, high)),
    }
}

/// Clauses of one sentence; what has nothing to say is left out.
pub(crate) fn sentence(clauses: impl IntoIterator<Item = Option<String>>) -> String {
    let said: Vec<String> = clauses.into_iter().flatten().filter(|of| !of.is_empty()).collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(value: f64, low: f64, high: f64) -> Here {
        Here { value, unit: Unit::Share, interval: Some((low, high)), n: Some(300) }
    }

    #[test]
    fn a_difference_is_claimed_only_where_intervals_lie_apart() {
        let paper = Other::counted(142, 285);
        for (here, standing, words) in [
            (share(0.45, 0.40, 0.50), Standing::Same, "no difference from the paper's 142 of 285"),
            (share(0.02, 0.01, 0.04), Standing::Below, "less than the paper's 142 of 285 (44"),
            (share(0.80, 0.70, 0.90), Standing::Above, "more than the paper's 142 of 285"),
        ] {
            assert_eq!(paper.standing(&here), Some(standing), "{here:?}");
            assert!(paper.told(&here).contains(words), "{}", paper.told(&here));
        }
        let bare = Here { interval: None, ..share(0.5, 0.0, 1.0) };
        assert_eq!((paper.standing(&bare), paper.agreement(&bare)), (None, None));
        let agrees = |low, high| paper.agreement(&share(0.5, low, high));
        assert_eq!(agrees(0.4, 0.6), Some(Agreement::Agrees));
        assert_eq!(agrees(0.7, 0.9), Some(Agreement::Differs));
        assert_eq!([counted(142, 285), counted(0, 1_001)], ["142 of 285 (50%)", "0 of 1,001"]);
        assert!(paper.told(&bare).contains("nothing is claimed"));
    }

    #[test]
    fn counts_are_compared_as_shares_of_what_they_are_of() {
        // 284 of 65 000 are 0.44 %.
        let paper = Other::counted(284, 65_000);
        let of = |low, high| Here {
            value: 4.0,
            unit: Unit::Count,
            interval: Some((low, high)),
            n: Some(1_000),
        };
        assert_eq!(paper.standing(&of(1.0, 9.0)), Some(Standing::Same));
        assert_eq!(paper.standing(&of(0.0, 3.0)), Some(Standing::Below));
        assert_eq!(paper.standing(&of(6.0, 9.0)), Some(Standing::Above));
        let told = paper.told(&of(0.0, 3.0));
        assert!(told.contains("0.39% .. 0.49%") || told.contains("0.388%"), "{told}");
    }

    #[test]
    fn two_figures_of_this_host_are_held_against_each_other_the_same_way() {
        let control = Other::measured("control 1", &share(0.05, 0.02, 0.10)).unwrap();
        assert_eq!(control.standing(&share(0.03, 0.01, 0.06)), Some(Standing::Same));
        assert!(control.told(&share(0.3, 0.2, 0.4)).starts_with("more than control 1 ("));
        let none = Other::stated("0.0%", 0.0);
        assert_eq!(none.standing(&share(0.0, 0.0, 0.01)), Some(Standing::Same));
        assert!(none.told(&share(0.1, 0.05, 0.2)).starts_with("more than the paper's 0.0%"));
    }

    #[test]
    fn clauses_without_anything_to_say_leave_no_trace() {
        let clauses = [Some("a".to_owned()), None, Some(String::new()), Some("b".to_owned())];
        assert_eq!(sentence(clauses), "a; b");
    }
}
