//! Text that comes from outside, and lists, made fit to print.

use std::fmt::{self, Write};

use crate::units::CpuId;

/// Text from the kernel or from a file, safe to print on a terminal.
///
/// Thread names and everything in a run directory may hold control characters; they are shown
/// escaped, so that no escape sequence reaches the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() || is_invisible(c) {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// Characters that change the direction or the look of the text around them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A set of CPUs as the kernel writes it: `2-5,8`; `none` when there is none.
#[derive(Debug, Clone, Copy)]
pub struct CpuList<'a>(pub &'a [CpuId]);

impl fmt::Display for CpuList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus: Vec<u32> = self.0.iter().map(|cpu| cpu.0).collect();
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.is_empty() {
            return f.pad("none");
        }
        let runs = cpus.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        let words: Vec<String> = runs
            .map(|run| match run {
                [first, .., last] => format!("{first}-{last}"),
                [only] => only.to_string(),
                [] => String::new(),
            })
            .collect();
        f.pad(&words.join(","))
    }
}

/// A number of bytes as people read it: `64 KiB`, `1.5 GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        /// More than this of a unit are read as a larger one.
        const MOST: u64 = 9_999;
        let whole = UNITS.iter().find(|(shift, _)| {
            self.0 >> shift > 0 && self.0.trailing_zeros() >= *shift && self.0 >> shift <= MOST
        });
        if let Some((shift, unit)) = whole {
            return f.pad(&format!("{} {unit}", self.0 >> shift));
        }
        match UNITS.iter().find(|(shift, _)| self.0 >> shift > 0) {
            Some((shift, unit)) if self.0 > MOST => {
                f.pad(&format!("{:.1} {unit}", self.0 as f64 / (1_u64 << shift) as f64))
            }
            _ => f.pad(&format!("{} bytes", self.0)),
        }
    }
}

/// A count with commas between its thousands: `12,345,678`.
#[must_use]
pub fn thousands_apart(n: u64) -> String {
    let digits = n.to_string();
    let mut apart = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// A share that is written as all of it, and is not, as a percentage that tells so; none of any other share.
#[must_use]
pub fn nearly_all(share: f64) -> Option<String> {
    // What a sum of shares is wrong by.
    const INEXACT: f64 = 1e-9;
    let percent = share * 100.0;
    match percent {
        99.95.. if share < 1.0 - INEXACT => Some(">99.9%".to_owned()),
        99.5..99.95 => Some(format!("{percent:.1}%")),
        _ => None,
    }
}

/// A share of a CPU as a percentage; one above that of all of so many CPUs never reads as theirs.
#[must_use]
pub fn percent_of(share: f64, cpus: usize) -> String {
    let whole = cpus as f64;
    let told = |share: f64| format!("{:.1} %", share * 100.0);
    if share > whole && told(share) == told(whole) {
        format!("just over {:.0} %", whole * 100.0)
    } else {
        told(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_a_unit_that_can_be_read() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (18, "18 bytes"),
            (9_999, "9999 bytes"),
            (65_536, "64 KiB"),
            (1_536 << 10, "1536 KiB"),
            (107_374_182_400, "100 GiB"),
            (107_374_182_401, "100.0 GiB"),
            (5_000_000_000, "4.7 GiB"),
            (12_345, "12.1 KiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn thousands_of_a_count_are_apart() {
        let told = [0, 999, 1_000, 12_345_678].map(thousands_apart);
        assert_eq!(told, ["0", "999", "1,000", "12,345,678"]);
        assert_eq!(thousands_apart(u64::MAX).replace(',', ""), u64::MAX.to_string());
    }

    #[test]
    fn cpus_print_as_ranges() {
        for (cpus, text) in [
            (vec![], "none"),
            (vec![0], "0"),
            (vec![2, 3, 4, 5, 8], "2-5,8"),
            (vec![8, 3, 2, 3], "2-3,8"),
            (vec![u32::MAX, 0], "0,4294967295"),
        ] {
            let cpus: Vec<CpuId> = cpus.into_iter().map(CpuId).collect();
            assert_eq!(CpuList(&cpus).to_string(), text);
        }
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let text = Printable("red\u{1b}[31m\n\u{202e}kworker/0:1 é").to_string();
        assert_eq!(text, "red\\u{1b}[31m\\n\\u{202e}kworker/0:1 é");
        for mark in ['\u{61c}', '\u{200f}', '\u{2066}', '\u{ad}', '\u{e0041}', '\u{85}'] {
            assert!(Printable(&mark.to_string()).to_string().is_ascii(), "{mark:?}");
        }
    }
}
