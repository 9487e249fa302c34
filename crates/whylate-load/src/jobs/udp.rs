//! Datagrams at a constant rate, each with its number.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::pace::Pace;
use super::{failed, only_waited};
use crate::child::Meter;
use crate::error::LoadError;
use crate::kind::UDP_BYTES;
use crate::record::State;

/// A call waits no longer, so that the end is seen.
const WAIT: Duration = Duration::from_millis(50);
/// Room for what comes while the receiver does not run; the kernel may give less.
const ROOM: usize = 4 << 20;
/// So many in a row that cannot be sent are no longer a full queue.
const MOST_REFUSALS: u32 = 10_000;

/// Datagrams of one sender, by their numbers.
#[derive(Debug, Default)]
struct Numbers {
    received: u64,
    /// One more than the highest number so far: so many were sent at least.
    sent: u64,
}

impl Numbers {
    /// Takes a datagram in; one that is too short for a number is none of ours.
    fn take(&mut self, datagram: &[u8]) {
        if let Some(head) = datagram.first_chunk::<8>() {
            self.received += 1;
            self.sent = self.sent.max(u64::from_le_bytes(*head).saturating_add(1));
        }
    }
}

/// Counts the datagrams of the first that sends any, and by their numbers those that it missed.
pub(super) fn receive(at: SocketAddr, meter: &Meter) -> Result<(), LoadError> {
    let socket = UdpSocket::bind(at).map_err(failed("listen for UDP"))?;
    // What does not fit is counted as lost.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, ROOM);
    socket.set_read_timeout(Some(WAIT)).map_err(failed("receive UDP"))?;
    let port = socket.local_addr().map_err(failed("listen for UDP"))?.port();
    meter.set(State::Listening(port));
    let mut buffer = vec![0; UDP_BYTES.1 as usize];
    let (mut sender, mut numbers) = (None, Numbers::default());
    let mut stopping = false;
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((bytes, from)) if *sender.get_or_insert(from) == from => {
                let before = numbers.received;
                numbers.take(&buffer[..bytes]);
                meter.set_offered(numbers.sent);
                meter.add(numbers.received - before);
            }
            Ok(_) => {}
            // All that had arrived is counted.
            Err(error) if only_waited(&error) && stopping => return Ok(()),
            Err(error) if only_waited(&error) => {}
            Err(error) => return Err(failed("receive UDP")(error)),
        }
        if meter.stopped() && !stopping {
            stopping = true;
            socket.set_nonblocking(true).map_err(failed("receive UDP"))?;
        }
    }
}

/// Sends `pps` datagrams a second.
pub(super) fn send(to: SocketAddr, pps: u32, bytes: u32, meter: &Meter) -> Result<(), LoadError> {
    let at = if to.ip().is_loopback() { to.ip() } else { [0, 0, 0, 0].into() };
    let socket = UdpSocket::bind((at, 0)).map_err(failed("open a UDP socket"))?;
    socket.connect(to).map_err(failed("open a UDP socket"))?;
    socket.set_write_timeout(Some(WAIT)).map_err(failed("open a UDP socket"))?;
    let mut buffer = vec![0; bytes as usize];
    let (mut number, mut refused) = (0_u64, 0);
    let mut pace = Pace::new(u64::from(pps));
    while !meter.stopped() {
        for _ in 0..pace.next()? {
            if let Some(head) = buffer.get_mut(..8) {
                head.copy_from_slice(&number.to_le_bytes());
            }
            match socket.send(&buffer) {
                Ok(_) => {
                    number += 1;
                    refused = 0;
                    meter.add(1);
                }
                Err(error) if refused > MOST_REFUSALS => return Err(failed("send UDP")(error)),
                Err(_) => refused += 1,
            }
            if meter.stopped() {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_losses_are_told_by_the_numbers_in_whatever_order_they_come() {
        let mut numbers = Numbers::default();
        for number in [0_u64, 1, 3, 2, 7, 5] {
            numbers.take(&number.to_le_bytes());
        }
        numbers.take(b"short");
        // 4 and 6 did not come; what comes after 7 nobody here knows of.
        assert_eq!((numbers.received, numbers.sent), (6, 8));
    }
}
