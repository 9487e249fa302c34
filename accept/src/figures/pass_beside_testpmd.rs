//! Passing frames on between devices of DPDK, beside Debian's testpmd in its mode `io`, on the same CPU in
//! turn, with the same devices, bursts and memory: the library alone, and a whole forwarder without stamps,
//! with its counts, its looks at the end and its lengths that have to fit.

use accept::figure::{Bound, Figure, Row};

use crate::over_dpdk;
#[cfg(not(feature = "dpdk"))]
use crate::over_dpdk::not_built as round;

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "ratio", bound: Bound::AtLeast(0.9) }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "pass_beside_testpmd",
    method: "frames passed on both ways as fast as it goes, between two runs of testpmd's io",
    rows: &[
        row("frames a second over testpmd's, on net_null"),
        row("frames a second of a whole forwarder over testpmd's, on net_null"),
        row("frames a second over testpmd's, on net_memif"),
    ],
    rounds: 6,
    seconds: 12.4,
    most_taken: Some(0.05),
    needs: over_dpdk::library,
    round,
};

#[cfg(feature = "dpdk")]
use taken::round;

#[cfg(feature = "dpdk")]
mod taken {
    use std::sync::atomic::AtomicBool;

    use accept::figure::{Reading, Round};
    use whylate_clock::HardwareCounter;
    use whylate_dpdk::io::Stamps;
    use whylate_model::{Hertz, Nanos};
    use whylate_net::forward::{Forwarder, Halt, Plan, Stamps as Stamped, Told, open};
    use whylate_port::device::{Device, Pages};
    use whylate_port::{Frames, LinkOptions, Threads, Transport, Wait};
    use whylate_sys::nanosleep::{Clock, clock_ns};

    use crate::dpdk::{BURST, Kept, opened, rate};
    use crate::over_dpdk::cpus;
    use crate::peer::Testpmd;
    use crate::tool::memif;
    use crate::ways::Cpus;

    /// How long we take; testpmd tells its rate of each second.
    const TICKS: u64 = 1_500_000_000;
    const LASTS: Nanos = Nanos(700_000_000);

    pub(super) fn round(_: Round) -> Result<Vec<Reading>, String> {
        let cpus = cpus();
        let nulls = ["net_null0".to_owned(), "net_null1".to_owned()];
        let peer = theirs(cpus, &nulls, &[]);
        let (library, whole) = (on_null(cpus), by_a_forwarder(cpus));
        let again = theirs(cpus, &nulls, &[]);
        let beside = |ours: f64| Reading::Beside { peer, ours, again };
        let mut readings = vec![beside(library), beside(whole)];
        let shared = ["server", "client"]
            .map(|role| memif("theirs", 0, role).replace("net_memif0", number_of(role)));
        let peer = theirs(cpus, &shared, &["--tx-first"]);
        let ours = on_memif(cpus);
        let again = theirs(cpus, &shared, &["--tx-first"]);
        readings.push(Reading::Beside { peer, ours, again });
        Ok(readings)
    }

    /// Both ends in one process have names of their own, and the one socket.
    fn number_of(role: &str) -> &'static str {
        if role == "server" { "net_memif0" } else { "net_memif1" }
    }

    /// Frames a second, both ways together, by testpmd, as it tells itself.
    fn theirs(cpus: Cpus, devices: &[String; 2], words: &[&str]) -> f64 {
        let mut all = vec!["--forward-mode=io", "--burst=32"];
        all.extend(words);
        let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
        let peer = Testpmd::start((cpus.0.0, cpus.1.0), &devices, &all);
        let port = |line: &str| {
            let rate = line.trim().strip_prefix("Rx-pps:")?;
            rate.split_whitespace().next()?.parse::<f64>().ok()
        };
        let tells = || peer.next(port).expect("testpmd tells its rate");
        let both = || tells() + tells();
        // Of the first second it is warm.
        both();
        both()
    }

    fn on_null(cpus: Cpus) -> f64 {
        let elsewhere = Kept::to(cpus.0);
        let (mut near, mut far) = (opened("net_null0"), opened("net_null1"));
        drop(elsewhere);
        let _here = Kept::to(cpus.1);
        rate((&mut near, &mut far), Stamps::Off, TICKS)
    }

    fn on_memif(cpus: Cpus) -> f64 {
        let elsewhere = Kept::to(cpus.0);
        let [server, client] = ["server", "client"]
            .map(|role| memif("ours", 0, role).replace("net_memif0", number_of(role)));
        let (mut near, mut far) = (opened(&server), opened(&client));
        // Who reads a ring puts empty buffers there when it first looks.
        for end in [&mut near, &mut far] {
            assert_eq!(end.receive(Nanos(0)).unwrap().count, 0);
        }
        // As testpmd's first burst: one from each end, and they go round.
        for end in [&mut near, &mut far] {
            for _ in 0..BURST {
                end.put(64).unwrap().fill(5);
            }
            end.flush().unwrap();
        }
        drop(elsewhere);
        let _here = Kept::to(cpus.1);
        rate((&mut near, &mut far), Stamps::Off, TICKS)
    }

    /// A whole forwarder between devices of the same kind.
    fn by_a_forwarder(cpus: Cpus) -> f64 {
        let elsewhere = Kept::to(cpus.0);
        whylate_dpdk::register();
        let device = Device { pages: Pages::Ordinary, ..Device::default() };
        let plan = Plan {
            transport: Transport::Dpdk,
            interfaces: ["net_null4".to_owned(), "net_null5".to_owned()],
            link: LinkOptions { device, ..LinkOptions::default() },
            wait: Wait::Spin,
            threads: Threads::One,
            stamps: Stamped::Off,
            work: Nanos(0),
            interval: Nanos::SECOND,
            duration: Some(LASTS),
        };
        // Of the ticks that it is for; nothing here is a time of the counter.
        let mut opened = open(&plan, HardwareCounter::open().unwrap(), Hertz(2e9)).unwrap();
        drop(elsewhere);
        let _here = Kept::to(cpus.1);
        let forwarder = &mut opened.forwarders[0];
        // It is warm after the first time.
        let before = runs(forwarder);
        let begun = clock_ns(Clock::Monotonic);
        let until_now = runs(forwarder);
        (until_now - before) as f64 * 1e9 / (clock_ns(Clock::Monotonic) - begun) as f64
    }

    /// Frames that it has received until now, all of which it forwarded, after another while.
    fn runs(forwarder: &mut Forwarder<HardwareCounter, Box<dyn Frames>>) -> u64 {
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
}
