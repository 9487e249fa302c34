//! Any text as a box between two ports: one that is written as it is read and whose words are one word of a
//! command line, or a reason that is safe to print.
//!
//! Good seeds: `bridge`, `forward:xdp`, `testpmd:xdp`, `delay:uniform:5us..15us`, `between`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_record::device::TheBox;

fuzz_target!(|data: &[u8]| {
    match String::from_utf8_lossy(data).parse::<TheBox>() {
        Ok(of) => {
            let words = of.to_string();
            assert!(!words.contains(char::is_whitespace), "{words:?}");
            assert!(!matches!(&of, TheBox::Delay(law) if law.starts_with('-')), "{words:?}");
            assert_eq!(words.parse::<TheBox>(), Ok(of));
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() < 2_000 && !told.chars().any(char::is_control), "{told:?}");
        }
    }
});
