//! Orders as lines of words: `delay 20us`, `loss back 0.01`, `show`, `stop`.

use whylate_model::{Nanos, Printable};

use crate::delay::law::{Amount, Law, Limit};
use crate::schedule::Rate;

/// A line that is longer is no order.
pub(super) const MOST_BYTES: usize = 512;
/// What is refused is shown up to here.
const SHOWN: usize = 60;
/// What can be said.
const KNOWN: &str = "say `delay 20us`, `loss 0.01`, `duplicate 0.01`, `reorder 0.01` or `rate 1Gbit/s` (of \
     one direction: `delay there 20us`, `delay back 20us`), `show` or `stop`";

/// What a line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// To hold frames back otherwise.
    Set { direction: Option<usize>, change: Change },
    /// To tell what became of frames.
    Show,
    /// To end.
    Stop,
}

/// One part of a law.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    Delay(Amount),
    Loss(f64),
    Duplicate(f64),
    Reorder(f64),
    Rate(Option<Limit>),
}

impl Change {
    /// The law with this part of it changed.
    pub(super) fn of(&self, law: &Law) -> Law {
        let law = law.clone();
        match self.clone() {
            Self::Delay(delay) => Law { delay, ..law },
            Self::Loss(loss) => Law { loss, ..law },
            Self::Duplicate(duplicate) => Law { duplicate, ..law },
            Self::Reorder(reorder) => Law { reorder, ..law },
            Self::Rate(rate) => Law { rate, ..law },
        }
    }
}

/// Reads a line; what is wrong with it otherwise, safe to be shown whatever the line held.
pub(super) fn read(line: &str) -> Result<Said, String> {
    order(line).map_err(|why| Printable(&why).to_string())
}

fn order(line: &str) -> Result<Said, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (what, direction, value) = match words[..] {
        ["show"] => return Ok(Said::Show),
        ["stop"] => return Ok(Said::Stop),
        [what, value] => (what, None, value),
        [what, "there", value] => (what, Some(0), value),
        [what, "back", value] => (what, Some(1), value),
        [what, other, _] if is_setting(what) => {
            return Err(format!("`{}` is no direction: it is there or back", shown(other)));
        }
        _ => return Err(unknown(line)),
    };
    let change = match what {
        "delay" => Change::Delay(delay(value)?),
        "loss" => Change::Loss(share(value)?),
        "duplicate" => Change::Duplicate(share(value)?),
        "reorder" => Change::Reorder(share(value)?),
        "rate" => Change::Rate(rate(value)?),
        _ => return Err(unknown(line)),
    };
    Ok(Said::Set { direction, change })
}

fn is_setting(what: &str) -> bool {
    ["delay", "loss", "duplicate", "reorder", "rate"].contains(&what)
}

fn unknown(line: &str) -> String {
    format!("`{}` is no order: {KNOWN}", shown(line))
}

fn shown(text: &str) -> String {
    text.trim().chars().take(SHOWN).flat_map(char::escape_default).collect()
}

/// `0` needs no unit.
fn delay(text: &str) -> Result<Amount, String> {
    if text == "0" {
        return Ok(Amount::Constant(Nanos(0)));
    }
    text.parse::<Amount>().map_err(|error| error.to_string())
}

/// `0.01`, or `1%`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / scale);
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        format!("`{}` is no share: write one from 0 to 1, such as 0.01 or 1%", shown(text))
    })
}

/// A rate, or `none`.
fn rate(text: &str) -> Result<Option<Limit>, String> {
    if text == "none" {
        return Ok(None);
    }
    let rate = text.parse::<Rate>().map_err(|error| format!("{error}, or none"))?;
    Ok(Some(Limit::from(rate)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_line_is_an_order_or_a_reason_that_is_safe_to_show(
            line in "((delay|loss|duplicate|reorder|rate)( there| back)? [0-9a-z%.,]{0,9})|.{0,80}",
        ) {
            let law = Law::constant(Nanos(10));
            match read(&line) {
                Ok(Said::Set { direction, change }) => {
                    prop_assert!(direction.is_none_or(|direction| direction < 2));
                    // One part is changed, and nothing else.
                    let changed = change.of(&law);
                    let back = match change {
                        Change::Delay(_) => Law { delay: law.delay.clone(), ..changed },
                        Change::Loss(_) => Law { loss: law.loss, ..changed },
                        Change::Duplicate(_) => Law { duplicate: law.duplicate, ..changed },
                        Change::Reorder(_) => Law { reorder: law.reorder, ..changed },
                        Change::Rate(_) => Law { rate: law.rate, ..changed },
                    };
                    prop_assert_eq!(back, law);
                }
                Ok(Said::Show | Said::Stop) => {}
                Err(why) => prop_assert!(!why.chars().any(char::is_control), "{why:?}"),
            }
        }
    }

    #[test]
    fn orders_are_read_and_change_one_part_of_a_law() {
        let law = Law { loss: 0.5, seed: 7, ..Law::constant(Nanos(10_000)) };
        for (line, direction, expected) in [
            ("delay 20us", None, Law { delay: Amount::Constant(Nanos(20_000)), ..law.clone() }),
            (
                " delay  there 0\r",
                Some(0),
                Law { delay: Amount::Constant(Nanos(0)), ..law.clone() },
            ),
            ("loss back 1%", Some(1), Law { loss: 0.01, ..law.clone() }),
            ("duplicate 0.25", None, Law { duplicate: 0.25, ..law.clone() }),
            ("reorder 1", None, Law { reorder: 1.0, ..law.clone() }),
            (
                "rate 50kpps",
                None,
                Law { rate: Some(Rate::Packets(50_000.0).into()), ..law.clone() },
            ),
            ("rate none", None, law.clone()),
        ] {
            let Said::Set { direction: found, change } = read(line).unwrap() else {
                panic!("{line}");
            };
            assert_eq!((found, change.of(&law)), (direction, expected), "{line}");
        }
        assert_eq!((read("show"), read("stop\n")), (Ok(Said::Show), Ok(Said::Stop)));
    }

    #[test]
    fn what_is_no_order_is_refused_with_its_reason() {
        for (line, why) in [
            ("", "is no order"),
            ("delay", "is no order"),
            ("delay 20", "is not a delay"),
            ("delay 20us 30us", "there or back"),
            ("loss 1.5", "is no share"),
            ("loss nan", "is no share"),
            ("loss -0.1", "is no share"),
            ("rate fast", "is not a rate"),
            ("delay 11s", "longer than"),
            ("show me", "is no order"),
            ("delay \u{1b}[31m", "is not a delay"),
            ("rate \u{1b}[31m", "is not a rate"),
            ("delay schedule:\u{1b}[31m", "cannot read the schedule"),
            // What never ends to be read, or to be opened, holds nobody up.
            ("delay schedule:/dev/zero", "no plain file"),
            ("delay schedule:/", "no plain file"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(why) && !refused.contains('\u{1b}'), "{line}: {refused}");
        }
    }
}
