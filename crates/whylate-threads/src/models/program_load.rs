//! What programs do beside running: writing to memory, and to a device.
//!
//! A device is opened for writing and never truncated; what could be damaged by that is refused.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use whylate_clock::Counter;
use whylate_gap::workload::{LINE, Workload};
use whylate_model::Nanos;
use whylate_sys::SysError;

use crate::stage::{End, Stage};

/// CPU time received between two looks whether all is written: what a write may take too much.
const LOOK: Nanos = Nanos(1_000);
/// Bytes of one call of `write`.
const PIECE: u64 = 1 << 20;

/// Memory that is written from end to end and over again, a line in each interval.
pub(super) struct Lines {
    bytes: Box<[u8]>,
    next: usize,
    left: u64,
}

impl Lines {
    /// Memory of so many bytes, touched now.
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes: vec![1; bytes.max(LINE as u64) as usize].into(), next: 0, left: 0 }
    }

    /// Writes so many bytes, which is CPU time received.
    pub(super) fn write<C: Counter>(
        &mut self,
        bytes: u64,
        stage: &mut Stage<'_, C>,
    ) -> Result<(), End> {
        self.left = bytes.div_ceil(LINE as u64);
        while self.left > 0 {
            stage.receive(LOOK, self)?;
        }
        Ok(())
    }
}

impl Workload for Lines {
    const BLOCK: u64 = 4096;

    #[inline(always)]
    fn work(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if let Some(line) = self.bytes.get_mut(self.next..self.next + LINE) {
            line.fill(0);
            std::hint::black_box(line);
            self.next += LINE;
        } else {
            self.next = 0;
        }
    }
}

/// The device that `iorun` writes to.
pub(super) struct Device {
    path: PathBuf,
    file: Option<File>,
    bytes: Box<[u8]>,
}

impl Device {
    /// A device that can be written to without damage: a character device, or a file that is not
    /// there yet.
    pub(super) fn new(path: &str, buffer: u64) -> Result<Self, String> {
        let path = PathBuf::from(path);
        match std::fs::metadata(&path) {
            Ok(facts) if facts.file_type().is_char_device() => {}
            Ok(_) => {
                return Err(format!(
                    "{} is there and would be overwritten: name a file that is not, or /dev/null",
                    path.display()
                ));
            }
            Err(_) if path.parent().is_none_or(Path::exists) => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
        let bytes = vec![0; buffer.clamp(1, PIECE) as usize].into();
        Ok(Self { path, file: None, bytes })
    }

    /// Opens it.
    pub(super) fn open(&mut self) -> Result<(), SysError> {
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
        self.file = Some(opened.map_err(|error| self.failed("open", &error))?);
        Ok(())
    }

    /// Writes so many bytes from its beginning on, so that a file never grows beyond them.
    pub(super) fn put(&mut self, bytes: u64, over: &dyn Fn() -> bool) -> Result<(), SysError> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        // A device that has no positions needs no rewinding.
        let _ = file.seek(SeekFrom::Start(0));
        let mut left = bytes;
        while left > 0 && !over() {
            let piece = left.min(self.bytes.len() as u64);
            let written = file.write(&self.bytes[..piece as usize]);
            left -= written.map_err(|error| self.failed("write to", &error))?.max(1) as u64;
        }
        self.file = Some(file);
        Ok(())
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> SysError {
        SysError::Invalid {
            what: format!("{what} {}", self.path.display()),
            why: error.to_string(),
        }
    }
}
