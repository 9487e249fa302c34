//! A whole forwarder without stamps beside testpmd in its mode `io`: `whylate forward --port dpdk --stamps
//! off` as it runs, with its counts, its looks at the end and its lengths that have to fit.

use std::sync::atomic::AtomicBool;

use whylate_clock::HardwareCounter;
use whylate_model::{Hertz, Nanos};
use whylate_net::forward::{Forwarder, Halt, Plan, Stamps, Told, open};
use whylate_port::device::{Device, Pages};
use whylate_port::{Frames, LinkOptions, Threads, Transport, Wait};
use whylate_sys::affinity;

use crate::peer::installed;
use crate::{ALONE, beside, cpus, now_s};

/// Of the ticks that it is for; nothing here is a time of the counter.
const RATE: Hertz = Hertz(2e9);
const LASTS: Nanos = Nanos(1_500_000_000);

type Forwards = Forwarder<HardwareCounter, Box<dyn Frames>>;

/// Frames that it has received until now, all of which it forwarded, after another while.
fn runs(forwarder: &mut Forwards) -> u64 {
    let stop = AtomicBool::new(false);
    let mut received = 0;
    let mut watch = |told: Told<'_>| {
        received = 0;
        for direction in told.account.directions {
            let counts = direction.counts;
            assert!(counts.closes() && counts.received == counts.forwarded, "{counts:?}");
            received += counts.received;
        }
    };
    forwarder.run(&Halt::new(&stop), &mut watch);
    received
}

#[test]
#[ignore = "live figure: to accept"]
fn a_whole_forwarder_without_stamps_stands_beside_testpmd() {
    let _alone = ALONE.lock();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    affinity::set(&[cpus.0]).unwrap();
    whylate_dpdk::register();
    let device = Device { pages: Pages::Ordinary, ..Device::default() };
    let plan = Plan {
        transport: Transport::Dpdk,
        interfaces: ["net_null4".to_owned(), "net_null5".to_owned()],
        link: LinkOptions { device, ..LinkOptions::default() },
        wait: Wait::Spin,
        threads: Threads::One,
        stamps: Stamps::Off,
        work: Nanos(0),
        interval: Nanos::SECOND,
        duration: Some(LASTS),
    };
    let mut opened = open(&plan, HardwareCounter::open().unwrap(), RATE).unwrap();
    affinity::set(&[cpus.1]).unwrap();
    let forwarder = &mut opened.forwarders[0];
    let mut before = runs(forwarder);
    let mut own = || {
        let start = now_s();
        let until_now = runs(forwarder);
        let rate = (until_now - before) as f64 / (now_s() - start);
        before = until_now;
        rate
    };
    beside("a forwarder on net_null", cpus, &mut own, (["net_null4", "net_null5"], &[]));
}
