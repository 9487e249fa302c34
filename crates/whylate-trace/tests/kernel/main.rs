//! Decoding beside the kernel of this machine.

#[cfg(test)]
mod kernel;
#[cfg(test)]
#[path = "../../src/tests/rendering.rs"]
mod rendering;
