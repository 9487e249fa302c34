//! Which process made a thing, by the name that whylate or a test of it gave the thing.

/// Words behind `whylate-` in front of a process: what the program calls its own beds.
const BEDS: [&str; 3] = ["device", "fan", "cal"];
/// The parts of a bed.
const PARTS: [&str; 3] = ["client", "device", "server"];

/// The process: `whylate-71-gaps`, `whylate-test-71`, `whylate-trace-test-a-71`, `planted-71`,
/// `whylate-t71-open-client`, `whylate-fan-71-server`.
pub(super) fn maker(name: &str) -> Option<u32> {
    if let Some(process) = name.strip_prefix("planted-") {
        return number(process);
    }
    let words: Vec<&str> = name.strip_prefix("whylate-")?.split('-').collect();
    match words.as_slice() {
        ["test", .., last] | ["trace", "test", .., last] => number(last),
        [kind, process, ..] if BEDS.contains(kind) => number(process),
        [first, ..] => number(first).or_else(|| number(first.strip_prefix(['t', 'r'])?)),
        [] => None,
    }
}

/// The bed that the namespace is part of.
pub(super) fn bed(namespace: &str) -> Option<&str> {
    let (bed, part) = namespace.strip_prefix("whylate-")?.rsplit_once('-')?;
    PARTS.contains(&part).then_some(bed)
}

/// In its one spelling.
fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number > 0 && number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_maker() {
        for name in [
            "whylate-71-gaps",
            "whylate-71",
            "whylate-71-box0",
            "whylate-71-quota-a",
            "whylate-test-71",
            "whylate-test-purpose-71",
            "whylate-trace-test-two-words-71",
            "planted-71",
            "whylate-t71-open-client",
            "whylate-r71-tap-server",
            "whylate-device-71-a-device",
            "whylate-fan-71-client",
            "whylate-cal-71-d-client",
        ] {
            assert_eq!(maker(name), Some(71), "{name}");
        }
    }

    #[test]
    fn names_of_others_have_none() {
        for name in [
            "",
            "71",
            "whylate",
            "whylate-",
            "whylate-lab-client",
            "whylate-two-71-client",
            "whylate-071-a",
            "whylate-0-a",
            "whylate-x71-client",
            "other-71",
            "planted-a",
            "whylate-test-",
            "whylate-test",
            "whylate-killer2017-client",
            "whylate-99999999999-a",
        ] {
            assert_eq!(maker(name), None, "{name}");
        }
    }

    #[test]
    fn a_namespace_of_a_bed_tells_the_bed() {
        assert_eq!(bed("whylate-t71-open-client"), Some("t71-open"));
        assert_eq!(bed("whylate-t71-device-server"), Some("t71-device"));
        assert_eq!(bed("whylate-test-71"), None);
        assert_eq!(bed("client"), None);
    }
}
