//! Any text as a list of sockets gives sockets or a reason that names a line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_net::feed::{MOST_SOCKETS, parse};

fuzz_target!(|data: &[u8]| {
    match parse(&String::from_utf8_lossy(data)) {
        Ok(sockets) => assert!((1..=MOST_SOCKETS).contains(&sockets.len())),
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains("line ") && told.len() < 2_000, "{told}");
        }
    }
});
