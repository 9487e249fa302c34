//! What can go wrong with a port.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rustix::io::Errno;
use whylate_model::Nanos;
use whylate_sys::SysError;

use crate::bpf::BpfError;
use crate::facts::PortFacts;
use crate::waiting::Wait;

/// Why a port could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A socket could not be made.
    #[error("cannot make a {what} socket: {errno}")]
    Create {
        /// Which kind.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A socket could not be bound.
    #[error("cannot bind a socket to {address}: {errno}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A port below 1024 needs a capability.
    #[error(
        "cannot bind a socket to {0}: ports this low are for CAP_NET_BIND_SERVICE; \
         choose one from 1024 on, or run as root"
    )]
    PortReserved(SocketAddr),
    /// Somebody has the port.
    #[error(
        "cannot bind a socket to {address}: the port is in use{}; choose another one, \
         or 0 for any that is free",
        by(holder.as_ref())
    )]
    PortInUse {
        /// The address asked for.
        address: SocketAddr,
        /// Who, where `/proc` tells.
        holder: Option<String>,
    },
    /// No interface has the address.
    #[error(
        "cannot use the address {address}: no interface here has it{}",
        elsewhere_of(namespace.as_ref())
    )]
    NotOurAddress {
        /// The address asked for.
        address: IpAddr,
        /// The namespace that has it.
        namespace: Option<String>,
    },
    /// A socket could not be connected.
    #[error("cannot connect a socket to {address}: {errno}")]
    Connect {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Nothing answered a connection.
    #[error(
        "no answer from {address} within {limit}: is that host up, and does something between \
         here and there drop packets?"
    )]
    ConnectTimedOut {
        /// The address asked for.
        address: SocketAddr,
        /// How long it was tried.
        limit: Nanos,
    },
    /// There is no way there.
    #[error(
        "there is no route to {to} ({errno}): is its network that of an interface that is up? \
         see `ip route get`"
    )]
    NoRoute {
        /// The other end.
        to: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The other end's host answered that nobody listens.
    #[error(
        "connection refused: nobody listens at {to}; does the server run, on that address and port?"
    )]
    Refused {
        /// The other end.
        to: String,
    },
    /// The interfaces could not be listed.
    #[error("cannot look for the interface: {source}")]
    Interfaces {
        /// The kernel's answer.
        source: SysError,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}` here: see `ip link`{}", elsewhere_of(elsewhere.as_ref()))]
    InterfaceMissing {
        /// Its name.
        name: String,
        /// The namespace that has one of this name.
        elsewhere: Option<String>,
    },
    /// The interface is not switched on.
    #[error("the interface `{name}` is down: `ip link set {name} up`")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// The interface cannot be used by this family.
    #[error("the interface `{name}` has no {family} address: `ip addr add ADDRESS dev {name}`")]
    InterfaceWithoutAddress {
        /// Its name.
        name: String,
        /// `ipv4` or `ipv6`.
        family: &'static str,
    },
    /// The socket could not be bound to the interface.
    #[error("cannot bind a socket to the interface `{name}`: {errno}; it may need CAP_NET_RAW")]
    InterfaceDenied {
        /// Its name.
        name: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The kernel would choose an interface by itself.
    #[error(
        "{group} is a multicast group, and its messages go by one interface: say by which \
         (`--interface NAME`)"
    )]
    GroupWithoutInterface {
        /// The group.
        group: IpAddr,
    },
    /// The group could not be joined.
    #[error("cannot join the group {group} on the interface `{name}`: {errno}")]
    Join {
        /// The group.
        group: IpAddr,
        /// The interface.
        name: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The message does not fit the path.
    #[error(
        "a message of {bytes} bytes and its headers does not fit the path in one packet{}: send \
         less, or let it be cut into fragments",
        of_mtu(*mtu)
    )]
    MtuTooSmall {
        /// Length of the message.
        bytes: usize,
        /// The MTU of the path.
        mtu: Option<u32>,
    },
    /// The path is too long for a Unix socket.
    #[error("{0} is no path for a unix socket: at most 107 bytes, and a directory that exists")]
    PathUnfit(PathBuf),
    /// Something is at the path already.
    #[error("cannot make a socket at {path}: {what}")]
    PathTaken {
        /// The path.
        path: PathBuf,
        /// What is there, and what to do.
        what: &'static str,
    },
    /// A Unix socket could not be bound or connected.
    #[error("cannot {what} {path}: {errno}")]
    Path {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The words do not go together.
    #[error("{transport} does not go to {target}: {why}")]
    WrongTarget {
        /// The transport.
        transport: &'static str,
        /// The target.
        target: String,
        /// Why not.
        why: &'static str,
    },
    /// No such transport.
    #[error("`{0}` is not a transport: use udp, tcp, unix, packet, xdp or dpdk")]
    UnknownTransport(String),
    /// The descriptor is no socket of the kind that was expected.
    #[error(
        "the descriptor handed over is {found}, not {wanted}: was it passed by whylate itself?"
    )]
    WrongDescriptor {
        /// What it should be.
        wanted: &'static str,
        /// What it is.
        found: String,
    },
    /// A property of a socket could not be read or set.
    #[error("cannot use the {what} of the {backend} socket: {errno}")]
    Option {
        /// The backend.
        backend: &'static str,
        /// The property.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Busy-polling is not for everybody.
    #[error(
        "cannot busy-poll by the {backend} socket: give CAP_NET_ADMIN, or as root \
         `sysctl net.core.busy_read=50`"
    )]
    BusyPollDenied {
        /// The backend.
        backend: &'static str,
    },
    /// A way to wait is not to be had.
    #[error("cannot wait by {wait}: {source}")]
    Wait {
        /// The way.
        wait: Wait,
        /// The kernel's answer.
        source: SysError,
    },
    /// A way to wait knows one socket only.
    #[error(
        "{wait} waits for one socket, and this server has several: choose poll, epoll, \
         busy-poll or spin"
    )]
    WaitsForOne {
        /// The way.
        wait: Wait,
    },
    /// A message cannot be sent in one piece.
    #[error("a message of {bytes} bytes does not fit {backend}: at most {max} go in one")]
    TooLong {
        /// The backend.
        backend: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The longest one.
        max: usize,
    },
    /// The message was not taken in time.
    #[error("{backend} did not take a message within {limit}: does the other end read?")]
    SendTimedOut {
        /// The backend.
        backend: &'static str,
        /// How long it was tried.
        limit: Nanos,
    },
    /// Nothing was received yet.
    #[error("the {backend} server has nobody to answer: no message was received before")]
    NobodyToAnswer {
        /// The backend.
        backend: &'static str,
    },
    /// Nobody is at the other end any more.
    #[error("the other end of the {backend} port is gone: has its process ended?")]
    PeerGone {
        /// The backend.
        backend: &'static str,
    },
    /// What came cannot be cut into messages.
    #[error(
        "what came by {backend} from {from} is not this protocol: no message begins like it; \
         does the server speak it?"
    )]
    BrokenStream {
        /// The backend.
        backend: &'static str,
        /// From where to where.
        from: String,
    },
    /// Sending failed.
    #[error("cannot send {bytes} bytes by {backend}: {errno}")]
    Send {
        /// The backend.
        backend: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Receiving failed.
    #[error("cannot receive by {backend}: {errno}")]
    Receive {
        /// The backend.
        backend: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The port cannot be used by two threads.
    #[error(
        "an {backend} port cannot be divided between a thread that sends and one that receives"
    )]
    NotDivisible {
        /// The backend.
        backend: &'static str,
    },
    /// The half that sends is another thread's.
    #[error("this half of an {backend} port only receives: the other half sends")]
    SentElsewhere {
        /// The backend.
        backend: &'static str,
    },
    /// The backend has no stamps of the kernel.
    #[error("{backend} has no stamps of the kernel: they are for udp and tcp")]
    StampsNotHere {
        /// The backend.
        backend: &'static str,
    },
    /// None of the stamps that were asked for is made of this port's frames.
    #[error("{backend} has none of these stamps of its frames: {why}")]
    FramesNotStamped {
        /// The backend.
        backend: &'static str,
        /// Why not, as far as it is known.
        why: String,
    },
    /// The kernel does not take a wish for stamps.
    #[error(
        "the kernel refuses the stamps that were asked for by {backend}: {errno}; ask for fewer kinds: \
         completion needs Linux 6.15"
    )]
    StampsRefused {
        /// The backend.
        backend: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Whole frames need a capability.
    #[error(
        "cannot open a socket for whole frames ({backend}): that is for CAP_NET_RAW; run as root or \
         give it: setcap cap_net_raw+ep WHYLATE"
    )]
    FramesDenied {
        /// The backend.
        backend: &'static str,
    },
    /// Whole frames go by one interface.
    #[error(
        "a port of whole frames ({backend}) goes by one interface: say by which (`--interface NAME`)"
    )]
    FramesWithoutInterface {
        /// The backend.
        backend: &'static str,
    },
    /// The interface knows no frames of Ethernet.
    #[error("the interface `{name}` carries no frames of Ethernet: it has no hardware address")]
    NotEthernet {
        /// Its name.
        name: String,
    },
    /// The interface went away while it was used.
    #[error("the interface `{name}` {what} during the run ({errno})")]
    LinkLost {
        /// Its name when it was opened.
        name: String,
        /// What happened.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A way to wait that this backend has not.
    #[error("{backend} cannot wait by {wait}: choose {choose}")]
    WaitUnfit {
        /// The backend.
        backend: &'static str,
        /// The way.
        wait: Wait,
        /// Those it has.
        choose: &'static str,
    },
    /// A buffer does not hold the longest frame.
    #[error(
        "buffers of {bytes} bytes are too small for `{interface}`: its MTU of {mtu} needs {needed}; \
         {advice}"
    )]
    BufferTooSmall {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// Bytes of a buffer.
        bytes: u32,
        /// Bytes that it would need.
        needed: u32,
        /// What to try.
        advice: &'static str,
    },
    /// A ring or buffer of a size that cannot be.
    #[error("{what} of {asked} cannot be: {why}")]
    RingUnfit {
        /// `a ring`, `a buffer`.
        what: &'static str,
        /// What was asked for.
        asked: u32,
        /// Why not.
        why: &'static str,
    },
    /// A ring could not be made.
    #[error("cannot make the {what} of {backend}: {errno}; {advice}")]
    Ring {
        /// The backend.
        backend: &'static str,
        /// Which.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
        /// What to try.
        advice: &'static str,
    },
    /// A queue cannot be used.
    #[error("cannot use queue {queue} of `{interface}` by AF_XDP: {why} ({errno})")]
    Queue {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// Why not, and what to do.
        why: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// No program leads frames to the sockets.
    #[error(transparent)]
    Program(#[from] BpfError),
    /// Nobody said who has the address.
    #[error(
        "nobody at `{interface}` has the address {address}: {tries} questions, {limit} each; is that \
         host on this link? where it is behind a router, name the router as the next hop"
    )]
    NoNeighbour {
        /// The address.
        address: IpAddr,
        /// The interface.
        interface: String,
        /// Questions asked.
        tries: u32,
        /// How long each answer was waited for.
        limit: Nanos,
    },
    /// DPDK is not in this program.
    #[error(
        "this whylate was built without DPDK; build with --features dpdk \
         (it needs libdpdk-dev, pkg-config and a C compiler)"
    )]
    WithoutDpdk,
    /// Nobody said which device.
    #[error("a port over DPDK needs a device: --vdev net_memif0,role=client or --pci 0000:03:00.0")]
    DeviceMissing,
    /// Whose address the frames are to carry is not known.
    #[error("a device of DPDK has no address of IP: say which one is yours (--from)")]
    FramesWithoutAddress,
    /// A backend of another crate says why not.
    #[error("{0}")]
    Backend(Box<dyn std::error::Error + Send + Sync>),
    /// A thread could not be started.
    #[error("cannot start the thread that waits for replies: {error}")]
    NoThread {
        /// Why.
        error: std::io::Error,
    },
    /// No such way to wait.
    #[error("`{0}` is not a way to wait: use block, poll, epoll, busy-poll, spin or io-uring")]
    UnknownWait(String),
}

impl PortError {
    /// Is the interface gone or down, so that the port will never carry anything again?
    #[must_use]
    pub fn is_link_lost(&self) -> bool {
        matches!(self, Self::LinkLost { .. })
    }

    /// Is the other end gone, as after the death of its process?
    #[must_use]
    pub fn is_peer_gone(&self) -> bool {
        matches!(self, Self::PeerGone { .. } | Self::Refused { .. })
    }

    /// Is the interface gone for good?
    #[must_use]
    pub fn is_link_deleted(&self) -> bool {
        matches!(self, Self::LinkLost { what, .. } if *what == crate::link::DELETED)
    }

    /// Why a message could not be sent: its length, how long it was tried, the path's MTU.
    #[cold]
    pub(crate) fn of_sending(
        facts: &PortFacts,
        errno: Errno,
        (bytes, limit, mtu): (usize, Nanos, Option<u32>),
    ) -> Self {
        let backend = facts.backend;
        let known = facts.socket.as_ref().and_then(|socket| socket.mtu);
        match errno {
            Errno::AGAIN => Self::SendTimedOut { backend, limit },
            Errno::MSGSIZE => Self::MtuTooSmall { bytes, mtu: mtu.or(known) },
            errno => Self::of_peer(facts, errno).unwrap_or(Self::Send { backend, bytes, errno }),
        }
    }

    /// Why nothing could be received.
    #[cold]
    pub(crate) fn of_receiving(facts: &PortFacts, errno: Errno) -> Self {
        let backend = facts.backend;
        Self::of_peer(facts, errno).unwrap_or(Self::Receive { backend, errno })
    }

    /// Answers that say something of the other end.
    fn of_peer(facts: &PortFacts, errno: Errno) -> Option<Self> {
        let backend = facts.backend;
        let remote = facts.socket.as_ref().and_then(|socket| socket.remote.clone());
        let to = || remote.clone().unwrap_or_else(|| facts.path.clone());
        let internet = remote.as_ref().is_some_and(|at| at.parse::<SocketAddr>().is_ok());
        match errno {
            Errno::CONNREFUSED if internet => Some(Self::Refused { to: to() }),
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => {
                Some(Self::NoRoute { to: to(), errno })
            }
            Errno::CONNREFUSED
            | Errno::CONNRESET
            | Errno::PIPE
            | Errno::NOTCONN
            | Errno::NOENT
            | Errno::TIMEDOUT => Some(Self::PeerGone { backend }),
            _ => None,
        }
    }
}

fn by(holder: Option<&String>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

fn elsewhere_of(namespace: Option<&String>) -> String {
    let there = |at: &String| {
        format!("; the network namespace {at} has it: run there by `nsenter --net={at}`")
    };
    namespace.map(there).unwrap_or_default()
}

fn of_mtu(mtu: Option<u32>) -> String {
    mtu.map(|mtu| format!(" (MTU {mtu})")).unwrap_or_default()
}
