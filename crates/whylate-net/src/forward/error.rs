//! Why frames are not forwarded.

use std::net::SocketAddr;

use whylate_model::Printable;
use whylate_port::frame::Mac;

/// Two interfaces that cannot be forwarded between.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// Both names are of one interface.
    #[error("`{first}` and `{second}` are the same interface: a forwarder has two")]
    SameInterface {
        /// The first name.
        first: String,
        /// The second.
        second: String,
    },
    /// A word that is no address of a socket.
    #[error(
        "`{}` is not an address and port: name where clients send datagrams, and the server, as in \
         127.0.0.1:4100 127.0.0.1:4021",
        Printable(text)
    )]
    NotAnAddress {
        /// The word.
        text: String,
    },
    /// No host is there.
    #[error("nothing can be sent to {0}: name the address and port of one server")]
    Nowhere(SocketAddr),
    /// It would forward what it sends for ever.
    #[error(
        "a forwarder that clients reach at {listen} and that sends to {to} sends to itself, and each \
         datagram would circle endlessly: name another port"
    )]
    ToItself {
        /// Where clients reach it.
        listen: SocketAddr,
        /// Where it sends to.
        to: SocketAddr,
    },
    /// What leaves by one port comes back by the other.
    #[error(
        "what is sent by `{out}` comes back by `{back}`: the two are joined outside, and each frame \
         would circle endlessly; take them apart, or choose others"
    )]
    Looped {
        /// The port that a probe was sent by.
        out: String,
        /// The port that it came by.
        back: String,
    },
    /// A host is at both ports.
    #[error(
        "frames of {host} come by `{first}` and by `{second}`: the two are joined outside, and each \
         frame would circle endlessly; take them apart, or choose others"
    )]
    HeardByBoth {
        /// The host.
        host: Mac,
        /// One port.
        first: String,
        /// The other.
        second: String,
    },
    /// Somebody forwards there already, or holds frames back.
    #[error(
        "`{interface}` is a port of another forwarder or delay line that runs here: each frame would be \
         forwarded twice; end that one (`pgrep -af 'whylate (forward|delay)'`), or choose another \
         interface"
    )]
    Held {
        /// The interface.
        interface: String,
    },
    /// It cannot be told whether somebody forwards there.
    #[error("cannot claim `{interface}` for this forwarder: {error}")]
    Claim {
        /// The interface.
        interface: String,
        /// Why not.
        error: std::io::Error,
    },
}
