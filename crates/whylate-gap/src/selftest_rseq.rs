//! Does the rseq word tell a context switch on this kernel?
//!
//! The kernel clears the word of a thread that it switches out while the thread runs outside the
//! critical section that the word names. That is checked, not believed: before each measurement a
//! thread lets itself be switched out and looks, and then runs undisturbed and looks.

use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos};
use whylate_sys::rseq::RseqArea;
use whylate_sys::switches;

/// Times the thread is switched out.
const SWITCHES: u32 = 5;
/// Short stretches of running, most of which nothing interrupts.
const STRETCHES: u32 = 50;
const STRETCH: Nanos = Nanos(5_000);

/// Gives the area back if the word can be trusted, and the reason if not.
pub fn check<C: Counter>(counter: &mut C, rate: Hertz, area: RseqArea) -> Result<RseqArea, String> {
    for _ in 0..SWITCHES {
        area.arm();
        let before = switches::thread_switches();
        std::thread::sleep(Duration::from_micros(50));
        let after = switches::thread_switches();
        let switched = after.voluntary + after.involuntary > before.voluntary + before.involuntary;
        if switched && area.is_set() {
            return Err("the word was still set after the thread had been switched out".to_owned());
        }
    }
    let mut survived = 0;
    for _ in 0..STRETCHES {
        area.arm();
        let end = counter.read() + STRETCH.to_ticks(rate);
        while counter.read() < end {}
        survived += u32::from(area.is_set());
    }
    if survived == 0 {
        return Err(format!("the word was cleared in {STRETCHES} of {STRETCHES} quiet stretches"));
    }
    Ok(area)
}
