//! `whylate lab`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};

use super::Findings;

/// Test network (client, device, server) in network namespaces
///
/// Client, device and server are network namespaces, joined by pairs of virtual links. The kind of
/// the network is what is between client and server: nothing (direct), a bridge of the kernel
/// (bridge), Open vSwitch with its own database and switch (ovs), or a place for a network function
/// (open), which carries nothing until one joins the device's `to-client` and `to-server`: `whylate
/// delay to-client to-server --bed NAME`, `whylate forward` likewise, or any other. Links and
/// addresses (198.18.0.1 is the client, 198.18.0.2 the server, 198.18.0.3 the device) exist inside
/// only; run commands there with `nsenter --net=/run/netns/whylate-NAME-client COMMAND`. The
/// network stays up until it is taken down or the machine is restarted. With `--tap` everything
/// passes the device's interface `to-client`, also in a direct network: a tap there sees requests
/// and replies.
///
/// Example: whylate lab up --kind bridge
///
/// Cost: a second to set up; an idle network costs nothing, except for Open vSwitch without the
/// kernel's module, whose process wakes now and then.
///
/// Limits: needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and `ip` of iproute2. Virtual links hand
/// packets over in memory: no wire, no hardware, no interrupts of a port.
///
/// Exit status: 0 done, 1 failed, 2 usage.
#[derive(Debug, Clone, Args)]
pub(crate) struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What to do with a test network.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Action {
    /// Set up a test network, and check it with datagrams
    ///
    /// It is reported as up when datagrams have made the round trip; an open one when its links are up.
    Up {
        /// What is between client and server
        #[arg(long, value_enum, default_value_t = Kind::Direct)]
        kind: Kind,
        /// Its name: lower-case letters, digits and dashes
        #[arg(long, default_value = "lab")]
        name: String,
        /// Queues at each end of its links; with several, each is used by one CPU (XPS)
        #[arg(
            help = "Queues at each end of its links",
            long_help,
            long,
            default_value = "1",
            value_name = "N"
        )]
        queues: NonZeroU32,
        /// Let everything pass the device, where rtt can capture it
        #[arg(help = "Let everything pass the device, for captures", long_help, long)]
        tap: bool,
    },
    /// Take a test network down, or what was left of one
    Down {
        /// Its name
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Show the test networks, and the processes inside
    Status {
        /// Only this one
        #[arg(long)]
        name: Option<String>,
        /// How to print it
        #[arg(long, value_enum, default_value_t = Findings::Text)]
        format: Findings,
        /// Print the whole report, not its first screen
        #[arg(long)]
        full: bool,
    },
}

/// What is between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Nothing: they are back to back.
    Direct,
    /// A bridge of the kernel.
    Bridge,
    /// Open vSwitch.
    Ovs,
    /// A place for a network function: nothing passes until one joins to-client and to-server.
    Open,
}
