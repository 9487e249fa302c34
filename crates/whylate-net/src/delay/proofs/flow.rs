//! A port by which as many frames come as are wanted, each with its number, and which keeps the numbers of
//! those that leave: no allocation for each.

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::PortError;
use whylate_port::frames::{Arrival, Burst, Drops, Frames, FramesFacts};

use crate::forward::memory::{Memory, Shared};

/// Bytes of a frame, and where its number stands.
pub(super) const BYTES: usize = 64;
const NUMBER: usize = 20;

/// The port.
#[derive(Debug)]
pub(super) struct Flow {
    clock: Shared,
    facts: FramesFacts,
    coming: Vec<[u8; BYTES]>,
    /// The number of the next one that comes.
    next: u64,
    /// Frames that come in all.
    pub(super) end: u64,
    /// And with a look.
    batch: u64,
    /// Ticks that go by before a look.
    pub(super) pause: u64,
    put: Vec<[u8; BYTES]>,
    /// Numbers of those that left, and when.
    pub(super) sent: Vec<(u64, Ticks)>,
    /// Frames that left otherwise than they came.
    pub(super) changed: u64,
}

impl Flow {
    pub(super) fn new(clock: &Shared, index: u32, (end, batch): (u64, u64), pause: u64) -> Self {
        let facts = Memory::new(clock, index).facts;
        Self {
            clock: clock.clone(),
            facts,
            coming: Vec::with_capacity(64),
            next: 0,
            end,
            batch,
            pause,
            put: Vec::with_capacity(256),
            sent: Vec::new(),
            changed: 0,
        }
    }

    /// The frame with this number.
    fn written(number: u64) -> [u8; BYTES] {
        let mut frame = [number as u8; BYTES];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
        frame
    }
}

impl Frames for Flow {
    fn receive(&mut self, _: Nanos) -> Result<Burst, PortError> {
        self.clock.pass(self.pause);
        let until = self.end.min(self.next + self.batch);
        self.coming.clear();
        self.coming.extend((self.next..until).map(Self::written));
        self.next = until;
        Ok(Burst { count: self.coming.len(), at: self.clock.read() })
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        Arrival { bytes: &self.coming[at], stripped: None, kernel: None, queue: 0 }
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        self.put.push([0xee; BYTES]);
        self.put.last_mut().map(|place| &mut place[..length])
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.clock.read();
        for frame in self.put.drain(..) {
            let mut number = [0; 8];
            number.copy_from_slice(&frame[NUMBER..NUMBER + 8]);
            let number = u64::from_be_bytes(number);
            self.changed += u64::from(frame != Self::written(number));
            self.sent.push((number, at));
        }
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        Ok(self.clock.read())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        Ok(Vec::new())
    }
}
