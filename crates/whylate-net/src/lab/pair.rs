//! Two sockets that face each other through a bed.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::thread;

use whylate_host::bed::Role;

use super::bed::Bed;
use crate::error::NetError;

/// Two connected UDP sockets: one in the bed's client, one in its server. The calling thread stays
/// where it is.
pub fn udp_pair(bed: &Bed) -> Result<(OwnedFd, OwnedFd), NetError> {
    let (near, far) = (made(bed, Role::Client)?, made(bed, Role::Server)?);
    let face = |one: &UdpSocket, other: &UdpSocket| {
        let joined = other.local_addr().and_then(|address| one.connect(address));
        joined.map_err(|source| failed(bed, "connect a socket to the other end", source))
    };
    face(&near, &far)?;
    face(&far, &near)?;
    Ok((near.into(), far.into()))
}

/// A socket belongs to the namespace that it was made in, whoever uses it.
fn made(bed: &Bed, role: Role) -> Result<UdpSocket, NetError> {
    let inside = || {
        bed.enter(role)?;
        let what = "open a socket in the";
        UdpSocket::bind((Bed::address(role), 0))
            .map_err(|source| failed(bed, &format!("{what} {}", role.name()), source))
    };
    thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn failed(bed: &Bed, what: &str, source: std::io::Error) -> NetError {
    NetError::Bed { what: format!("{what} of the bed {}", bed.name()), source }
}
