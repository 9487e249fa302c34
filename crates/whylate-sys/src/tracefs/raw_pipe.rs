//! The binary pages of one CPU's trace buffer.

use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use whylate_model::CpuId;

use super::folder::{Folder, advice};
use crate::SysError;

/// `per_cpu/cpuN/trace_pipe_raw`, opened so that reading never waits.
///
/// A read hands over one sub-buffer and takes it out of the trace. One that the kernel is still
/// filling is handed over as far as it is filled, and what it held is taken too: nothing comes
/// twice, and nothing is held back until a page is full. The header's commit field says how much of
/// it counts; the bytes after that mean nothing, though the read returns them too.
#[derive(Debug)]
pub struct RawPipe {
    file: OwnedFd,
    label: String,
    page_bytes: usize,
}

impl RawPipe {
    pub(super) fn open(instance: &Folder, cpu: CpuId) -> Result<Self, SysError> {
        let rel = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
        let file = instance.open(&rel, OFlags::RDONLY | OFlags::NONBLOCK, "open")?;
        let page_bytes = sub_buffer_bytes(instance);
        Ok(Self { file, label: instance.path(&rel), page_bytes })
    }

    /// The size of a sub-buffer, which is what each read needs room for.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Takes the next sub-buffer, of which it returns the size; `None` when the buffer is empty.
    ///
    /// A `buffer` smaller than [`page_bytes`](Self::page_bytes) is refused.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, SysError> {
        let Some(page) = buffer.get_mut(..self.page_bytes) else {
            let why = format!("a page has {} bytes, the buffer fewer", self.page_bytes);
            return Err(SysError::invalid(format!("read {}", self.label), why));
        };
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.file, &mut *page)) {
            Ok(0) | Err(Errno::AGAIN) => Ok(None),
            Ok(bytes) => Ok(Some(bytes)),
            Err(errno) => {
                let what = format!("read {}", self.label);
                Err(SysError::advised("read", what, errno, advice(errno)))
            }
        }
    }
}

/// A page, unless someone set another size (possible since Linux 6.8).
fn sub_buffer_bytes(instance: &Folder) -> usize {
    instance
        .read("buffer_subbuf_size_kb")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok())
        .map_or_else(rustix::param::page_size, |kib| kib * 1024)
}
