//! The never-executed section and the thread pointer on x86-64.

use std::arch::{asm, global_asm};

/// `RSEQ_SIG` of this architecture, which the C library registered.
#[cfg(test)]
pub(super) const SIGNATURE: u32 = 0x5305_3053;
#[cfg(test)]
pub(super) const SIGNATURE_BYTES: usize = 4;
/// Two `ud2`.
pub(super) const SECTION_BYTES: u64 = 4;

// The signature is written as the operand of a `ud1`, so that a disassembler stays in step.
global_asm!(
    ".pushsection .text.whylate_rseq, \"ax\", @progbits",
    ".balign 16",
    ".globl whylate_rseq_start",
    ".hidden whylate_rseq_start",
    ".globl whylate_rseq_abort",
    ".hidden whylate_rseq_abort",
    "whylate_rseq_start:",
    "ud2",
    "ud2",
    ".byte 0x0f, 0xb9, 0x3d",
    ".long 0x53053053",
    "whylate_rseq_abort:",
    "ud2",
    ".popsection",
);

/// The address from which the C library counts `__rseq_offset`.
pub(super) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread pointer itself in the first word at `fs`.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}
