//! Kernel events as rows: the layout of `events-0001.parquet`.
//!
//! An event is first laid out flat, [`Flat`], in which every kind of event fills the columns that it
//! has something for; the columns are filled from that and read into it.

use std::io::Write;

use parquet::data_type::{BoolType, ByteArray, Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Lists, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::event::{DeviceName, Event, EventKind, Protocol, Softirq, Task};
use crate::units::{CpuId, Pid, Ticks};

/// Elements of all lists beyond which the rows count as many: an interrupt to every CPU of a large
/// machine holds hundreds.
const MANY_TARGETS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct EventRows {
    ticks: Required<Int64Type>,
    cpu: Required<Int32Type>,
    pid: Required<Int32Type>,
    kind: Texts,
    name: Texts,
    number: Optional<Int64Type>,
    task_pid: Optional<Int32Type>,
    task_comm: Texts,
    task_prio: Optional<Int32Type>,
    from_pid: Optional<Int32Type>,
    from_comm: Texts,
    from_prio: Optional<Int32Type>,
    from_runnable: Optional<BoolType>,
    from_cpu: Optional<Int32Type>,
    target_cpu: Optional<Int32Type>,
    target_cpus: Lists,
    user: Optional<BoolType>,
    address: Optional<Int64Type>,
    ip: Optional<Int64Type>,
    callsite: Optional<Int64Type>,
    function: Optional<Int64Type>,
    duration_ns: Optional<Int64Type>,
}

impl Rows for EventRows {
    type Row = Event;

    const KIND: &'static str = "events";

    const SCHEMA: &'static str = "message events {
        REQUIRED INT64 ticks (INTEGER(64, false));
        REQUIRED INT32 cpu (INTEGER(32, false));
        REQUIRED INT32 pid (INTEGER(32, true));
        REQUIRED BYTE_ARRAY kind (STRING);
        OPTIONAL BYTE_ARRAY name (STRING);
        OPTIONAL INT64 number (INTEGER(64, true));
        OPTIONAL INT32 task_pid (INTEGER(32, true));
        OPTIONAL BYTE_ARRAY task_comm (STRING);
        OPTIONAL INT32 task_prio (INTEGER(32, true));
        OPTIONAL INT32 from_pid (INTEGER(32, true));
        OPTIONAL BYTE_ARRAY from_comm (STRING);
        OPTIONAL INT32 from_prio (INTEGER(32, true));
        OPTIONAL BOOLEAN from_runnable;
        OPTIONAL INT32 from_cpu (INTEGER(32, false));
        OPTIONAL INT32 target_cpu (INTEGER(32, false));
        OPTIONAL group target_cpus (LIST) {
            REPEATED group list { REQUIRED INT32 element (INTEGER(32, false)); }
        }
        OPTIONAL BOOLEAN user;
        OPTIONAL INT64 address (INTEGER(64, false));
        OPTIONAL INT64 ip (INTEGER(64, false));
        OPTIONAL INT64 callsite (INTEGER(64, false));
        OPTIONAL INT64 function (INTEGER(64, false));
        OPTIONAL INT64 duration_ns (INTEGER(64, true));
    }";

    const RISING: &'static [&'static str] = &["ticks"];

    fn push(&mut self, event: &Event) {
        self.ticks.push(event.ticks.0.cast_signed());
        self.cpu.push(event.cpu.0.cast_signed());
        self.pid.push(event.pid.0);
        let flat = flatten(&event.kind);
        self.kind.push(Some(flat.kind));
        self.name.push(flat.name);
        self.number.push(flat.number);
        self.task_pid.push(flat.task_pid);
        self.task_comm.push(flat.task_comm);
        self.task_prio.push(flat.task_prio);
        self.from_pid.push(flat.from_pid);
        self.from_comm.push(flat.from_comm);
        self.from_prio.push(flat.from_prio);
        self.from_runnable.push(flat.from_runnable);
        self.from_cpu.push(flat.from_cpu.map(|cpu| cpu.0.cast_signed()));
        self.target_cpu.push(flat.target_cpu.map(|cpu| cpu.0.cast_signed()));
        self.target_cpus.push(flat.target_cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0)));
        self.user.push(flat.user);
        self.address.push(flat.address.map(u64::cast_signed));
        self.ip.push(flat.ip.map(u64::cast_signed));
        self.callsite.push(flat.callsite.map(u64::cast_signed));
        self.function.push(flat.function.map(u64::cast_signed));
        self.duration_ns.push(flat.duration_ns);
    }

    fn len(&self) -> usize {
        self.ticks.values.len()
    }

    fn heavy(&self) -> bool {
        self.target_cpus.elements() > MANY_TARGETS
    }

    fn span(event: &Event) -> (Ticks, Ticks) {
        (event.ticks, event.ticks)
    }

    fn clear(&mut self) {
        self.ticks.clear();
        self.cpu.clear();
        self.pid.clear();
        self.kind.clear();
        self.name.clear();
        self.number.clear();
        self.task_pid.clear();
        self.task_comm.clear();
        self.task_prio.clear();
        self.from_pid.clear();
        self.from_comm.clear();
        self.from_prio.clear();
        self.from_runnable.clear();
        self.from_cpu.clear();
        self.target_cpu.clear();
        self.target_cpus.clear();
        self.user.clear();
        self.address.clear();
        self.ip.clear();
        self.callsite.clear();
        self.function.clear();
        self.duration_ns.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.ticks.write(group)?;
        self.cpu.write(group)?;
        self.pid.write(group)?;
        self.kind.write(group, Presence::Always)?;
        self.name.write(group, Presence::Sometimes)?;
        self.number.write(group)?;
        self.task_pid.write(group)?;
        self.task_comm.write(group, Presence::Sometimes)?;
        self.task_prio.write(group)?;
        self.from_pid.write(group)?;
        self.from_comm.write(group, Presence::Sometimes)?;
        self.from_prio.write(group)?;
        self.from_runnable.write(group)?;
        self.from_cpu.write(group)?;
        self.target_cpu.write(group)?;
        self.target_cpus.write(group)?;
        self.user.write(group)?;
        self.address.write(group)?;
        self.ip.write(group)?;
        self.callsite.write(group)?;
        self.function.write(group)?;
        self.duration_ns.write(group)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<Event>> {
        Read::all(columns)?.events(columns.rows())
    }
}

/// One event with a place for everything that any kind of event has.
#[derive(Debug, Default)]
struct Flat<'a> {
    kind: &'a str,
    name: Option<&'a str>,
    number: Option<i64>,
    task_pid: Option<i32>,
    task_comm: Option<&'a str>,
    task_prio: Option<i32>,
    from_pid: Option<i32>,
    from_comm: Option<&'a str>,
    from_prio: Option<i32>,
    from_runnable: Option<bool>,
    from_cpu: Option<CpuId>,
    target_cpu: Option<CpuId>,
    target_cpus: Option<&'a [CpuId]>,
    user: Option<bool>,
    address: Option<u64>,
    ip: Option<u64>,
    callsite: Option<u64>,
    function: Option<u64>,
    duration_ns: Option<i64>,
}

impl<'a> Flat<'a> {
    fn about(self, task: &'a Task) -> Self {
        Self {
            task_pid: Some(task.pid.0),
            task_comm: Some(&task.comm),
            task_prio: Some(task.prio),
            ..self
        }
    }
}

fn flatten(kind: &EventKind) -> Flat<'_> {
    let flat = |kind| Flat { kind, ..Flat::default() };
    let named = |kind, name, number| Flat { name: Some(name), number: Some(number), ..flat(kind) };
    let numbered = |kind, number: i32| Flat { number: Some(number.into()), ..flat(kind) };
    let softirq = |kind, vector: &Softirq| named(kind, vector.name(), vector.number().into());
    let works = |kind, function| Flat { function: Some(function), ..flat(kind) };
    match kind {
        EventKind::VectorEntry { name, vector } => named("vector_entry", name, (*vector).into()),
        EventKind::VectorExit { name, vector } => named("vector_exit", name, (*vector).into()),
        EventKind::HandlerEntry { irq, name } => named("handler_entry", name, (*irq).into()),
        EventKind::HandlerExit { irq } => numbered("handler_exit", *irq),
        EventKind::SoftirqEntry { vector } => softirq("softirq_entry", vector),
        EventKind::SoftirqExit { vector } => softirq("softirq_exit", vector),
        EventKind::Switch { from, from_runnable, to } => Flat {
            from_pid: Some(from.pid.0),
            from_comm: Some(&from.comm),
            from_prio: Some(from.prio),
            from_runnable: Some(*from_runnable),
            ..flat("switch").about(to)
        },
        EventKind::Wakeup { task, target } => {
            Flat { target_cpu: Some(*target), ..flat("wakeup").about(task) }
        }
        EventKind::Migrate { task, from, to } => {
            Flat { from_cpu: Some(*from), target_cpu: Some(*to), ..flat("migrate").about(task) }
        }
        EventKind::PageFault { user, address, ip } => {
            Flat { user: Some(*user), address: Some(*address), ip: Some(*ip), ..flat("page_fault") }
        }
        EventKind::Nmi { duration_ns } => Flat { duration_ns: Some(*duration_ns), ..flat("nmi") },
        EventKind::SignalGenerate { signal, pid, comm } => Flat {
            task_pid: Some(pid.0),
            task_comm: Some(comm),
            ..numbered("signal_generate", *signal)
        },
        EventKind::SignalDeliver { signal } => numbered("signal_deliver", *signal),
        EventKind::WorkStart { function } => works("work_start", *function),
        EventKind::WorkEnd { function } => works("work_end", *function),
        EventKind::IpiSend { targets, callsite, callback } => Flat {
            target_cpus: Some(targets),
            callsite: Some(*callsite),
            ..works("ipi_send", *callback)
        },
        EventKind::CallQueued { target, callsite, function } => Flat {
            target_cpu: Some(*target),
            callsite: Some(*callsite),
            ..works("call_queued", *function)
        },
        kind => flatten_network(kind),
    }
}

/// The same for events of messages on their way: buffers and ports go to the column of
/// addresses, sockets to that of functions, devices and protocols to that of names.
fn flatten_network(kind: &EventKind) -> Flat<'_> {
    let flat = |kind| Flat { kind, ..Flat::default() };
    let counted = |kind, length: i64| Flat { number: Some(length), ..flat(kind) };
    let buffer = |kind, skb: u64| Flat { address: Some(skb), ..flat(kind) };
    let frame = |kind, skb: u64, device, length: u32| Flat {
        name: Some(DeviceName::as_str(device)),
        number: Some(length.into()),
        ..buffer(kind, skb)
    };
    let socket = |kind, socket: u64, protocol: &Protocol| Flat {
        name: Some(protocol.name()),
        function: Some(socket),
        ..flat(kind)
    };
    match kind {
        EventKind::TcpSend { length } => counted("tcp_send", (*length).into()),
        EventKind::NetQueue { skb, device, length } => frame("net_queue", *skb, device, *length),
        EventKind::NetXmit { skb, device, length } => frame("net_xmit", *skb, device, *length),
        EventKind::NetReceive { skb, device, length } => {
            frame("net_receive", *skb, device, *length)
        }
        EventKind::QdiscIn { skb } => buffer("qdisc_in", *skb),
        EventKind::QdiscOut { skb } => buffer("qdisc_out", *skb),
        EventKind::NapiPoll { device, work } => {
            Flat { name: Some(device.as_str()), ..counted("napi_poll", (*work).into()) }
        }
        EventKind::TcpSegment { skb, socket, length } => {
            Flat { address: *skb, function: *socket, ..counted("tcp_segment", (*length).into()) }
        }
        EventKind::SocketReady { socket: at, protocol } => socket("socket_ready", *at, protocol),
        EventKind::SocketSent { socket: at, protocol, length } => {
            Flat { number: Some((*length).into()), ..socket("socket_sent", *at, protocol) }
        }
        EventKind::SocketRead { socket: at, protocol, length } => {
            Flat { number: Some((*length).into()), ..socket("socket_read", *at, protocol) }
        }
        EventKind::SocketPeeked { socket } => {
            Flat { function: Some(*socket), ..flat("socket_peeked") }
        }
        EventKind::SkbCopied { skb, length } => {
            Flat { number: Some((*length).into()), ..buffer("skb_copied", *skb) }
        }
        EventKind::UdpRefused { error, port } => {
            Flat { address: port.map(u64::from), ..counted("udp_refused", (*error).into()) }
        }
        EventKind::SkbFreed { skb, reason } => {
            Flat { name: Some(reason), ..buffer("skb_freed", *skb) }
        }
        EventKind::SkbConsumed { skb } => buffer("skb_consumed", *skb),
        // What is none of these was laid out by the caller.
        _ => flat("send_call"),
    }
}

/// The columns of a segment as they were read.
struct Read {
    ticks: Vec<i64>,
    cpu: Vec<i32>,
    pid: Vec<i32>,
    kind: Vec<Option<ByteArray>>,
    name: Vec<Option<ByteArray>>,
    number: Vec<Option<i64>>,
    task_pid: Vec<Option<i32>>,
    task_comm: Vec<Option<ByteArray>>,
    task_prio: Vec<Option<i32>>,
    from_pid: Vec<Option<i32>>,
    from_comm: Vec<Option<ByteArray>>,
    from_prio: Vec<Option<i32>>,
    from_runnable: Vec<Option<bool>>,
    from_cpu: Vec<Option<i32>>,
    target_cpu: Vec<Option<i32>>,
    target_cpus: Vec<Option<Vec<u32>>>,
    user: Vec<Option<bool>>,
    address: Vec<Option<i64>>,
    ip: Vec<Option<i64>>,
    callsite: Vec<Option<i64>>,
    function: Vec<Option<i64>>,
    duration_ns: Vec<Option<i64>>,
}

impl Read {
    /// Reads the columns in the order in which they were written.
    fn all(columns: &mut Columns<'_>) -> Result<Self> {
        Ok(Self {
            ticks: Required::<Int64Type>::read(columns)?.values,
            cpu: Required::<Int32Type>::read(columns)?.values,
            pid: Required::<Int32Type>::read(columns)?.values,
            kind: Texts::read(columns, Presence::Always)?,
            name: Texts::read(columns, Presence::Sometimes)?,
            number: Optional::<Int64Type>::read(columns)?,
            task_pid: Optional::<Int32Type>::read(columns)?,
            task_comm: Texts::read(columns, Presence::Sometimes)?,
            task_prio: Optional::<Int32Type>::read(columns)?,
            from_pid: Optional::<Int32Type>::read(columns)?,
            from_comm: Texts::read(columns, Presence::Sometimes)?,
            from_prio: Optional::<Int32Type>::read(columns)?,
            from_runnable: Optional::<BoolType>::read(columns)?,
            from_cpu: Optional::<Int32Type>::read(columns)?,
            target_cpu: Optional::<Int32Type>::read(columns)?,
            target_cpus: Lists::read(columns)?,
            user: Optional::<BoolType>::read(columns)?,
            address: Optional::<Int64Type>::read(columns)?,
            ip: Optional::<Int64Type>::read(columns)?,
            callsite: Optional::<Int64Type>::read(columns)?,
            function: Optional::<Int64Type>::read(columns)?,
            duration_ns: Optional::<Int64Type>::read(columns)?,
        })
    }

    fn events(mut self, rows: usize) -> Result<Vec<Event>> {
        (0..rows)
            .map(|row| {
                Ok(Event {
                    ticks: Ticks(self.ticks[row].cast_unsigned()),
                    cpu: CpuId(self.cpu[row].cast_unsigned()),
                    pid: Pid(self.pid[row]),
                    kind: self.kind(row)?,
                })
            })
            .collect()
    }

    fn kind(&mut self, row: usize) -> Result<EventKind> {
        let kind = self.kind[row].clone();
        Ok(match kind.as_ref().map(text).transpose()? {
            Some("vector_entry") => {
                EventKind::VectorEntry { name: self.name(row)?, vector: self.number(row)? }
            }
            Some("vector_exit") => {
                EventKind::VectorExit { name: self.name(row)?, vector: self.number(row)? }
            }
            Some("handler_entry") => {
                EventKind::HandlerEntry { irq: self.number(row)?, name: self.name(row)? }
            }
            Some("handler_exit") => EventKind::HandlerExit { irq: self.number(row)? },
            Some("softirq_entry") => {
                EventKind::SoftirqEntry { vector: Softirq::from_number(self.number(row)?) }
            }
            Some("softirq_exit") => {
                EventKind::SoftirqExit { vector: Softirq::from_number(self.number(row)?) }
            }
            Some("switch") => EventKind::Switch {
                from: Task {
                    pid: Pid(have(self.from_pid[row], "from_pid")?),
                    comm: owned(self.from_comm[row].as_ref(), "from_comm")?,
                    prio: have(self.from_prio[row], "from_prio")?,
                },
                from_runnable: have(self.from_runnable[row], "from_runnable")?,
                to: self.task(row)?,
            },
            Some("wakeup") => {
                EventKind::Wakeup { task: self.task(row)?, target: self.target(row)? }
            }
            Some("migrate") => EventKind::Migrate {
                task: self.task(row)?,
                from: CpuId(have(self.from_cpu[row], "from_cpu")?.cast_unsigned()),
                to: self.target(row)?,
            },
            Some("page_fault") => EventKind::PageFault {
                user: have(self.user[row], "user")?,
                address: have(self.address[row], "address")?.cast_unsigned(),
                ip: have(self.ip[row], "ip")?.cast_unsigned(),
            },
            Some("nmi") => {
                EventKind::Nmi { duration_ns: have(self.duration_ns[row], "duration_ns")? }
            }
            Some("signal_generate") => EventKind::SignalGenerate {
                signal: self.number(row)?,
                pid: Pid(have(self.task_pid[row], "task_pid")?),
                comm: owned(self.task_comm[row].as_ref(), "task_comm")?,
            },
            Some("signal_deliver") => EventKind::SignalDeliver { signal: self.number(row)? },
            Some("work_start") => EventKind::WorkStart { function: self.function(row)? },
            Some("work_end") => EventKind::WorkEnd { function: self.function(row)? },
            Some("ipi_send") => EventKind::IpiSend {
                targets: have(self.target_cpus[row].take(), "target_cpus")?
                    .into_iter()
                    .map(CpuId)
                    .collect(),
                callsite: have(self.callsite[row], "callsite")?.cast_unsigned(),
                callback: self.function(row)?,
            },
            Some("call_queued") => EventKind::CallQueued {
                target: self.target(row)?,
                callsite: have(self.callsite[row], "callsite")?.cast_unsigned(),
                function: self.function(row)?,
            },
            Some(kind) => self.network_kind(kind, row)?,
            None => return Err(bad_value("kind")),
        })
    }

    fn network_kind(&self, kind: &str, row: usize) -> Result<EventKind> {
        Ok(match kind {
            "send_call" => EventKind::SendCall,
            "tcp_send" => EventKind::TcpSend { length: self.number(row)? },
            "net_queue" => EventKind::NetQueue {
                skb: self.skb(row)?,
                device: self.device(row)?,
                length: self.number(row)?,
            },
            "net_xmit" => EventKind::NetXmit {
                skb: self.skb(row)?,
                device: self.device(row)?,
                length: self.number(row)?,
            },
            "net_receive" => EventKind::NetReceive {
                skb: self.skb(row)?,
                device: self.device(row)?,
                length: self.number(row)?,
            },
            "qdisc_in" => EventKind::QdiscIn { skb: self.skb(row)? },
            "qdisc_out" => EventKind::QdiscOut { skb: self.skb(row)? },
            "napi_poll" => {
                EventKind::NapiPoll { device: self.device(row)?, work: self.number(row)? }
            }
            "tcp_segment" => EventKind::TcpSegment {
                skb: self.address[row].map(i64::cast_unsigned),
                socket: self.function[row].map(i64::cast_unsigned),
                length: self.number(row)?,
            },
            "socket_ready" => EventKind::SocketReady {
                socket: self.function(row)?,
                protocol: self.protocol(row)?,
            },
            "socket_sent" => EventKind::SocketSent {
                socket: self.function(row)?,
                protocol: self.protocol(row)?,
                length: self.number(row)?,
            },
            "socket_read" => EventKind::SocketRead {
                socket: self.function(row)?,
                protocol: self.protocol(row)?,
                length: self.number(row)?,
            },
            "socket_peeked" => EventKind::SocketPeeked { socket: self.function(row)? },
            "skb_copied" => EventKind::SkbCopied { skb: self.skb(row)?, length: self.number(row)? },
            "udp_refused" => {
                EventKind::UdpRefused { error: self.number(row)?, port: self.port(row)? }
            }
            "skb_freed" => EventKind::SkbFreed { skb: self.skb(row)?, reason: self.name(row)? },
            "skb_consumed" => EventKind::SkbConsumed { skb: self.skb(row)? },
            _ => return Err(bad_value("kind")),
        })
    }

    fn skb(&self, row: usize) -> Result<u64> {
        Ok(have(self.address[row], "address")?.cast_unsigned())
    }

    fn port(&self, row: usize) -> Result<Option<u16>> {
        let port = self.address[row].map(u16::try_from).transpose();
        port.map_err(|_| bad_value("address"))
    }

    fn device(&self, row: usize) -> Result<DeviceName> {
        Ok(DeviceName::from(text(have(self.name[row].as_ref(), "name")?)?))
    }

    fn protocol(&self, row: usize) -> Result<Protocol> {
        let name = text(have(self.name[row].as_ref(), "name")?)?;
        Protocol::from_name(name).ok_or_else(|| bad_value("name"))
    }

    fn task(&self, row: usize) -> Result<Task> {
        Ok(Task {
            pid: Pid(have(self.task_pid[row], "task_pid")?),
            comm: owned(self.task_comm[row].as_ref(), "task_comm")?,
            prio: have(self.task_prio[row], "task_prio")?,
        })
    }

    fn name(&self, row: usize) -> Result<String> {
        owned(self.name[row].as_ref(), "name")
    }

    fn number<N: TryFrom<i64>>(&self, row: usize) -> Result<N> {
        N::try_from(have(self.number[row], "number")?).map_err(|_| bad_value("number"))
    }

    fn target(&self, row: usize) -> Result<CpuId> {
        Ok(CpuId(have(self.target_cpu[row], "target_cpu")?.cast_unsigned()))
    }

    fn function(&self, row: usize) -> Result<u64> {
        Ok(have(self.function[row], "function")?.cast_unsigned())
    }
}

fn have<T>(value: Option<T>, column: &str) -> Result<T> {
    value.ok_or_else(|| bad_value(column))
}

fn owned(value: Option<&ByteArray>, column: &str) -> Result<String> {
    Ok(text(have(value, column)?)?.to_owned())
}
