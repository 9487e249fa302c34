//! The two ends of a forwarder of datagrams: their addresses, and what keeps them from being forwarded
//! between.
//!
//! The kernel says whether an address can be had and whether somebody has it; what would go round for ever
//! is found here, where one forwarder can know it.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use whylate_clock::Counter;
use whylate_port::{End, Setup, Threads, relay};

use super::error::ForwardError;
use crate::delay::proxy::leads_to_itself;
use crate::error::NetError;

/// Where clients reach it, and the server that their datagrams go to, as two words have them.
///
/// # Errors
/// A word is no address, nothing can be sent to the second, or both are one.
pub fn addresses([listen, to]: &[String; 2]) -> Result<[SocketAddr; 2], ForwardError> {
    let address = |text: &String| {
        text.parse::<SocketAddr>().map_err(|_| ForwardError::NotAnAddress { text: text.clone() })
    };
    let (listen, to) = (address(listen)?, address(to)?);
    if to.port() == 0 || to.ip().is_unspecified() || to.ip().is_multicast() {
        return Err(ForwardError::Nowhere(to));
    }
    if leads_to_itself(listen, to) {
        return Err(ForwardError::ToItself { listen, to });
    }
    Ok([listen, to])
}

/// Opens both ends.
pub(super) fn between<C: Counter + Clone + 'static>(
    interfaces: &[String; 2],
    threads: Threads,
    setup: &Setup<C>,
) -> Result<[End; 2], NetError> {
    let [listen, to] = addresses(interfaces)?;
    let ends = relay::open(listen, to, threads, setup)?;
    // The port may have been drawn only now.
    let listen = ends[0].facts().interface.parse().unwrap_or(listen);
    if leads_to_itself(listen, to) || hears(listen, to) {
        return Err(ForwardError::ToItself { listen, to }.into());
    }
    Ok(ends)
}

/// Does a socket that is bound to all addresses hear what is sent to this one?
fn hears(listen: SocketAddr, to: SocketAddr) -> bool {
    let family = listen.is_ipv6() || to.is_ipv4();
    listen.ip().is_unspecified() && family && listen.port() == to.port() && is_own(to.ip())
}

/// Is it an address of this machine?
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(listen: &str, to: &str) -> Result<[SocketAddr; 2], ForwardError> {
        addresses(&[listen.to_owned(), to.to_owned()])
    }

    #[test]
    fn two_addresses_are_taken_and_what_leads_nowhere_or_back_is_refused_by_name() {
        assert!(of("127.0.0.1:0", "127.0.0.1:4021").is_ok());
        assert!(of("[::1]:4100", "127.0.0.1:4100").is_ok());
        for (listen, to) in [("eth1", "127.0.0.1:1"), ("127.0.0.1:1", "eth2")] {
            let refused = of(listen, to).unwrap_err();
            assert!(matches!(refused, ForwardError::NotAnAddress { .. }), "{refused}");
        }
        for to in ["127.0.0.1:0", "0.0.0.0:7", "224.0.0.1:7", "[::]:7"] {
            assert!(matches!(of("127.0.0.1:9", to), Err(ForwardError::Nowhere(_))), "{to}");
        }
        for listen in ["127.0.0.1:7", "0.0.0.0:7"] {
            let refused = of(listen, "127.0.0.1:7").unwrap_err();
            assert!(matches!(refused, ForwardError::ToItself { .. }), "{refused}");
        }
    }

    #[test]
    fn a_socket_of_all_addresses_hears_this_machine_s_own_and_no_others() {
        let hears = |listen: &str, to: &str| hears(listen.parse().unwrap(), to.parse().unwrap());
        // All of 127.0.0.0/8 is this machine.
        assert!(hears("0.0.0.0:7", "127.1.2.3:7"));
        assert!(!hears("0.0.0.0:7", "127.1.2.3:8"));
        assert!(!hears("127.0.0.1:7", "127.1.2.3:7"));
        // Kept for documentation: nobody has it.
        assert!(!hears("0.0.0.0:7", "192.0.2.77:7"));
        assert!(!hears("0.0.0.0:7", "[::1]:7"));
    }
}
