//! A sender of single frames: whole frames out of an interface, by a socket that is never waited for.
//!
//! For load that is sent as it is due, whether there is room for it or not: what the kernel does not take at
//! once is not sent, and its caller counts it. Frames pass by the queueing discipline of the interface.
//! Nothing is received.
//!
//! [packet(7)](https://man7.org/linux/man-pages/man7/packet.7.html). Capability: `CAP_NET_RAW`.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::error::PortError;
use crate::frame::Mac;
use crate::interface::named;
use crate::raw;

const BACKEND: &str = "af_packet";
/// No EtherType: a socket that is bound to none receives nothing.
const NONE: u16 = 0;

/// Sends frames by one interface.
#[derive(Debug)]
pub struct FrameSender {
    socket: OwnedFd,
    mac: Mac,
}

impl FrameSender {
    /// Opens it on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such interface, one that is down or has no hardware address; a missing capability.
    pub fn open(interface: &str) -> Result<Self, PortError> {
        let found = named(interface)?;
        if !found.up {
            return Err(PortError::InterfaceDown { name: found.name });
        }
        let Some(hardware) = found.hardware else {
            return Err(PortError::NotEthernet { name: found.name });
        };
        let socket = raw::packet_socket(BACKEND)?;
        raw::bind_packet(&socket, found.index, NONE).map_err(|errno| PortError::Send {
            backend: BACKEND,
            bytes: 0,
            errno,
        })?;
        Ok(Self { socket, mac: Mac(hardware) })
    }

    /// The interface's hardware address.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Sends a frame, without its check sequence. False where there was no room for it: it never left.
    ///
    /// # Errors
    /// The interface went away, or the frame is longer than it sends.
    pub fn send(&self, frame: &[u8]) -> Result<bool, PortError> {
        loop {
            match send(&self.socket, frame, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(PortError::Send { backend: BACKEND, bytes: frame.len(), errno });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_interface_sends_no_frame_and_is_refused_by_name() {
        let error = FrameSender::open("never-was").unwrap_err().to_string();
        assert!(error.contains("never-was"), "{error}");
    }
}
