//! Names to addresses, before a run: how long that took is told apart from what is measured.
//!
//! The C library resolves on a thread of its own, because nothing can interrupt it; a name server that
//! does not answer keeps that thread, not this one.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;

use whylate_model::Nanos;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::error::NetError;

/// A name server that has not answered by then will not.
pub const LIMIT: Nanos = Nanos(10_000_000_000);

/// Which internet protocol an address must be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Whichever the system prefers.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The address taken: the first of those that the system prefers.
    pub address: SocketAddr,
    /// Other addresses that the name has.
    pub others: usize,
    /// How long it took; none where the words were an address.
    pub took: Option<Nanos>,
}

/// Reads `ADDRESS:PORT` or resolves `NAME:PORT`, within `limit`.
///
/// # Errors
/// Words that are neither, a name without an address of the family, a name server that is silent.
pub fn resolve(target: &str, wanted: Wanted, limit: Nanos) -> Result<Resolved, NetError> {
    resolve_by(ask, target, wanted, limit)
}

/// Asks the C library.
fn ask(name: &str) -> io::Result<Vec<SocketAddr>> {
    name.to_socket_addrs().map(Iterator::collect)
}

/// The same with another who knows names.
fn resolve_by(
    ask: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    target: &str,
    wanted: Wanted,
    limit: Nanos,
) -> Result<Resolved, NetError> {
    let fits = |address: &SocketAddr| match wanted {
        Wanted::Any => true,
        Wanted::V4 => address.is_ipv4(),
        Wanted::V6 => address.is_ipv6(),
    };
    let name = || target.to_owned();
    let no_family = || NetError::Unresolved {
        name: name(),
        why: format!("it has no address of {}", if wanted == Wanted::V4 { "ipv4" } else { "ipv6" }),
    };
    if let Ok(address) = target.parse::<SocketAddr>() {
        let resolved = Resolved { address, others: 0, took: None };
        return if fits(&address) { Ok(resolved) } else { Err(no_family()) };
    }
    let (host, port) = target.rsplit_once(':').ok_or_else(|| NetError::NotAnAddress(name()))?;
    if host.is_empty() || host.contains(':') || port.parse::<u16>().is_err() {
        return Err(NetError::NotAnAddress(name()));
    }
    let began = clock_ns(Clock::Monotonic);
    let (tell, told) = mpsc::channel();
    let asked = name();
    let resolver = move || {
        // Whoever asked may have given up.
        let _ = tell.send(ask(&asked));
    };
    std::thread::Builder::new()
        .name("resolver".to_owned())
        .spawn(resolver)
        .map_err(|error| NetError::Unresolved { name: name(), why: error.to_string() })?;
    let found = told
        .recv_timeout(Duration::from_nanos(limit.0))
        .map_err(|_| NetError::ResolvingTimedOut { name: name(), limit })?
        .map_err(|error| NetError::Unresolved { name: name(), why: error.to_string() })?;
    let took = Some(Nanos(clock_ns(Clock::Monotonic) - began));
    let mut fitting = found.into_iter().filter(fits);
    let address = fitting.next().ok_or_else(no_family)?;
    let others = fitting.filter(|other| *other != address).count();
    Ok(Resolved { address, others, took })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who answers by itself has so long.
    const LONG: Nanos = Nanos(180_000_000_000);

    #[test]
    fn addresses_take_no_time_and_are_of_the_family_asked_for() {
        for (text, wanted) in
            [("127.0.0.1:7", Wanted::Any), ("127.0.0.1:7", Wanted::V4), ("[::1]:7", Wanted::V6)]
        {
            let resolved = resolve(text, wanted, LIMIT).unwrap();
            assert_eq!((resolved.address.to_string().as_str(), resolved.took), (text, None));
        }
        let error = resolve("127.0.0.1:7", Wanted::V6, LIMIT).unwrap_err();
        assert!(error.to_string().contains("no address of ipv6"), "{error}");
    }

    #[test]
    fn the_name_of_this_machine_is_resolved_and_its_time_told() {
        let resolved = resolve("localhost:11111", Wanted::Any, LIMIT).unwrap();
        assert!(resolved.address.ip().is_loopback());
        assert!(resolved.took.is_some_and(|took| took.0 > 0 && took < LIMIT));
    }

    #[test]
    fn words_that_are_neither_name_nor_address_are_refused_before_anybody_is_asked() {
        for text in ["", "host", ":7", "host:", "host:port", "host:70000", "::1:7", "a:b:7"] {
            let error = resolve(text, Wanted::Any, LIMIT).unwrap_err();
            assert!(matches!(error, NetError::NotAnAddress(_)), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_that_nobody_has_and_one_that_takes_too_long_are_told() {
        let none = |_: &str| Err(io::Error::other("nobody has it"));
        let error = resolve_by(none, "no-such-name.invalid:7", Wanted::Any, LONG).unwrap_err();
        assert!(matches!(error, NetError::Unresolved { .. }), "{error}");
        for part in ["no-such-name.invalid", "nobody has it"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        // Longer than any name may be: the C library asks nobody.
        let long = format!("{}.invalid:7", "n".repeat(300));
        let error = resolve(&long, Wanted::Any, LONG).unwrap_err();
        assert!(matches!(error, NetError::Unresolved { .. }), "{error}");
        assert!(error.to_string().contains(&long), "{error}");
        let (answer, never) = mpsc::channel::<()>();
        let silent = move |_: &str| Err(io::Error::other(never.recv().unwrap_err()));
        let limit = Nanos(20_000_000);
        let error = resolve_by(silent, "no-such-name.invalid:7", Wanted::Any, limit).unwrap_err();
        assert!(matches!(error, NetError::ResolvingTimedOut { .. }), "{error}");
        assert!(error.to_string().contains("no-such-name.invalid"), "{error}");
        drop(answer);
    }

    #[test]
    fn an_address_of_the_family_is_taken_of_those_that_a_name_has_and_the_others_are_counted() {
        let several = |_: &str| {
            let all = ["[::1]:7", "127.0.0.2:7", "127.0.0.1:7", "127.0.0.2:7"];
            Ok(all.iter().map(|one| one.parse().unwrap()).collect())
        };
        for (wanted, first, others) in [
            (Wanted::Any, "[::1]:7", 3),
            (Wanted::V4, "127.0.0.2:7", 1),
            (Wanted::V6, "[::1]:7", 0),
        ] {
            let resolved = resolve_by(several, "several:7", wanted, LONG).unwrap();
            assert_eq!((resolved.address.to_string().as_str(), resolved.others), (first, others));
            assert!(resolved.took.is_some());
        }
    }
}
