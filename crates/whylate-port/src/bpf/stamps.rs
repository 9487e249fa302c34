//! When a frame came, written in front of it by the program that takes it.
//!
//! What lies in front of a frame goes with it to its socket of AF_XDP
//! ([metadata](https://docs.kernel.org/networking/xdp-rx-metadata.html)): a mark, the card's stamp and the
//! program's own. The card's is what its driver tells (`bpf_xdp_metadata_rx_timestamp`, Linux 6.3), by the
//! card's clock; a driver that has none for a frame tells so, or tells 0 as that of virtual links does for
//! all that no card has stamped. The program's own is when it ran: in the driver, before the kernel made
//! anything of the frame, or in the network stack behind it (Linux 6.1). It is by atomic time, which is
//! the wall clock but for whole seconds.
//!
//! A program that asks the driver runs at one interface alone, and the kernel asks of it a licence that
//! it counts as GPL-compatible: this one is offered under that as well.

use whylate_model::Nanos;
use whylate_sys::btf;
use whylate_sys::nanosleep::atomic_ahead_s;

use crate::bpf::asm::Assembler;
use crate::bpf::asm::Reg::{R0, R1, R2, R6, R7, R8, R10};
use crate::bpf::asm::Size::{B4, B8};
use crate::bpf::asm::Test::{Eq, Gt, Ne};
use crate::bpf::asm::Width::{W32, W64};

/// Bytes in front of a frame: the mark, the card's stamp, the program's own.
pub(crate) const METADATA: u32 = 24;
/// Says that the rest was written for this frame.
const MARK: i32 = 0x5757_4d31;

/// The driver's function.
const OF_CARD: &str = "bpf_xdp_metadata_rx_timestamp";
/// `bpf_xdp_adjust_meta` and `bpf_ktime_get_tai_ns`.
const ADJUST_METADATA: i32 = 54;
const ATOMIC_TIME: i32 = 208;
/// Where frame and metadata begin in `struct xdp_md`.
const FRAME: i16 = 0;
const FRONT: i16 = 8;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Who stamps what a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamper {
    /// The program alone.
    Program,
    /// The program, and the card as far as its driver tells.
    Card {
        /// The number of the driver's function among the kernel's.
        function: i32,
    },
}

impl Stamper {
    /// One that asks the card, where this kernel has a way to; else why not.
    pub(super) fn of_card() -> Result<Self, String> {
        let missing = || format!("this kernel has no {OF_CARD}, which came with Linux 6.3");
        let number = btf::kernel_function(OF_CARD).map_err(|refusal| refusal.to_string())?;
        let function = number.and_then(|number| i32::try_from(number).ok());
        function.map(|function| Self::Card { function }).ok_or_else(missing)
    }
}

/// The stamps of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamped {
    /// By the card's own clock.
    pub(crate) card: Option<Nanos>,
    /// By the wall clock.
    pub(crate) program: Option<Nanos>,
}

/// Writes the stamps in front of the frame. R6 is the context; R0 to R5, R7 and R8 are lost, and so is
/// every pointer into the frame. What cannot be written is left out.
pub(super) fn stamp(asm: &mut Assembler, stamper: Stamper) {
    let skip = asm.label();
    asm.mov(R1, R6);
    asm.mov(R2, -(METADATA as i32));
    asm.call(ADJUST_METADATA);
    asm.jump_if(W32, Ne, R0, 0, skip);
    asm.load(B4, R7, R6, FRONT);
    asm.load(B4, R8, R6, FRAME);
    asm.mov(R1, R7);
    asm.add(R1, METADATA as i32);
    asm.jump_if(W64, Gt, R1, R8, skip);
    asm.store(B8, R10, -16, 0);
    if let Stamper::Card { function } = stamper {
        let told = asm.label();
        asm.mov(R1, R6);
        asm.mov(R2, R10);
        asm.add(R2, -16);
        asm.call_kernel(function);
        asm.jump_if(W32, Eq, R0, 0, told);
        asm.store(B8, R10, -16, 0);
        asm.bind(told);
    }
    asm.load(B8, R1, R10, -16);
    asm.store(B8, R7, 8, R1);
    asm.call(ATOMIC_TIME);
    asm.store(B8, R7, 16, R0);
    asm.store(B8, R7, 0, MARK);
    asm.bind(skip);
}

/// What stands in front of a frame; nothing where it was not written for this one. `ahead_s` is what
/// atomic time is ahead of the wall clock.
pub(crate) fn read(front: &[u8], ahead_s: i64) -> Stamped {
    let word = |at: usize| Some(u64::from_ne_bytes(front.get(at..at + 8)?.try_into().ok()?));
    if word(0) != Some(u64::from(MARK.unsigned_abs())) {
        return Stamped::default();
    }
    let known = |at| word(at).filter(|&ns| ns != 0);
    Stamped {
        // A time of the kernel has a sign: where the driver tells a number that is none (that of virtual
        // links does, of frames whose sender has its own sending stamped), it is no stamp.
        card: known(8).filter(|&ns| i64::try_from(ns).is_ok()).map(Nanos),
        program: known(16).map(|ns| wall_of_atomic(ns, ahead_s)),
    }
}

/// A time of atomic time by the wall clock.
pub(crate) fn wall_of_atomic(ns: u64, ahead_s: i64) -> Nanos {
    let by = ahead_s.unsigned_abs().saturating_mul(NANOS_PER_SECOND);
    Nanos(if ahead_s < 0 { ns.saturating_add(by) } else { ns.saturating_sub(by) })
}

/// What atomic time is ahead of the wall clock now.
pub(crate) fn ahead() -> i64 {
    atomic_ahead_s()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(mark: u64, card: u64, program: u64) -> Vec<u8> {
        [mark, card, program].into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn stamps_are_read_where_they_were_written_and_zero_is_none() {
        let mark = u64::from(MARK.unsigned_abs());
        let read_ahead = |front: &[u8]| read(front, 37);
        let both = read_ahead(&front(mark, 7, 37_000_000_009));
        assert_eq!(both, Stamped { card: Some(Nanos(7)), program: Some(Nanos(9)) });
        assert_eq!(read_ahead(&front(mark, 0, 0)), Stamped::default());
        assert_eq!(read_ahead(&front(mark ^ 1, 7, 9)), Stamped::default());
        assert_eq!(read_ahead(&front(mark, 7, 9)[..23]).program, None);
        assert_eq!(read_ahead(&front(mark, 0xffff_8881_0000_0008, 0)), Stamped::default());
        assert_eq!(read_ahead(&[]), Stamped::default());
        assert_eq!(wall_of_atomic(5, -1), Nanos(1_000_000_005));
    }
}
