//! Events as the kernel records them for messages whose every instant is planted.

use whylate_model::event::{Event, EventKind, Protocol, Softirq, Task};
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

use crate::follow::{Follower, Limits, Passage};

/// CPUs of the planted host.
pub(crate) const CPUS: u32 = 3;
/// Longer than any planted exchange that is not meant to be longer.
pub(crate) const PATIENCE: TicksDelta = TicksDelta(100_000);

/// A message with everything that happens to it, in ticks after the call that sends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) at: u64,
    pub(crate) skb: u64,
    pub(crate) protocol: Protocol,
    pub(crate) bytes: u32,
    pub(crate) sender: i32,
    pub(crate) sending_socket: u64,
    pub(crate) sender_cpu: u32,
    pub(crate) reader: i32,
    pub(crate) socket: u64,
    pub(crate) reader_cpu: u32,
    /// Where the receiving stack runs.
    pub(crate) stack_cpu: u32,
    /// The reader sleeps when it is delivered.
    pub(crate) asleep: bool,
    pub(crate) queued: u64,
    pub(crate) driver: u64,
    pub(crate) arrived: u64,
    pub(crate) delivered: u64,
    pub(crate) woken: u64,
    pub(crate) running: u64,
    pub(crate) read: u64,
}

/// Thread 10 on CPU 0 sends a datagram of 64 bytes to thread 20 on CPU 1, which sleeps.
pub(crate) const DATAGRAM: Message = Message {
    at: 1_000,
    skb: 0xff00,
    protocol: Protocol::Udp,
    bytes: 64,
    sender: 10,
    sending_socket: 0xa0,
    sender_cpu: 0,
    reader: 20,
    socket: 0xb0,
    reader_cpu: 1,
    stack_cpu: 0,
    asleep: true,
    queued: 20,
    driver: 30,
    arrived: 50,
    delivered: 60,
    woken: 70,
    running: 120,
    read: 150,
};

impl Message {
    /// The same in the other direction.
    pub(crate) fn back(self, at: u64, skb: u64) -> Self {
        Self {
            at,
            skb,
            sender: self.reader,
            sending_socket: self.socket,
            sender_cpu: self.reader_cpu,
            stack_cpu: self.reader_cpu,
            reader: self.sender,
            socket: self.sending_socket,
            reader_cpu: self.sender_cpu,
            ..self
        }
    }

    /// What has to be found of it, but for the number of its call.
    pub(crate) fn passage(&self) -> Passage {
        let after = |ticks: u64| Some(Ticks(self.at + ticks));
        Passage {
            socket: Some(self.socket),
            sending_socket: Some(self.sending_socket),
            protocol: Some(self.protocol),
            sender: Some(Pid(self.sender)),
            call: 0,
            reader: Some(Pid(self.reader)),
            sent: after(0),
            queued: after(self.queued),
            driver: after(self.driver),
            arrived: after(self.arrived),
            delivered: after(self.delivered),
            woken: after(self.woken).filter(|_| self.asleep),
            running: after(self.running).filter(|_| self.asleep),
            read: after(self.read),
            bytes: self.bytes,
            devices: 1,
            sender_cpu: Some(CpuId(self.sender_cpu)),
            reader_cpu: Some(CpuId(self.reader_cpu)),
        }
    }

    /// Bytes of the frame with its link's header.
    pub(crate) fn frame(&self) -> u32 {
        self.bytes + 42
    }
}

/// Events that are being planted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    pub(crate) events: Vec<Event>,
}

pub(crate) fn task(pid: i32) -> Task {
    Task { pid: Pid(pid), comm: format!("thread-{pid}"), prio: 120 }
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn event(&mut self, at: u64, cpu: u32, pid: i32, kind: EventKind) -> &mut Self {
        self.events.push(Event { ticks: Ticks(at), cpu: CpuId(cpu), pid: Pid(pid), kind });
        self
    }

    pub(crate) fn softirq(&mut self, cpu: u32, pid: i32, (from, to): (u64, u64)) -> &mut Self {
        let vector = Softirq::NetRx;
        self.event(from, cpu, pid, EventKind::SoftirqEntry { vector });
        self.event(to, cpu, pid, EventKind::SoftirqExit { vector })
    }

    /// A thread leaves a CPU, which does nothing then.
    pub(crate) fn sleep(&mut self, at: u64, cpu: u32, pid: i32) -> &mut Self {
        let kind = EventKind::Switch { from: task(pid), from_runnable: false, to: task(0) };
        self.event(at, cpu, pid, kind)
    }

    /// A thread is woken and gets a CPU.
    pub(crate) fn wake(&mut self, cpu: u32, pid: i32, (woken, runs): (u64, u64)) -> &mut Self {
        let target = CpuId(cpu);
        self.event(woken, cpu, 0, EventKind::Wakeup { task: task(pid), target });
        let kind = EventKind::Switch { from: task(0), from_runnable: true, to: task(pid) };
        self.event(runs, cpu, 0, kind)
    }

    /// The call up to the driver.
    pub(crate) fn send(&mut self, m: &Message) -> &mut Self {
        let (cpu, pid, skb, length) = (m.sender_cpu, m.sender, m.skb, m.frame());
        let device = "lo".into();
        self.event(m.at, cpu, pid, EventKind::SendCall);
        self.event(m.at + m.queued, cpu, pid, EventKind::NetQueue { skb, device, length });
        self.event(m.at + m.driver, cpu, pid, EventKind::NetXmit { skb, device, length })
    }

    /// From the stack to the socket, in a soft interrupt of its own.
    pub(crate) fn deliver(&mut self, m: &Message) -> &mut Self {
        // A stack on the sender's CPU interrupts the sender, on another one whoever is there.
        let pid = if m.stack_cpu == m.sender_cpu { m.sender } else { 0 };
        let (cpu, skb, length) = (m.stack_cpu, m.skb, m.frame() - 14);
        let device = "lo".into();
        self.softirq(cpu, pid, (m.at + m.arrived - 1, m.at + m.delivered + 1));
        self.event(m.at + m.arrived, cpu, pid, EventKind::NetReceive { skb, device, length });
        if m.protocol == Protocol::Tcp {
            let (skb, socket, length) = (Some(skb), Some(m.socket), m.bytes);
            let kind = EventKind::TcpSegment { skb, socket, length };
            self.event(m.at + m.delivered - 1, cpu, pid, kind);
        }
        let kind = EventKind::SocketReady { socket: m.socket, protocol: m.protocol };
        self.event(m.at + m.delivered, cpu, pid, kind)
    }

    /// The sender's call is over.
    pub(crate) fn sent(&mut self, m: &Message) -> &mut Self {
        let (socket, protocol, length) = (m.sending_socket, m.protocol, m.bytes as i32);
        let kind = EventKind::SocketSent { socket, protocol, length };
        self.event(m.at + m.delivered + 5, m.sender_cpu, m.sender, kind)
    }

    /// The reader reads so many bytes, asleep before or not.
    pub(crate) fn read(&mut self, m: &Message, bytes: u32) -> &mut Self {
        if m.asleep {
            self.sleep(m.at + m.arrived - 2, m.reader_cpu, m.reader);
            self.wake(m.reader_cpu, m.reader, (m.at + m.woken, m.at + m.running));
        }
        let (socket, protocol, length) = (m.socket, m.protocol, bytes as i32);
        let kind = EventKind::SocketRead { socket, protocol, length };
        self.event(m.at + m.read, m.reader_cpu, m.reader, kind)
    }

    /// The reader copies a datagram of this buffer, and has so many bytes of it.
    pub(crate) fn read_copying(&mut self, m: &Message, (at, skb): (u64, u64)) -> &mut Self {
        let (cpu, pid, length) = (m.reader_cpu, m.reader, m.bytes as i32);
        self.event(at - 1, cpu, pid, EventKind::SkbCopied { skb, length });
        let (socket, protocol) = (m.socket, m.protocol);
        self.event(at, cpu, pid, EventKind::SocketRead { socket, protocol, length })
    }

    /// All of it.
    pub(crate) fn message(&mut self, m: &Message) -> &mut Self {
        self.send(m).deliver(m).sent(m).read(m, m.bytes)
    }

    /// The events of each CPU in their order.
    pub(crate) fn by_cpu(&self) -> Vec<Vec<Event>> {
        let of = |cpu| {
            let mut events: Vec<Event> =
                self.events.iter().filter(|event| event.cpu == CpuId(cpu)).cloned().collect();
            events.sort_by_key(|event| event.ticks);
            events
        };
        (0..CPUS).map(of).collect()
    }

    /// What a follower finds.
    pub(crate) fn follow(&self) -> (Vec<Passage>, Follower) {
        let mut follower = follower();
        for (cpu, events) in self.by_cpu().into_iter().enumerate() {
            follower.push(CpuId(cpu as u32), events);
        }
        complete(&mut follower, u64::MAX / 2);
        (found(&mut follower), follower)
    }
}

pub(crate) fn follower() -> Follower {
    Follower::new(Limits::usual((0..CPUS).map(CpuId).collect(), PATIENCE))
}

pub(crate) fn complete(follower: &mut Follower, to: u64) {
    for cpu in 0..CPUS {
        follower.complete(CpuId(cpu), Ticks(to));
    }
}

/// The passages by their beginning, without the numbers of their calls.
pub(crate) fn found(follower: &mut Follower) -> Vec<Passage> {
    let mut found = follower.take();
    found.sort_by_key(|passage| (passage.begins(), passage.read));
    found.into_iter().map(|passage| Passage { call: 0, ..passage }).collect()
}

/// A request of three segments, of which the last is read by a call of its own, and its reply of two.
pub(crate) fn pieces() -> [Vec<Passage>; 2] {
    let stream = Message { protocol: Protocol::Tcp, bytes: 100, ..DATAGRAM };
    let there = [(0, 110, 120, 150), (1, 110, 120, 150), (2, 160, 180, 200)];
    let there = there.map(|(piece, woken, running, read)| {
        let m = Message {
            skb: 0x100 + piece,
            queued: 20 + 10 * piece,
            driver: 25 + 10 * piece,
            arrived: 60 + 20 * piece,
            delivered: 65 + 20 * piece,
            woken,
            running,
            read,
            ..stream
        };
        Passage { call: 7, ..m.passage() }
    });
    let back = [(20, 25, 60, 70, 150), (40, 45, 80, 90, 170)];
    let back = back.map(|(queued, driver, arrived, delivered, read)| {
        let m = Message { queued, driver, arrived, delivered, read, asleep: false, ..stream };
        Passage { call: 9, ..m.back(1_300, 0x200 + queued).passage() }
    });
    [there.to_vec(), back.to_vec()]
}
