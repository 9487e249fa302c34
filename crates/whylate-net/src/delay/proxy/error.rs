//! Why a proxy does not carry.

use std::net::SocketAddr;

/// What can keep a proxy from carrying.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Words that are no way.
    #[error(
        "`{0}` is no way of a proxy: write udp:127.0.0.1:4100=127.0.0.1:4021 or \
         tcp:[::1]:4100=[::1]:4021 (KIND:LISTEN=TO)"
    )]
    NotAWay(String),
    /// No host is there.
    #[error("nothing can be sent to {0}: name the address and port of one server")]
    Nowhere(SocketAddr),
    /// It would carry what it sends for ever.
    #[error("a proxy that listens at {0} and sends there sends to itself: name another port")]
    ToItself(SocketAddr),
    /// A socket cannot be had.
    #[error("cannot {what} {at}: {source}")]
    Socket {
        /// What was tried.
        what: &'static str,
        /// Where.
        at: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// It waits in a way that it cannot.
    #[error("a proxy waits by spin or by poll, not by {0}")]
    Wait(whylate_port::Wait),
}
