//! Both ports of what is measured, in words: `--across`, `--both-ways`.

use std::net::SocketAddr;

use clap::Args;
use whylate_record::calibrate::planted::Tail;

use crate::parse;

/// A client that has both ports of what lies between them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Both ports of what is measured")]
pub(crate) struct RttAcross {
    /// Receive at a second port what was sent from the first, rather than have somebody answer: the
    /// time through whatever is between the two, one way, by one clock. With --bed the two are its
    /// ends; otherwise PORT is the interface that messages come back by (with --transport dpdk the
    /// device), and --interface (--vdev, --pci) the one that they leave by
    #[arg(
        help = "Receive at a second port what the first sent",
        long_help,
        long,
        value_name = "PORT",
        num_args = 0..=1,
        conflicts_with_all = ["target", "reflector_cpus", "one_way", "flows", "compare_backends", "breakdown", "tap"]
    )]
    #[expect(clippy::option_option, reason = "clap's form of an option that may have a value")]
    pub(crate) across: Option<Option<String>>,
    /// With --across: send messages in the other direction as well, as a flow of their own. A
    /// client that spins sends and receives both on one thread
    #[arg(
        help = "With --across: send in the other direction as well",
        long_help,
        long,
        requires = "across"
    )]
    pub(crate) both_ways: bool,
    /// With --across between two interfaces: the address of the one that messages come back by,
    /// which the kernel need not have; --from is that of the other
    #[arg(
        help = "With --across: the second interface's address",
        long_help,
        long,
        value_name = "ADDRESS",
        value_parser = parse::own_address,
        requires = "across"
    )]
    pub(crate) to: Option<SocketAddr>,
    /// Delay the reception of one in so many messages by this, before its timestamp: 1in10000:20us
    #[arg(
        long,
        value_name = "TAIL",
        hide = true,
        requires = "across",
        conflicts_with = "both_ways"
    )]
    pub(crate) plant_late: Option<Tail>,
}

impl RttAcross {
    /// Has the client both ports?
    pub(crate) fn is_asked(&self) -> bool {
        self.across.is_some()
    }

    /// The port that messages come back by, where one was named.
    pub(crate) fn named(&self) -> Option<&str> {
        self.across.as_ref().and_then(Option::as_deref)
    }
}
