//! A box beside bursts on its CPU that its own frames set off: all are accounted for.

use whylate_sys::affinity;

use super::hogs::{Hog, disturbed};
use super::{SHORT, adds_up, possible};
use crate::{needs, program};

#[test]
fn frames_of_a_box_set_off_bursts_on_its_cpu_and_all_are_accounted_for() {
    let _alone = program::alone();
    if !possible() || !needs::real_time() {
        return;
    }
    let cpus = affinity::get();
    let (Some(&cpu), Some(&client)) = (cpus.first(), cpus.last()) else { return };
    let words = format!("device --box forward:packet {SHORT}");
    let (run, bursts) = disturbed(&words, Hog::ByFrames, (cpu, client));
    let sizes = &run.device.as_deref().expect("a device").sizes;
    assert_eq!(sizes.len(), 2, "both ways");
    sizes.iter().for_each(adds_up);
    assert!(bursts > 0, "no frame of {sizes:?} set off one");
}
