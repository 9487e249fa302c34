//! A counter that moves as it is told, and ports of memory: for proofs without a kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use whylate_clock::Counter;
use whylate_model::{CpuId, Hertz, Nanos, Ticks};
use whylate_port::frame::{Mac, Tag};
use whylate_port::frames::{Amount, Arrival, Burst, Copies, Drops, Frames, FramesFacts, Rings};
use whylate_port::{BusyPolling, PortError, Wait};

/// One tick a nanosecond.
pub(crate) const RATE: Hertz = Hertz(1e9);
pub(crate) const MTU: u32 = 1_500;

/// A counter that its copies share: it moves on by 1 at each reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<AtomicU64>);

impl Shared {
    pub(crate) fn pass(&self, ticks: u64) {
        self.0.fetch_add(ticks, Ordering::Relaxed);
    }
}

impl Counter for Shared {
    const KIND: &'static str = "mock";

    fn read(&mut self) -> Ticks {
        Ticks(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), CpuId(0))
    }

    fn cpu(&mut self) -> CpuId {
        CpuId(0)
    }
}

/// A frame as the mock ring has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Came {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stripped: Option<Tag>,
    pub(crate) kernel: Option<Nanos>,
}

/// A port of memory.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) clock: Shared,
    pub(crate) facts: FramesFacts,
    /// Bursts that will come, one a look; an error in place of one.
    pub(crate) coming: VecDeque<Result<Vec<Came>, PortError>>,
    pub(crate) taken: Vec<Came>,
    pub(crate) put: Vec<Vec<u8>>,
    /// Frames that the sending ring holds between two flushes.
    pub(crate) slots: usize,
    /// Frames that never leave it.
    pub(crate) stuck: usize,
    /// What flushing says, before it goes on to work.
    pub(crate) refusing: VecDeque<PortError>,
    /// What flushing says for the second time that it is called, once.
    pub(crate) late: Option<PortError>,
    /// Flushes.
    pub(crate) flushes: u64,
    /// Frames that were refused so.
    pub(crate) taken_back: Amount,
    /// What left.
    pub(crate) sent: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Ticks that the kernel takes for a flush.
    pub(crate) call: u64,
    /// Ticks that go by before each look.
    pub(crate) pause: u64,
    /// Whether busy-polling does anything.
    pub(crate) polling: BusyPolling,
    /// Sleeps, each as long as it may be.
    pub(crate) naps: Arc<AtomicU64>,
    /// Set when nothing comes any more.
    pub(crate) last: Option<Arc<AtomicBool>>,
}

impl Memory {
    pub(crate) fn new(clock: &Shared, index: u32) -> Self {
        let facts = FramesFacts {
            backend: "memory",
            interface: format!("port{index}"),
            index,
            mac: Mac([2, 0, 0, 0, 0, index as u8]),
            mtu: MTU,
            queues: vec![0],
            rings: Rings::default(),
            buffer: 2_048,
            room: 2_048,
            copies: Copies::Kernel,
            attachment: None,
            tells_wakeups: false,
            bypasses_qdisc: true,
            instead: Vec::new(),
            wait: Wait::Spin,
        };
        Self {
            clock: clock.clone(),
            facts,
            coming: VecDeque::new(),
            taken: Vec::new(),
            put: Vec::new(),
            slots: usize::MAX,
            stuck: 0,
            refusing: VecDeque::new(),
            late: None,
            flushes: 0,
            taken_back: Amount::default(),
            sent: Arc::default(),
            call: 0,
            pause: 0,
            polling: BusyPolling::NotAsked,
            naps: Arc::default(),
            last: None,
        }
    }

    pub(crate) fn lost(&self, what: &'static str) -> PortError {
        PortError::LinkLost { name: self.facts.interface.clone(), what, errno: Errno::NETDOWN }
    }
}

impl Frames for Memory {
    fn receive(&mut self, _: Nanos) -> Result<Burst, PortError> {
        self.clock.pass(self.pause);
        self.taken = if let Some(burst) = self.coming.pop_front() {
            burst?
        } else {
            if let Some(last) = &self.last {
                last.store(true, Ordering::Relaxed);
            }
            Vec::new()
        };
        Ok(Burst { count: self.taken.len(), at: self.clock.read() })
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        let Came { bytes, stripped, kernel } = &self.taken[at];
        Arrival { bytes, stripped: *stripped, kernel: *kernel, queue: 0 }
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.put.len() == self.slots || length > self.facts.room {
            return None;
        }
        self.put.push(vec![0xee; length]);
        self.put.last_mut().map(Vec::as_mut_slice)
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.clock.read();
        self.clock.pass(self.call);
        self.flushes += 1;
        let late = if self.flushes == 2 { self.late.take() } else { None };
        if let Some(error) = late.or_else(|| self.refusing.pop_front()) {
            for frame in self.put.drain(..) {
                self.taken_back.add(frame.len());
            }
            return Err(error);
        }
        let leaving = self.put.len().saturating_sub(self.stuck);
        self.sent.lock().unwrap().extend(self.put.drain(..leaving));
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        Ok(self.clock.read())
    }

    fn sleep(&mut self, limit: Nanos) -> Result<(), PortError> {
        self.naps.fetch_add(1, Ordering::Relaxed);
        self.clock.pass(limit.0);
        Ok(())
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        Ok(Vec::new())
    }

    fn busy_polling(&self) -> BusyPolling {
        self.polling
    }

    fn waiting(&mut self) -> Amount {
        self.put.iter().map(Vec::len).collect()
    }

    fn taken_back(&self) -> Amount {
        self.taken_back
    }
}

pub(crate) fn came(length: usize, fill: u8) -> Came {
    Came { bytes: vec![fill; length], ..Came::default() }
}
