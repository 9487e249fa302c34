//! Any bytes as a capture to replay, by its name one of pcap and pcapng or one of ERF: instants that never go
//! back, or a reason that is safe to print.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whylate_net::capture::{Capture, Cut};
use whylate_net::schedule::{Picos, Plan};

fuzz_target!(|data: &[u8]| {
    let Some((choice, content)) = data.split_first() else { return };
    let cut = if choice % 2 == 0 { Cut::Refused } else { Cut::Taken };
    let name = if choice & 2 == 0 { "fuzzed" } else { "fuzzed.erf" };
    match Capture::parse(Path::new(name), content, cut) {
        Ok(capture) => {
            assert!(capture.instants.is_sorted() && capture.instants[0] == Picos(0));
            assert!(capture.instants.len() <= content.len());
            let plan = Plan { arrivals: capture.arrivals(), per_second: 0.0, seed: 0 };
            assert!(plan.check().is_ok() && plan.mean_rate() > 0.0);
            let due: Vec<Picos> = plan.begin().take(200).map(|due| due.after).collect();
            assert!(due.is_sorted());
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() < 1_000 && told.chars().all(|c| !c.is_control()), "{told}");
        }
    }
});
