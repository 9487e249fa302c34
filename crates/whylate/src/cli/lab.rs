//! `whylate lab`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};

use super::Findings;

/// A private bed of network namespaces, to try on one machine what needs a network.
///
/// Client, device and server are network namespaces of their own, joined by pairs of virtual links.
/// What lies between client and server is the kind of the bed: nothing (direct), a bridge of the
/// kernel (bridge), Open vSwitch with a data base and a switch of its own (ovs), or a place for a box
/// that nothing passes until one joins the device's `to-client` and `to-server` (open): `whylate delay
/// to-client to-server --bed NAME`, `whylate forward` likewise, or any other. Links and
/// addresses (198.18.0.1 is the client, 198.18.0.2 the server, 198.18.0.3 the device) exist inside
/// only; commands run there by `nsenter --net=/run/netns/whylate-NAME-client COMMAND`. A bed stays
/// up until it is taken down or the machine is started anew. With `--tap` everything passes the
/// device's interface `to-client`, in a direct bed too: there a tap sees requests and replies.
///
/// Example: whylate lab up --kind bridge
///
/// Cost: a second to set one up; an idle bed costs nothing, but for Open vSwitch without the
/// kernel's module, whose process wakes now and then.
///
/// Limits: needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and `ip` of iproute2. Virtual links hand
/// packets over in memory: no wire, no hardware, no interrupts of a port.
///
/// Exit status: 0 done, 1 when it could not be done, 2 usage.
#[derive(Debug, Clone, Args)]
pub(crate) struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// What to do with a bed.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Action {
    /// Set a bed up, and send datagrams through it before saying so (an open one: links up alone)
    Up {
        /// What lies between client and server
        #[arg(long, value_enum, default_value_t = Kind::Direct)]
        kind: Kind,
        /// Its name: small letters, digits and dashes
        #[arg(long, default_value = "lab")]
        name: String,
        /// Queues at each end of its links: of several, each is sent by from one CPU (XPS)
        #[arg(long, default_value = "1", value_name = "N")]
        queues: NonZeroU32,
        /// Let everything pass the device, where a tap can see it: rtt captures it there
        #[arg(long)]
        tap: bool,
    },
    /// Take a bed down, or what was left of one
    Down {
        /// Its name
        #[arg(long, default_value = "lab")]
        name: String,
    },
    /// Show the beds that there are, and who is inside
    Status {
        /// Only this one
        #[arg(long)]
        name: Option<String>,
        /// How to print it
        #[arg(long, value_enum, default_value_t = Findings::Text)]
        format: Findings,
    },
}

/// What lies between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Nothing: they are back to back.
    Direct,
    /// A bridge of the kernel.
    Bridge,
    /// Open vSwitch.
    Ovs,
    /// A place for a box: nothing passes until one joins to-client and to-server.
    Open,
}
