//! Programs on the receiving path of an interface (XDP), made and loaded by ourselves.
//!
//! [`Steering`] hands messages to sockets of AF_XDP and leaves everything else to the host;
//! [`Reflector`] answers them inside the kernel. Both are put together instruction by instruction
//! ([`asm`]) when they are loaded, so that ports and addresses are constants in them, and neither a
//! compiler nor an object file is needed, when whylate is built or when it runs. The kernel's verifier
//! checks each of them; what it says is the reason of a refusal. Each frame gets one [`Verdict`],
//! counted by the CPU that ran the program.
//!
//! Guarantees: an interface that runs somebody else's program is refused, with its number and name;
//! what is attached is let go when it is dropped, and by the kernel when the process ends (Linux 5.9);
//! what a program does not take passes to the host unchanged.
//!
//! Needs `CAP_BPF`, `CAP_NET_ADMIN` and `CAP_PERFMON` (root before Linux 5.8).

pub mod asm;
pub mod attach;
pub mod error;
mod headers;
pub mod reflector;
pub(crate) mod stamps;
pub mod steering;
pub mod take;
pub mod verdict;

use std::ffi::CStr;

pub use attach::{Attached, HeldBy, InterfaceRef, Mode, ProgramFacts, Wanted};
pub use error::BpfError;
pub use reflector::{Compact, Reflector, Treatment, WireForm};
pub use stamps::Stamper;
pub use steering::{Stamping, Steering};
pub use take::{Messages, Take};
pub use verdict::{Counts, Verdict};
pub use whylate_sys::bpf::Tried;

/// The programs' licence. None of the helpers that they call asks for another one: not the one that moves
/// where metadata begin (`bpf_xdp_adjust_meta`), the clock's (`bpf_ktime_get_tai_ns`), nor a map's.
const LICENSE: &CStr = c"MIT OR Apache-2.0";
/// That of the one program which calls a function of the kernel: the driver's, that tells a card's stamp.
/// The verifier refuses every such call of a program that it does not count as GPL-compatible
/// (`add_kfunc_call`), and it counts by the string alone (`license_is_gpl_compatible`), of which there are
/// six: MIT has this one among them, `MIT OR Apache-2.0` is none. So this program is offered under the MIT licence or the GPL, as the MIT
/// licence lets anybody do. None of the helpers asks for it: a program that stamps by itself goes without.
const LICENSE_OF_CALLERS: &CStr = c"Dual MIT/GPL";
