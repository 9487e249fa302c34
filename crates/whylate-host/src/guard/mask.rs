//! CPU masks as `/proc` and `/sys` write them: hexadecimal, groups of eight digits.

use whylate_model::CpuId;

/// The mask `text` without `cpus`, written with as many digits and groups as before; `None` when
/// `text` is no mask or no CPU would be left.
pub(crate) fn without(text: &str, cpus: &[CpuId]) -> Option<String> {
    let text = text.trim();
    let mut digits = Vec::with_capacity(text.len());
    for character in text.chars().filter(|&c| c != ',') {
        digits.push(character.to_digit(16)?);
    }
    for cpu in cpus {
        let place = cpu.0 as usize / 4;
        if let Some(at) = digits.len().checked_sub(place + 1) {
            digits[at] &= !(1 << (cpu.0 % 4));
        }
    }
    if digits.iter().all(|&digit| digit == 0) {
        return None;
    }
    let mut rest = digits.into_iter();
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ',' => out.push(','),
            _ => out.push(char::from_digit(rest.next()?, 16)?),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_taken_out_and_the_layout_is_kept() {
        assert_eq!(without("3\n", &[CpuId(1)]).as_deref(), Some("1"));
        assert_eq!(without("0f", &[CpuId(0), CpuId(3)]).as_deref(), Some("06"));
        let wide = "ff,ffffffff";
        assert_eq!(without(wide, &[CpuId(32), CpuId(31)]).as_deref(), Some("fe,7fffffff"));
        assert_eq!(without(wide, &[CpuId(4000)]).as_deref(), Some(wide));
    }

    #[test]
    fn empty_results_and_garbage_are_none() {
        assert_eq!(without("2", &[CpuId(1)]), None);
        assert_eq!(without("", &[CpuId(1)]), None);
        assert_eq!(without("0-3", &[CpuId(1)]), None);
    }
}
