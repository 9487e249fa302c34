//! Any text as a task-set file, as the command line of Hourglass and as one thread's word gives a set
//! or a reason.
//!
//! The first byte chooses which. What names a table of execution times gets one of two rows. Good
//! seeds: `examples/*.toml`, with a zero byte before each.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_rta::{file, flag, hourglass};

/// Threads that were asked for before the word.
const BEFORE: usize = 3;

fuzz_target!(|data: &[u8]| {
    let Some((choice, content)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(content);
    let error = match choice % 3 {
        0 => {
            let table = |name: &str| match name {
                "none" => Err("there is none".to_owned()),
                _ => Ok("2ms\n3ms\n".to_owned()),
            };
            // What is understood can be checked again, and says the same.
            let set = file::parse(&text, &table);
            set.map(|file| assert!(file.set.check().is_ok(), "checked, and then refused"))
                .map_err(|error| error.to_string())
        }
        1 => {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            hourglass::parse(&words).map(drop).map_err(|error| error.to_string())
        }
        _ => flag::threads(&text, BEFORE).map(drop).map_err(|error| error.to_string()),
    };
    if let Err(error) = error {
        assert!(!error.is_empty() && error.len() < 10_000, "a message of {} bytes", error.len());
    }
});
