//! A whole forwarder over shared memory beside testpmd in its mode `io`: `whylate forward --port dpdk
//! --stamps off` as it is run, between the same two devices, with the same frames.
//!
//! The other ends of both devices are here, on another CPU: frames that come by the one go back by the
//! other, so that as many are always under way, and what comes is counted. Who sends them round does as
//! much for a frame as a forwarder has to: where it finds its rings empty, it waits for the forwarder,
//! and the rate is the forwarder's. Where it hardly ever does, the rate is its own and the round is left out.

use accept::figure::{Bound, Figure, Row};

use crate::over_dpdk;
#[cfg(not(feature = "dpdk"))]
use crate::over_dpdk::not_built as round;

pub(crate) const FIGURE: Figure = Figure {
    name: "forward_memif_beside_testpmd",
    method: "frames sent round through a forwarder between two devices of shared memory, between two runs of testpmd",
    rows: &[Row {
        claim: "frames a second of the whole program over testpmd's, on net_memif",
        unit: "ratio",
        bound: Bound::AtLeast(0.9),
    }],
    rounds: 6,
    seconds: 4.3,
    most_taken: Some(0.05),
    needs: || {
        over_dpdk::program()?;
        over_dpdk::library()
    },
    round,
};

#[cfg(feature = "dpdk")]
use taken::round;

#[cfg(feature = "dpdk")]
mod taken {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use accept::figure::{Reading, Round};
    use whylate_dpdk::io::{Passed, Stamps};
    use whylate_model::forward::{Forward, ForwardDirection};
    use whylate_model::{CpuId, Nanos};
    use whylate_port::Frames;

    use crate::dpdk::{BURST, Kept, opened, passed};
    use crate::over_dpdk::cpus;
    use crate::peer::Testpmd;
    use crate::program::until;
    use crate::tool::{Service, memif};
    use crate::ways::Cpus;

    /// Bursts under way by either way: no ring of 1024 is ever full.
    const BURSTS: usize = 8;
    /// Ticks before what counts, and those that count.
    const WARM: u64 = 600_000_000;
    const TICKS: u64 = 1_500_000_000;
    /// Of the looks of who sends frames round, so many find nothing at least where the forwarder is slower.
    const SPARE: f64 = 0.05;

    /// What a forwarder carried.
    struct Carried {
        /// Frames a second, both ways together.
        rate: f64,
        /// Share of looks that found nothing, of who sent them round.
        spare: f64,
    }

    pub(super) fn round(_: Round) -> Result<Vec<Reading>, String> {
        let cpus = cpus();
        let (peer, ours, again) = (testpmds(cpus), ours(cpus), testpmds(cpus));
        let spare = peer.spare.min(again.spare);
        if spare < SPARE {
            return Err(format!(
                "testpmd is faster than who sends frames round can tell, who looked in vain {:.1}% of the time",
                100.0 * spare
            ));
        }
        let (peer, ours, again) = (peer.rate, ours.rate, again.rate);
        Ok(vec![Reading::Beside { peer, ours, again }])
    }

    /// What a forwarder carries between two devices, which `begin` starts with their words, and the
    /// forwarder. This thread is on `cpu` meanwhile.
    fn carried<F>(cpu: CpuId, begin: impl FnOnce([&str; 2]) -> F) -> (Carried, F) {
        static ROUNDS: AtomicUsize = AtomicUsize::new(0);
        // Each has links of its own: nothing of the last one comes by them.
        let what = format!("memif{}", ROUNDS.fetch_add(1, Ordering::Relaxed));
        let [mut near, mut far] = [0, 1].map(|number| opened(&memif(&what, number, "server")));
        let [a, b] = [0, 1].map(|number| memif(&what, number, "client"));
        let forwarder = begin([&a, &b]);
        until("the forwarder has its ends of the links", || {
            (near.is_up() && far.is_up()).then_some(())
        });
        // Who reads a ring puts empty buffers there when it first looks. What comes was to find out whether
        // the two are joined.
        for end in [&mut near, &mut far] {
            while end.receive(Nanos(1_000_000)).unwrap().count > 0 {}
        }
        for end in [&mut near, &mut far] {
            for _ in 0..BURSTS {
                for _ in 0..BURST {
                    end.put(64).expect("the ring is empty").fill(5);
                }
                end.flush().unwrap();
            }
        }
        let _here = Kept::to(cpu);
        passed((&mut near, &mut far), Stamps::Off, WARM);
        let (outcome, rate) = passed((&mut near, &mut far), Stamps::Off, TICKS);
        let sum = |of: fn(&Passed) -> u64| outcome.passed.iter().map(of).sum::<u64>();
        let (empty, bursts) = (sum(|way| way.empty), sum(|way| way.bursts));
        assert!(bursts > 0, "nothing came back: {outcome:?}");
        (Carried { rate, spare: empty as f64 / (empty + bursts) as f64 }, forwarder)
    }

    fn ours(cpus: Cpus) -> Carried {
        let begin = |[a, b]: [&str; 2]| {
            let words = format!(
                "forward {a} {b} --port dpdk --stamps off --duration 60s --cpus {}",
                cpus.1
            );
            Service::start(&words, "forwarding between")
        };
        let (carried, service) = carried(cpus.0, begin);
        let told: Forward = serde_json::from_str(&service.stop()).unwrap();
        assert!(told.directions.iter().all(ForwardDirection::closes), "{told:?}");
        assert!(told.directions.iter().all(|of| of.forwarded > 0 && of.too_long == 0), "{told:?}");
        carried
    }

    fn testpmds(cpus: Cpus) -> Carried {
        let begin = |devices: [&str; 2]| {
            let words = ["--forward-mode=io", "--burst=32", "--no-lsc-interrupt"];
            let peer = Testpmd::start((cpus.0.0, cpus.1.0), &devices, &words);
            let runs = peer.next(|line| line.contains("statistics for port").then_some(()));
            assert!(runs.is_some(), "testpmd did not start");
            peer
        };
        carried(cpus.0, begin).0
    }
}
