//! Ports over devices of DPDK, behind the feature `dpdk`.
//!
//! `Dpdk` is a backend of whole frames ([`whylate_port::Frames`]) over one device: a virtual one (null, ring,
//! memif, af_xdp, af_packet, tap, virtio-user, vhost) or a card by its address on the bus. It looks in
//! rings and never sleeps: DPDK's drivers know no other way that holds for all of them. `io` passes
//! frames between two devices without a look at them, with and without stamps.
//!
//! Guarantees: DPDK is started once in a process, on a thread of its own, so that the caller keeps its
//! CPUs; it prints nothing, and what it last said is in the error; it leaves no files behind. What was
//! not to be had (hugepages) is said. A call into C is one for each burst, or for many. What goes from one
//! device to another goes with its buffer, and is not copied. The time of DPDK is never asked: it is rounded
//! to 10 MHz.
//!
//! Without the feature only [`words`], [`hugepages`] and [`sharing`] are compiled, which are pure, and neither
//! libdpdk nor a C compiler is needed. Unsafe code is in `raw.rs` and `raw/` alone, with `shim.c` behind it.

#[cfg(feature = "dpdk")]
mod beneath;
#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod eal;
pub mod error;
#[cfg(feature = "dpdk")]
mod frames;
#[cfg(feature = "dpdk")]
pub mod hot;
pub mod hugepages;
#[cfg(feature = "dpdk")]
pub mod io;
#[cfg(feature = "dpdk")]
mod raw;
pub mod sharing;
pub mod words;

pub use error::DpdkError;
#[cfg(feature = "dpdk")]
pub use {
    eal::{Running, prepare, running},
    frames::{Dpdk, open, open_divisible, open_halves, register},
    raw::pools,
};
