//! Programs on packets: what the kernel makes of planted frames, beside what an independent function
//! says of them, and what they are on real interfaces, all of them in namespaces of the test's own.
//! Needs root; what attaches needs `ip` of iproute2, too.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod attaching;
mod frames;
mod judge;
mod places;
mod planted;

use std::fmt::Display;

use whylate_port::bpf::{BpfError, Compact, Treatment, WireForm};
use whylate_suite::{absent, missing};
use whylate_sys::capability::{Cap, effective};

/// The messages that the tests' reflectors answer.
fn form() -> WireForm {
    use Treatment::{Answer, AnswerBeside, Count, CountBeside, Leave};
    let kinds =
        vec![(1, AnswerBeside(2)), (5, Answer(6)), (7, Leave), (9, CountBeside), (10, Count)];
    let compact = Compact { magic: *b"wlac", shortest: 18 };
    WireForm { magic: *b"wlat", version: 2, shortest: 24, compact, kinds }
}

/// What was made, or nothing where this machine does not let us. A program that is refused though we
/// have every right is a failure.
fn ready<T>(made: Result<T, BpfError>) -> Option<T> {
    let may = effective().has(Cap::SysAdmin)
        || [Cap::Bpf, Cap::NetAdmin, Cap::Perfmon].into_iter().all(|cap| effective().has(cap));
    match made {
        Ok(made) => Some(made),
        Err(refusal) if may && !is_missing(&refusal) => panic!("{refusal}"),
        // This kernel has no such thing, whatever is required of the machine.
        Err(refusal) if is_no_call(&refusal) => {
            absent(&refusal);
            None
        }
        Err(refusal) => skip(&refusal),
    }
}

/// Says that a test is left out; with `WHYLATE_TESTS_REQUIRE=everything` that is a failure.
pub(crate) fn skip<T>(reason: &impl Display) -> Option<T> {
    missing(reason);
    None
}

/// Has this kernel no such call?
fn is_no_call(refusal: &BpfError) -> bool {
    let BpfError::Sys(refusal) = refusal else { return false };
    refusal.errno() == Some(whylate_sys::Errno::NOSYS)
}

/// Has this kernel, or what it runs in, no such thing at all?
fn is_missing(refusal: &BpfError) -> bool {
    use whylate_sys::Errno;
    let BpfError::Sys(refusal) = refusal else { return false };
    matches!(refusal.errno(), Some(Errno::NOSYS | Errno::PERM))
}
