//! Any text as a pattern of arrivals and as a rate: a plan whose instants never go back, or a reason.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_net::schedule::{Arrivals, Plan, Rate};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (pattern, rate) = text.split_once(' ').unwrap_or((&text, "1kpps"));
    let (Ok(arrivals), Ok(rate)) = (pattern.parse::<Arrivals>(), rate.parse::<Rate>()) else {
        return;
    };
    let plan = Plan { arrivals, per_second: rate.per_second(64), seed: 1 };
    if plan.check().is_ok() {
        let due: Vec<u64> = plan.begin().take(300).map(|due| due.after.0).collect();
        assert!(due.is_sorted(), "{plan:?}");
    }
});
