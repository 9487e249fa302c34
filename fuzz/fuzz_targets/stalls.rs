//! Any bytes as a line of a reflector's pipe: what is read has its numbers in order, and anything else
//! is read as none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_net::serve::stalls::Line;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for line in text.lines() {
        let Some(read) = Line::parse(line) else { continue };
        // Nothing longer than a line that is told is one.
        assert!(line.len() <= 64, "{line}");
        if let Line::Stall { from, to } = read {
            assert!(from < to, "{line}");
        }
    }
});
