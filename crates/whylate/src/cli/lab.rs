//! `whylate lab`.

use clap::{Args, Subcommand, ValueEnum};

use super::Findings;

/// A private bed of network namespaces, to try on one machine what needs a network.
///
/// Client, device and server are network namespaces of their own, joined by pairs of virtual links.
/// What lies between client and server is the kind of the bed: nothing (direct), a bridge of the
/// kernel (bridge), or Open vSwitch with a data base and a switch of its own (ovs). Links and
/// addresses (198.18.0.1 is the client, 198.18.0.2 the server, 198.18.0.3 the device) exist inside
/// only; commands run there by `nsenter --net=/run/netns/whylate-NAME-client COMMAND`. A bed stays
/// up until it is taken down or the machine is started anew.
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
    /// Set a bed up, and send datagrams through it before saying so
    Up {
        /// What lies between client and server
        #[arg(long, value_enum, default_value_t = Kind::Direct)]
        kind: Kind,
        /// Its name: small letters, digits and dashes
        #[arg(long, default_value = "lab")]
        name: String,
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
}
