//! Whether packets come through a bed, found out by sending some.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use whylate_host::bed::Role;
use whylate_model::Nanos;

use super::bed::Bed;
use crate::error::NetError;

/// Datagrams that must come back.
pub(super) const ENOUGH: u32 = 3;
/// Datagrams that are sent at most: a switch that has just started learns its ports.
const MOST: u32 = 80;
/// Each is waited for so long.
const WAIT: Duration = Duration::from_millis(100);

/// Sends datagrams from client to server and back until some have made it.
pub(super) fn packets_come_through(name: &str) -> Result<(), NetError> {
    // All namespaces are mounted by now.
    let bed = Bed::open(name)?;
    let done = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    let echoed = std::thread::scope(|scope| {
        let (bed, done) = (&bed, &done);
        let server = scope.spawn(move || answer(bed, &tell, done));
        let client = scope.spawn(move || {
            let echoed = ask(bed, &told);
            done.store(true, Ordering::Relaxed);
            echoed
        });
        let gone = || NetError::NoBed(name.to_owned());
        let echoed = client.join().unwrap_or_else(|_| Err(gone()));
        // A server that could not even begin says more than a client without an answer.
        server.join().unwrap_or_else(|_| Err(gone()))?;
        echoed
    })?;
    if echoed >= ENOUGH {
        return Ok(());
    }
    let limit = Nanos(WAIT.as_nanos() as u64 * u64::from(MOST));
    Err(NetError::NothingComesThrough { name: name.to_owned(), sent: MOST, limit })
}

fn socket(bed: &Bed, role: Role) -> Result<UdpSocket, NetError> {
    bed.enter(role)?;
    let made = UdpSocket::bind((Bed::address(role), 0)).and_then(|socket| {
        socket.set_read_timeout(Some(WAIT))?;
        Ok(socket)
    });
    let what = || format!("open a socket in the {} of the bed {}", role.name(), bed.name());
    made.map_err(|source| NetError::Bed { what: what(), source })
}

fn answer(bed: &Bed, tell: &Sender<SocketAddr>, done: &AtomicBool) -> Result<(), NetError> {
    let socket = socket(bed, Role::Server)?;
    let at = socket
        .local_addr()
        .map_err(|source| NetError::Bed { what: "ask a socket for its port".to_owned(), source })?;
    // The client waits no longer when nobody listens.
    let _ = tell.send(at);
    let mut datagram = [0; 64];
    while !done.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut datagram) {
            // One that cannot be sent is one that does not come back.
            let _ = socket.send_to(datagram.get(..length).unwrap_or_default(), from);
        }
    }
    Ok(())
}

/// Datagrams that came back.
fn ask(bed: &Bed, told: &Receiver<SocketAddr>) -> Result<u32, NetError> {
    let socket = socket(bed, Role::Client)?;
    let Ok(server) = told.recv_timeout(WAIT * MOST) else { return Ok(0) };
    Ok(echoes(&socket, server))
}

/// Sends datagrams one after the other until enough of them came back, each once. One that is late comes
/// while a later one is waited for, and all behind it may be as late.
fn echoes(socket: &UdpSocket, server: SocketAddr) -> u32 {
    let (mut echoed, mut next) = (0, 0);
    for number in 0..MOST {
        // A network that is not ready yet refuses; it is tried again.
        if socket.send_to(&number.to_le_bytes(), server).is_err() {
            std::thread::sleep(WAIT);
            continue;
        }
        let mut back = [0; 64];
        let Ok((length, from)) = socket.recv_from(&mut back) else { continue };
        let Ok(came) = <[u8; 4]>::try_from(back.get(..length).unwrap_or_default()) else {
            continue;
        };
        let came = u32::from_le_bytes(came);
        if from == server && (next..=number).contains(&came) {
            (echoed, next) = (echoed + 1, came + 1);
        }
        if echoed >= ENOUGH {
            break;
        }
    }
    echoed
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    use super::{ENOUGH, echoes};

    const SHORT: Duration = Duration::from_millis(20);
    /// For answers that come: on a busy machine the server may have to wait for its CPU.
    const LONG: Duration = Duration::from_millis(500);

    /// A server that answers each datagram by these of those that came, by their place; how many echoes are
    /// counted where each is waited for so long.
    fn counted(wait: Duration, answers: fn(usize) -> Vec<usize>) -> u32 {
        let bound = |wait| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(wait)).unwrap();
            socket
        };
        let (client, server) = (bound(wait), bound(SHORT));
        let at: SocketAddr = server.local_addr().unwrap();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut came = Vec::new();
                while end.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                    let mut datagram = [0; 64];
                    let Ok((length, from)) = server.recv_from(&mut datagram) else { continue };
                    came.push(datagram[..length].to_vec());
                    for of in answers(came.len() - 1) {
                        server.send_to(&came[of], from).unwrap();
                    }
                }
            });
            let echoed = echoes(&client, at);
            drop(ended);
            echoed
        })
    }

    #[test]
    fn datagrams_that_are_all_one_late_came_through_and_none_counts_twice() {
        assert_eq!(counted(LONG, |last| vec![last]), ENOUGH);
        // Each comes while the next one is waited for.
        assert_eq!(counted(LONG, |last| last.checked_sub(1).into_iter().collect()), ENOUGH);
        // The first comes again and again.
        assert_eq!(counted(LONG, |_| vec![0]), 1);
        assert_eq!(counted(SHORT, |_| Vec::new()), 0);
    }
}
