//! Any text as a workload of rt-app gives a set of threads or a reason.
//!
//! The first byte chooses between the JSON reader alone, whose values read back as they print, and
//! the whole. Good seeds: `examples/*.json`, with a zero byte before each.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_rta::rtapp::{self, json};

fuzz_target!(|data: &[u8]| {
    let Some((choice, content)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(content);
    let error = if choice % 2 == 0 {
        let read = rtapp::parse(&text);
        // What is understood can be checked again, and says the same.
        read.map(|file| assert!(file.set.check().is_ok(), "checked, and then refused"))
            .map_err(|error| error.to_string())
    } else {
        json::read(&text)
            .map(|node| {
                let printed = node.value.to_string();
                // Names of control characters are longer than they are.
                if printed.len() <= json::LONGEST {
                    let again = json::read(&printed).map(|node| node.value.to_string());
                    assert_eq!(again, Ok(printed), "printed, and read back otherwise");
                }
            })
            .map_err(|malformed| malformed.reason)
    };
    if let Err(error) = error {
        assert!(!error.is_empty() && error.len() < 20_000, "a message of {} bytes", error.len());
    }
});
