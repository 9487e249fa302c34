//! What is asked of sockets: the same words for the client and the server.

use clap::Args;
use whylate_port::{LinkOptions, Options};

use crate::parse;

/// Bits of the type of service below DSCP.
const BELOW_DSCP: u8 = 2;

/// Options of a socket; what the kernel gave is read back and printed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Socket")]
pub(crate) struct SocketOptions {
    /// Use only this interface; a multicast group needs it
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Socket receive buffer size [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub(crate) receive_buffer: Option<u64>,
    /// Socket send buffer size [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub(crate) send_buffer: Option<u64>,
    /// Do not fragment: refuse a message that exceeds the path's MTU
    #[arg(help = "Refuse messages that exceed the path's MTU", long_help, long)]
    pub(crate) dont_fragment: bool,
    /// DSCP of the packets: 46 is expedited forwarding
    #[arg(long, value_name = "0-63", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: Option<u8>,
    /// Time to live (hop limit) of the packets [default: the system's, 1 for a multicast group]
    #[arg(
        help = "Time to live (hop limit) of the packets",
        long_help,
        long,
        value_name = "1-255",
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    pub(crate) hops: Option<u8>,
}

impl SocketOptions {
    /// What it is to the ports.
    pub(crate) fn of_port(&self) -> Options {
        Options {
            interface: self.interface.clone(),
            receive_buffer: self.receive_buffer.map(|bytes| bytes as usize),
            send_buffer: self.send_buffer.map(|bytes| bytes as usize),
            whole_packets: self.dont_fragment,
            traffic_class: self.dscp.map(|dscp| dscp << BELOW_DSCP),
            hops: self.hops,
            link: LinkOptions::default(),
        }
    }

    /// The first option that a socket without IP cannot have.
    pub(crate) fn of_ip(&self) -> Option<&'static str> {
        [
            (self.interface.is_some(), "--interface"),
            (self.dont_fragment, "--dont-fragment"),
            (self.dscp.is_some(), "--dscp"),
            (self.hops.is_some(), "--hops"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}
