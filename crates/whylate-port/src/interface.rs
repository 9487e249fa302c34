//! Interfaces and addresses: what a port needs of them, and why one cannot be used.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use whylate_sys::interface::{self, Interface};
use whylate_sys::namespace;

use crate::error::PortError;

/// Where `ip netns` and the beds of the lab mount their namespaces.
const MOUNTS: &str = "/run/netns";
/// Namespaces that are searched at most.
const MOST_NAMESPACES: usize = 64;

/// The interface that has this address; none where several or none do, as for `0.0.0.0`.
pub(crate) fn having(address: IpAddr) -> Option<Interface> {
    if address.is_unspecified() || address.is_multicast() {
        return None;
    }
    let all = interface::all().ok()?;
    let has = |one: &Interface| one.addresses.contains(&address);
    // All of 127.0.0.0/8 is loopback's, of which one address is listed.
    let loopback = |one: &Interface| address.is_loopback() && one.name == "lo";
    all.into_iter().find(|one| has(one) || loopback(one))
}

/// The interface of this name, fit for sending and receiving by the family of `address`.
pub(crate) fn usable(name: &str, address: SocketAddr) -> Result<Interface, PortError> {
    let found = named(name)?;
    let name = || name.to_owned();
    if !found.up {
        return Err(PortError::InterfaceDown { name: name() });
    }
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    if !found.addresses.iter().any(|one| one.is_ipv4() == address.is_ipv4()) {
        return Err(PortError::InterfaceWithoutAddress { name: name(), family });
    }
    Ok(found)
}

/// The interface of this name, whatever its state.
pub(crate) fn named(name: &str) -> Result<Interface, PortError> {
    let found = interface::named(name).map_err(|source| PortError::Interfaces { source })?;
    found.ok_or_else(|| PortError::InterfaceMissing {
        name: name.to_owned(),
        elsewhere: elsewhere(&|one| one.name == name),
    })
}

/// The named namespace that has this address, where one can be found.
pub(crate) fn namespace_of(address: IpAddr) -> Option<String> {
    elsewhere(&|one| one.addresses.contains(&address))
}

/// The first named namespace with such an interface. Nothing is found without the right to look.
fn elsewhere(is_it: &(dyn Fn(&Interface) -> bool + Sync)) -> Option<String> {
    let named = std::fs::read_dir(MOUNTS).ok()?.flatten().take(MOST_NAMESPACES);
    let mut paths: Vec<_> = named.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    let has = |path: &Path| {
        // A thread of its own: it ends in the namespace it entered.
        std::thread::scope(|scope| {
            let look = || {
                namespace::enter_network(path).ok()?;
                Some(interface::all().ok()?.iter().any(is_it))
            };
            scope.spawn(look).join().ok().flatten().unwrap_or(false)
        })
    };
    paths.iter().find(|path| has(path)).map(|path| path.display().to_string())
}
