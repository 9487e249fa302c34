//! The path of frames between two devices of DPDK, as compiled into the program.

use crate::listing::{Shape, functions, of, unfit};
use crate::peer::{absent, missing};
use crate::program;

/// The drivers' functions for a burst in and a burst out are found by tables; the compiler may have written
/// either of them twice.
const TABLES: std::ops::RangeInclusive<usize> = 1..=4;
/// It has a loop over the frames of a burst.
const SHORTEST: usize = 20;

#[test]
fn a_burst_between_devices_of_dpdk_takes_a_call_of_either_driver_and_nothing_is_allocated_or_stamped()
 {
    if !cfg!(target_arch = "x86_64") {
        return absent("the listing is read for x86-64 only");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|place| place.join("objdump"));
    let Some(objdump) = places.find(|file| file.is_file()) else {
        return missing("objdump is not installed (package binutils)");
    };
    let listing = of(&objdump, program::path());
    let found: Vec<Vec<&str>> = functions(&listing, "<why_pass>:").collect();
    assert_eq!(found.len(), 1, "the shim has one of it");
    let shape = Shape::of(&found[0]);
    println!("why_pass: {shape:?}");
    assert!(shape.unfit == 0 && shape.returns > 0, "{shape:?}: {:?}", unfit(&found[0]));
    assert!(TABLES.contains(&shape.by_table), "{shape:?}: {:#?}", found[0]);
    // Beside the drivers' functions it may release what they did not take, and look at it.
    assert!(shape.instructions >= SHORTEST, "{shape:?}: {:#?}", found[0]);
}
