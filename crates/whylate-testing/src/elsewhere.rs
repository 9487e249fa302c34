//! Somebody else's tap at a bed, which writes what it sees into a file while it goes by: pcap with
//! nanoseconds, or ERF.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use whylate_model::Nanos;
use whylate_net::lab;
use whylate_port::packet::tap::{KEPT, TapRing, Tapped};

use crate::requests::Bed;

/// How a tap writes what it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Pcap,
    Erf,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::Erf => "ERF",
        }
    }

    pub fn file(self, home: &Path) -> PathBuf {
        home.join(format!("tap.{}", self.name().to_lowercase()))
    }

    /// What a file begins with.
    fn header(self) -> Vec<u8> {
        match self {
            Self::Pcap => {
                let mut header = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
                header.extend([2, 0, 4, 0]);
                // Zone and accuracy, bytes that are kept, frames of Ethernet.
                header.extend([0, 0, KEPT, 1].into_iter().flat_map(u32::to_le_bytes));
                header
            }
            Self::Erf => Vec::new(),
        }
    }

    fn record(self, frame: &Tapped<'_>) -> Vec<u8> {
        let (second, part) = (frame.at.0 / 1_000_000_000, frame.at.0 % 1_000_000_000);
        let kept = frame.bytes.len();
        let mut record = Vec::new();
        match self {
            Self::Pcap => {
                let numbers = [second as u32, part as u32, kept as u32, frame.length];
                record.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
                record.extend(frame.bytes);
            }
            Self::Erf => {
                // Rounded up, so that the nanosecond comes back.
                let part = (part << 32).div_ceil(1_000_000_000);
                let whole = (18 + kept).next_multiple_of(8);
                record.extend((second << 32 | part).to_le_bytes());
                record.extend([2, 4]);
                record.extend((whole as u16).to_be_bytes());
                record.extend([0, 0]);
                record.extend((frame.length as u16).to_be_bytes());
                record.extend([0, 0]);
                record.extend(frame.bytes);
                record.resize(whole, 0);
            }
        }
        record
    }
}

/// Somebody else's tap: it writes each frame as it comes by, and holds so many bytes of the end back.
pub struct Elsewhere {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Elsewhere {
    /// When this returns nothing passes unseen.
    pub fn start(bed: &Bed, format: Format, path: &Path, held_back: usize) -> Self {
        let (bed, mut file) = (lab::Bed::open(&bed.0).unwrap(), File::create(path).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let (ready, is_ready) = channel();
        let work = move || {
            let interface = bed.tap().unwrap();
            bed.enter(lab::Role::Device).unwrap();
            let mut ring = TapRing::open(&interface).unwrap();
            ready.send(()).unwrap();
            let mut waiting = format.header();
            while !told.load(Ordering::Relaxed) {
                let due = waiting.len().saturating_sub(held_back);
                file.write_all(&waiting[..due]).unwrap();
                waiting.drain(..due);
                let mut keep = |frame: &Tapped<'_>| waiting.extend(format.record(frame));
                ring.take(Nanos(10_000_000), &mut keep).unwrap();
            }
        };
        let tap = Self { stop, thread: Some(thread::spawn(work)) };
        is_ready.recv().unwrap();
        tap
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(()))), "the tap ended by itself");
        }
    }
}
