//! Keeping the machine's CPUs out of idle states that are slow to leave.
//!
//! [The PM QoS interface](https://docs.kernel.org/power/pm_qos_interface.html): what is written to
//! `/dev/cpu_dma_latency` holds while the file stays open. Capability: write access to the file,
//! which is root's alone on most systems.

use std::fs::File;
use std::io::{Read, Write};

use rustix::io::Errno;

use crate::SysError;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// A held request; it ends when this is dropped, and with the process at the latest.
#[derive(Debug)]
pub struct DmaLatency {
    _held: File,
}

impl DmaLatency {
    /// Asks that no CPU enters an idle state that takes any time to leave.
    pub fn hold_zero() -> Result<Self, SysError> {
        let what = || format!("hold {DEVICE} at 0");
        let mut file = File::options()
            .write(true)
            .open(DEVICE)
            .map_err(|error| refusal("open", what(), &error))?;
        file.write_all(&0_i32.to_ne_bytes()).map_err(|error| refusal("write", what(), &error))?;
        Ok(Self { _held: file })
    }
}

/// The limit in force now, in microseconds: the smallest that any process holds.
pub fn limit_us() -> Result<i32, SysError> {
    let what = || format!("read {DEVICE}");
    let mut bytes = [0; 4];
    let mut file = File::open(DEVICE).map_err(|error| refusal("open", what(), &error))?;
    file.read_exact(&mut bytes).map_err(|error| refusal("read", what(), &error))?;
    Ok(i32::from_ne_bytes(bytes))
}

fn refusal(call: &'static str, what: String, error: &std::io::Error) -> SysError {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    let advice = match errno {
        Errno::ACCESS | Errno::PERM => {
            "run as root or let your group write the device (a udev rule), else idle states add \
             to what is measured"
        }
        Errno::NOENT => "the kernel or the container offers no such device",
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_held_the_limit_is_zero() {
        let held = match DmaLatency::hold_zero() {
            Ok(held) => held,
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        assert_eq!(limit_us().unwrap(), 0);
        drop(held);
    }
}
