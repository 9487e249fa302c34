//! All figures, one file each.

#![expect(clippy::unnecessary_wraps, reason = "a round may say why it is left out; most need not")]

use accept::figure::Figure;

mod device_bounds;
mod device_fan_in;
mod one_way_below_there_and_back;
mod residence_in_the_round_trip;
mod residence_of_planted_work;
mod wait_in_the_ring;
mod card_in_a_guest;
mod hourglass2002_repeated;
mod hourglass2002_timers;
mod load_arrives;
mod page_drawn;
mod pam2017_repeated;
mod wake_beside_cyclictest;

/// All of them, in the order in which they are taken and told.
pub(crate) const ALL: &[&Figure] = &[
    &device_bounds::FIGURE,
    &device_fan_in::FIGURE,
    &one_way_below_there_and_back::FIGURE,
    &residence_in_the_round_trip::FIGURE,
    &residence_of_planted_work::FIGURE,
    &wait_in_the_ring::FIGURE,
    &card_in_a_guest::FIGURE,
    &hourglass2002_repeated::FIGURE,
    &hourglass2002_timers::FIGURE,
    &load_arrives::FIGURE,
    &page_drawn::FIGURE,
    &pam2017_repeated::FIGURE,
    &wake_beside_cyclictest::FIGURE,
];
