//! Any text as orders to a delay line and as the steps of a schedule: a law that can be kept, no change,
//! or a reason that is safe to print. No order names a file here: what a file holds is a text of its own.
//!
//! Good seeds: `delay there 20us`, `loss back 1%`, `rate 1Gbit/s@L2`, `0 10us`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_model::Nanos;
use whylate_net::delay::control::understood;
use whylate_net::delay::{Amount, LONGEST_DELAY, Law};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut law = Law::constant(Nanos(10_000));
    for line in text.lines().filter(|line| !line.contains("schedule:")) {
        match understood(line, &law) {
            Ok(Some(changed)) => {
                assert!(
                    changed.check().is_ok() && changed.longest() <= LONGEST_DELAY,
                    "{changed:?}"
                );
                assert!(is_safe(&changed.to_string()), "{changed}");
                law = changed;
            }
            Ok(None) => {}
            Err(why) => assert!(is_safe(&why), "{why:?}"),
        }
    }
    if let Ok(Amount::Schedule(steps)) = Amount::schedule(&text) {
        assert!(!steps.is_empty() && steps.is_sorted_by(|one, next| one.0 < next.0));
    }
});

fn is_safe(told: &str) -> bool {
    !told.chars().any(char::is_control)
}
