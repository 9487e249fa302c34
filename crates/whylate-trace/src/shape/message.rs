//! The meaning of the events of messages on their way: net, skb, sock, tcp, udp, qdisc, napi, syscalls.
//!
//! There may be several hundred thousand of them a second, so that reading one allocates nothing; a
//! frame that was dropped is the exception, with the kernel's word for why.

use whylate_model::event::{EventKind, Protocol};

use crate::error::TraceError;
use crate::field::{Bytes, Number};
use crate::format::EventFormat;

/// `MSG_PEEK`: the message is left where it is.
const PEEK: u64 = 2;

/// The fields of one event of a message.
#[derive(Debug, Clone)]
pub(crate) enum MessageShape {
    SendCall,
    TcpSend { length: Number },
    Queue(Frame),
    Xmit(Frame),
    Receive(Frame),
    QdiscIn { skb: Number },
    QdiscOut { skb: Number },
    NapiPoll { device: Bytes, work: Number },
    TcpSegment { skb: Option<Number>, socket: Option<Number>, length: Number },
    Ready(Socket),
    Sent { socket: Socket, length: Number },
    Read { socket: Socket, length: Number, flags: Number },
    Copied { skb: Number, length: Number },
    UdpRefused { error: Number, port: Option<Number> },
    Freed { skb: Number, reason: Option<Number>, reasons: Vec<(u64, String)> },
    Consumed { skb: Number },
}

/// Where a frame is described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    skb: Number,
    device: Bytes,
    length: Number,
}

/// Where a socket is described.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Socket {
    address: Number,
    family: Number,
    protocol: Number,
}

impl MessageShape {
    /// Finds the fields; `None` of an event that is none of these.
    pub(super) fn of(system: &str, format: &EventFormat) -> Result<Option<Self>, TraceError> {
        let number = |name| Number::of(format, name);
        let optional = |name| Number::of_optional(format, name);
        let frame = || {
            let device = Bytes::of(format, "name")?;
            Ok(Frame { skb: number("skbaddr")?, device, length: number("len")? })
        };
        let socket = |address| {
            let (family, protocol) = (number("family")?, number("protocol")?);
            Ok(Socket { address: number(address)?, family, protocol })
        };
        Ok(Some(match (system, format.name.as_str()) {
            ("syscalls", name) if name.starts_with("sys_enter_") => Self::SendCall,
            ("tcp", "tcp_sendmsg_locked") => Self::TcpSend { length: number("msg_left")? },
            ("net", "net_dev_queue") => Self::Queue(frame()?),
            ("net", "net_dev_start_xmit") => Self::Xmit(frame()?),
            ("net", "netif_receive_skb") => Self::Receive(frame()?),
            ("qdisc", "qdisc_enqueue") => Self::QdiscIn { skb: number("skbaddr")? },
            ("qdisc", "qdisc_dequeue") => Self::QdiscOut { skb: number("skbaddr")? },
            ("napi", "napi_poll") => {
                Self::NapiPoll { device: Bytes::of(format, "dev_name")?, work: number("work")? }
            }
            ("tcp", "tcp_probe") => Self::TcpSegment {
                skb: optional("skbaddr")?,
                socket: optional("skaddr")?,
                length: number("data_len")?,
            },
            ("sock", "sk_data_ready") => Self::Ready(socket("skaddr")?),
            ("sock", "sock_send_length") => {
                Self::Sent { socket: socket("sk")?, length: number("ret")? }
            }
            ("sock", "sock_recv_length") => Self::Read {
                socket: socket("sk")?,
                length: number("ret")?,
                flags: number("flags")?,
            },
            ("skb", "skb_copy_datagram_iovec") => {
                Self::Copied { skb: number("skbaddr")?, length: number("len")? }
            }
            ("udp", "udp_fail_queue_rcv_skb") => Self::UdpRefused {
                error: number("rc")?,
                // Older kernels call it the local port, for that is what it is to the receiver.
                port: match optional("dport")? {
                    Some(port) => Some(port),
                    None => optional("lport")?,
                },
            },
            ("skb", "kfree_skb") => Self::Freed {
                skb: number("skbaddr")?,
                reason: optional("reason")?,
                reasons: format.named_values("reason"),
            },
            ("skb", "consume_skb") => Self::Consumed { skb: number("skbaddr")? },
            _ => return Ok(None),
        }))
    }

    /// What a record says; `None` where it is shorter than its format, or points outside itself.
    #[inline]
    pub(super) fn read(&self, record: &[u8]) -> Option<EventKind> {
        Some(match self {
            Self::SendCall => EventKind::SendCall,
            Self::TcpSend { length } => EventKind::TcpSend { length: length.read_i32(record)? },
            Self::Queue(frame) => EventKind::NetQueue {
                skb: frame.skb.read(record)?,
                device: frame.device.read_device(record)?,
                length: read_u32(frame.length, record)?,
            },
            Self::Xmit(frame) => EventKind::NetXmit {
                skb: frame.skb.read(record)?,
                device: frame.device.read_device(record)?,
                length: read_u32(frame.length, record)?,
            },
            Self::Receive(frame) => EventKind::NetReceive {
                skb: frame.skb.read(record)?,
                device: frame.device.read_device(record)?,
                length: read_u32(frame.length, record)?,
            },
            Self::QdiscIn { skb } => EventKind::QdiscIn { skb: skb.read(record)? },
            Self::QdiscOut { skb } => EventKind::QdiscOut { skb: skb.read(record)? },
            Self::NapiPoll { device, work } => EventKind::NapiPoll {
                device: device.read_device(record)?,
                work: work.read_i32(record)?,
            },
            Self::TcpSegment { skb, socket, length } => EventKind::TcpSegment {
                skb: read_optional(*skb, record)?,
                socket: read_optional(*socket, record)?,
                length: read_u32(*length, record)?,
            },
            Self::Ready(socket) => EventKind::SocketReady {
                socket: socket.address.read(record)?,
                protocol: socket.protocol(record)?,
            },
            Self::Sent { socket, length } => EventKind::SocketSent {
                socket: socket.address.read(record)?,
                protocol: socket.protocol(record)?,
                length: length.read_i32(record)?,
            },
            Self::Read { socket, length, flags } => {
                let at = socket.address.read(record)?;
                let (protocol, length) = (socket.protocol(record)?, length.read_i32(record)?);
                if flags.read(record)? & PEEK == 0 {
                    EventKind::SocketRead { socket: at, protocol, length }
                } else {
                    EventKind::SocketPeeked { socket: at }
                }
            }
            Self::Copied { skb, length } => {
                EventKind::SkbCopied { skb: skb.read(record)?, length: length.read_i32(record)? }
            }
            Self::UdpRefused { error, port } => EventKind::UdpRefused {
                error: error.read_i32(record)?,
                port: read_optional(*port, record)?.map(|port| port as u16),
            },
            Self::Freed { skb, reason, reasons } => {
                let skb = skb.read(record)?;
                let number = read_optional(*reason, record)?;
                EventKind::SkbFreed { skb, reason: word(number, reasons) }
            }
            Self::Consumed { skb } => EventKind::SkbConsumed { skb: skb.read(record)? },
        })
    }
}

impl Socket {
    #[inline]
    fn protocol(self, record: &[u8]) -> Option<Protocol> {
        let (family, protocol) = (self.family.read(record)?, self.protocol.read(record)?);
        Some(Protocol::from_numbers(family, protocol))
    }
}

/// The kernel's word for a number; the number itself where it has none, nothing where there is none.
fn word(number: Option<u64>, words: &[(u64, String)]) -> String {
    let Some(number) = number else { return String::new() };
    let known = words.iter().find(|(value, _)| *value == number);
    known.map_or_else(|| number.to_string(), |(_, word)| word.clone())
}

#[inline]
fn read_u32(number: Number, record: &[u8]) -> Option<u32> {
    number.read(record).map(|value| value as u32)
}

/// What a field says that the kernel may lack; outside, `None` where the record is too short.
#[inline]
#[expect(clippy::option_option, reason = "a field that is not there is no damaged record")]
fn read_optional(number: Option<Number>, record: &[u8]) -> Option<Option<u64>> {
    number.map_or(Some(None), |number| number.read(record).map(Some))
}
