//! The never-executed section and the thread pointer on aarch64.

use std::arch::{asm, global_asm};

/// `RSEQ_SIG` of this architecture, which the C library registered: `brk #0x45e0`.
#[cfg(test)]
pub(super) const SIGNATURE: u32 = 0xd428_bc00;
#[cfg(test)]
pub(super) const SIGNATURE_BYTES: usize = 4;
/// One `udf`.
pub(super) const SECTION_BYTES: u64 = 4;

global_asm!(
    ".pushsection .text.whylate_rseq, \"ax\", @progbits",
    ".balign 16",
    ".globl whylate_rseq_start",
    ".hidden whylate_rseq_start",
    ".globl whylate_rseq_abort",
    ".hidden whylate_rseq_abort",
    "whylate_rseq_start:",
    "udf #0",
    ".inst 0xd428bc00",
    "whylate_rseq_abort:",
    "udf #0",
    ".popsection",
);

/// The address from which the C library counts `__rseq_offset`.
pub(super) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: any program may read its own thread pointer.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}
