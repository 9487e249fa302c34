//! Reading what a reflector's process tells of its stalls, without ever waiting for it.

use std::io::Read;
use std::process::ChildStdout;

use crate::error::NetError;
use crate::serve::stalls::{Line, not_waiting};

/// Bytes read in one go; a pipe holds as many.
const AT_ONCE: usize = 1 << 16;
/// A line that is longer is none of ours.
const LONGEST: usize = 128;

/// The reading end.
#[derive(Debug)]
pub struct ToldStalls {
    pipe: ChildStdout,
    begun: Vec<u8>,
    buffer: Vec<u8>,
    /// Lines that were none of ours.
    pub garbled: u64,
}

impl ToldStalls {
    pub(super) fn new(pipe: ChildStdout) -> Result<Self, NetError> {
        not_waiting(&pipe)?;
        Ok(Self { pipe, begun: Vec::new(), buffer: vec![0; AT_ONCE], garbled: 0 })
    }

    /// Hands over the lines that have come.
    pub fn drain(&mut self, mut each: impl FnMut(Line)) {
        // Who writes without end is read at the next call.
        for _ in 0..4 {
            let Ok(read) = self.pipe.read(&mut self.buffer) else { return };
            if read == 0 {
                return;
            }
            for byte in &self.buffer[..read] {
                match byte {
                    b'\n' => {
                        let line = std::str::from_utf8(&self.begun).ok().and_then(Line::parse);
                        self.garbled += u64::from(line.is_none());
                        line.into_iter().for_each(&mut each);
                        self.begun.clear();
                    }
                    _ if self.begun.len() < LONGEST => self.begun.push(*byte),
                    _ => (),
                }
            }
        }
    }
}
