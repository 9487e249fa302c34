//! TCP bulk: one connection, as much as the receiver takes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::pace::Pace;
use super::{failed, only_waited};
use crate::child::Meter;
use crate::error::LoadError;
use crate::kind::MOST_TCP_BYTES;
use crate::record::State;

/// Bytes of one call.
const CHUNK: usize = 64 << 10;
/// A call waits no longer, so that the end is seen.
const WAIT: Duration = Duration::from_millis(50);
/// The sender is waited for so often.
const LOOK: Duration = Duration::from_millis(1);

/// Receives from the first that connects.
pub(super) fn receive(at: SocketAddr, meter: &Meter) -> Result<(), LoadError> {
    let listener = TcpListener::bind(at).map_err(failed("listen for TCP"))?;
    listener.set_nonblocking(true).map_err(failed("listen for TCP"))?;
    let port = listener.local_addr().map_err(failed("listen for TCP"))?.port();
    meter.set(State::Listening(port));
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if only_waited(&error) && !meter.stopped() => std::thread::sleep(LOOK),
            Err(error) if only_waited(&error) => return Ok(()),
            Err(error) => return Err(failed("accept a TCP connection")(error)),
        }
    };
    drop(listener);
    stream.set_nonblocking(false).map_err(failed("receive TCP"))?;
    stream.set_read_timeout(Some(WAIT)).map_err(failed("receive TCP"))?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer) {
            // The sender has ended: whether it was told to, the parent knows.
            Ok(0) => {
                wait_for_the_end(meter);
                return Ok(());
            }
            Ok(bytes) => meter.add(bytes as u64),
            Err(error) if only_waited(&error) => {}
            Err(error) => {
                return if meter.stopped() { Ok(()) } else { Err(failed("receive TCP")(error)) };
            }
        }
        if meter.stopped() {
            return Ok(());
        }
    }
}

fn wait_for_the_end(meter: &Meter) {
    while !meter.stopped() {
        std::thread::sleep(LOOK);
    }
}

/// The receiver is gone: has it only been quicker to see the end that both have?
fn ended_together(meter: &Meter) -> bool {
    for _ in 0..500 {
        if meter.stopped() {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Sends as much as is taken, within the bound.
pub(super) fn send(to: SocketAddr, meter: &Meter) -> Result<(), LoadError> {
    let mut stream = TcpStream::connect(to).map_err(failed("connect to the receiver"))?;
    stream.set_write_timeout(Some(WAIT)).map_err(failed("send TCP"))?;
    let buffer = vec![0x5a; CHUNK];
    let mut pace = Pace::new(MOST_TCP_BYTES / CHUNK as u64);
    while !meter.stopped() {
        for _ in 0..pace.next()? {
            match stream.write(&buffer) {
                Ok(bytes) => meter.add(bytes as u64),
                Err(error) if only_waited(&error) => {}
                Err(_) if ended_together(meter) => return Ok(()),
                Err(error) => return Err(failed("send TCP")(error)),
            }
            if meter.stopped() {
                break;
            }
        }
    }
    Ok(())
}
