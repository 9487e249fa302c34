//! Whether what is claimed on a run in which nothing was planted is borne out by what the kernel counts.

use whylate_model::Nanos;
use whylate_model::cause::Cause;
use whylate_model::tail::TailCause;

use crate::needs::Taken;

/// A handler of the kernel's takes no longer by itself: the host has stopped it.
const HANDLER: Nanos = Nanos(1_000_000);

/// How far claims on a run in which nothing was planted are borne out by what the kernel counts.
pub struct Evidence {
    /// Are all of them but the host's? A thread's by the CPU time that it had. A tick, or what runs
    /// behind it, is no cause on a quiet run, unless one took so long that the host stopped it.
    pub others: bool,
    /// What the host is said to have taken, in nanoseconds: half of the median so often. It is there if
    /// it is there at all.
    pub host_ns: f64,
}

impl Evidence {
    pub fn of(claims: &[&TailCause], taken: &Taken) -> Self {
        let took = |of: &TailCause| of.took.0 as f64 * of.episodes as f64 / 2.0;
        let mut evidence = Self { others: true, host_ns: 0.0 };
        for of in claims {
            match &of.cause {
                Cause::Host => evidence.host_ns += took(of),
                Cause::Thread { comm, .. }
                    if !comm.starts_with("kworker") && !comm.starts_with("swapper") =>
                {
                    evidence.others &= taken.by_threads_ns(comm) >= took(of);
                }
                _ if of.took >= HANDLER => evidence.host_ns += took(of),
                _ => evidence.others = false,
            }
        }
        evidence
    }
}

#[test]
fn a_claim_that_nothing_was_planted_for_is_excused_by_evidence_alone() {
    use whylate_model::cause::PriorityClass;
    use whylate_model::tail::End;
    use whylate_sys::{affinity, thread_clock};

    let mut cause = TailCause {
        end: End::Client,
        cause: Cause::Interrupt { name: "local_timer".to_owned() },
        episodes: 10,
        slow: 20,
        of_slow: 0.4,
        of_ordinary: 0.01,
        by_chance: Some(0.01),
        lift: None,
        over_chance: None,
        took: Nanos(15_000),
        claimed: true,
    };
    let taken = Taken::now(&affinity::get());
    let of = |cause: &TailCause| Evidence::of(&[cause], &taken);
    assert!(!of(&cause).others, "a tick is never the host's doing");
    // Unless it took so long that the host stopped it, as it must then have.
    cause.took = HANDLER;
    assert!(of(&cause).others && (of(&cause).host_ns - 5e6).abs() < 1.0);
    cause.cause = Cause::Host;
    assert!(of(&cause).others && (of(&cause).host_ns - 5e6).abs() < 1.0);
    // This very thread has had the CPU since, and nobody for ten hours.
    let end = thread_clock::cpu_time().0 + 20_000_000;
    while thread_clock::cpu_time().0 < end {
        std::hint::spin_loop();
    }
    let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end().to_owned();
    cause.cause = Cause::Thread { comm, class: PriorityClass::Ordinary };
    assert!(of(&cause).others && of(&cause).host_ns == 0.0);
    cause.took = Nanos(3_600 * 1_000_000_000);
    assert!(!of(&cause).others);
}
