//! What can keep requests from being measured.

use std::path::PathBuf;

use whylate_model::{CpuId, Nanos};
use whylate_port::PortError;
use whylate_sys::SysError;
use whylate_threads::ThreadsError;

use crate::closed_loop::{MAX_DURATION, MAX_REQUESTS, MAX_TIMEOUT, MIN_TIMEOUT};
use crate::message::{HEADER_BYTES, MAX_BYTES};
use crate::protocol::sockperf::NAME as SOCKPERF;

/// Why requests could not be measured or answered.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The port failed before anything was measured.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The thread could not be placed.
    #[error(transparent)]
    Thread(#[from] ThreadsError),
    /// The message size is out of range.
    #[error("a request of {0} bytes is outside {HEADER_BYTES} to {MAX_BYTES}: choose one inside")]
    Size(usize),
    /// The message size is none of the protocol's.
    #[error(
        "a {protocol} request cannot have {bytes} bytes: use --size {least} to {most} ({frames})"
    )]
    SizeOf {
        /// The size asked for.
        bytes: usize,
        /// The protocol.
        protocol: &'static str,
        /// The smallest.
        least: usize,
        /// The largest.
        most: usize,
        /// The frames around the smallest.
        frames: String,
    },
    /// A closed loop of messages that ask for no reply.
    #[error(
        "a closed loop waits for replies, and messages one way ask for none: choose another \
         pattern of arrivals"
    )]
    NothingToWaitFor,
    /// A capture cannot be replayed.
    #[error(transparent)]
    Capture(#[from] crate::capture::CaptureError),
    /// Nothing can be held back.
    #[error(transparent)]
    Delay(#[from] crate::delay::DelayError),
    /// No orders can be taken.
    #[error(transparent)]
    Control(#[from] crate::delay::ControlError),
    /// Messages cannot be carried by a proxy.
    #[error(transparent)]
    Proxy(#[from] crate::delay::ProxyError),
    /// Nothing can be forwarded.
    #[error(transparent)]
    Forward(#[from] crate::forward::ForwardError),
    /// The protocol has no message that asks for no reply.
    #[error("a {protocol} server does not count one-way messages: use --protocol raw")]
    AsksForReplies {
        /// The protocol.
        protocol: &'static str,
    },
    /// The plan cannot be kept.
    #[error(transparent)]
    Plan(#[from] crate::schedule::PlanError),
    /// Nothing would be measured, or for too long.
    #[error(
        "a measurement of {duration} after a warm-up of {warmup}: the first must be above 0, and \
         both at most {MAX_DURATION}"
    )]
    Time {
        /// Duration asked for.
        duration: Nanos,
        /// Warm-up asked for.
        warmup: Nanos,
    },
    /// The timeout is out of range.
    #[error("a timeout of {0} is outside {MIN_TIMEOUT} to {MAX_TIMEOUT}: choose one inside")]
    Timeout(Nanos),
    /// Nothing would be measured, or without end.
    #[error(
        "{requests} requests in {duration}: both must be above 0, and at most {MAX_REQUESTS} \
         and {MAX_DURATION}"
    )]
    Length {
        /// Requests asked for.
        requests: u64,
        /// Duration asked for.
        duration: Nanos,
    },
    /// No reflector answered.
    #[error(
        "no reflector answered by {backend} ({path}) within {limit}: did it start, \
         and is it still running? {advice}"
    )]
    NoReflector {
        /// The backend of the port.
        backend: &'static str,
        /// From where to where.
        path: String,
        /// How long it was tried.
        limit: Nanos,
        /// What a server of another protocol needs.
        advice: &'static str,
    },
    /// The other end is a server that returns what it gets.
    #[error(
        "{peer} returns what it gets and is no {wanted}: run `{start}` there, or `whylate watch PORT` as \
         root beside your server"
    )]
    Returned {
        /// The other end.
        peer: String,
        /// What was looked for.
        wanted: &'static str,
        /// How that is started.
        start: &'static str,
    },
    /// The other end speaks another version of the messages.
    #[error(
        "the other end ({path}) speaks version {version} of whylate's messages, and this whylate \
         version {ours}: run the same version of whylate at both ends"
    )]
    OtherVersion {
        /// From where to where.
        path: String,
        /// The other end's.
        version: u8,
        /// This end's.
        ours: u8,
    },
    /// The reflector's process could not be started.
    #[error("cannot start {exe} as reflector: {source}")]
    Spawn {
        /// The program.
        exe: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The reflector's process did not listen.
    #[error("{exe} did not begin to reflect: {said}")]
    NotListening {
        /// The program.
        exe: PathBuf,
        /// What it said instead.
        said: String,
    },
    /// The reflector's process could not be put on its CPU.
    #[error("cannot pin the reflector to cpu {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: CpuId,
        /// The kernel's answer.
        source: SysError,
    },
    /// The reflector's process could not be asked whether it has ended.
    #[error("cannot wait for the reflector: {source}")]
    Wait {
        /// Why.
        source: std::io::Error,
    },
    /// The pipe of the reflector's process could not be set up.
    #[error("cannot set up the pipe of the reflector's process: {source}")]
    Pipe {
        /// Why.
        source: std::io::Error,
    },
    /// The bed is not there.
    #[error("there is no test network `{0}`: set it up first")]
    NoBed(String),
    /// Packets of the bed pass no place of which it is known that all of them do.
    #[error(
        "the bed `{0}` has no tap: set it up with one, `whylate lab down --name {0}` and \
         `whylate lab up --tap --name {0}`"
    )]
    NoTap(String),
    /// What passes a bed does not pass where its tap looks.
    #[error(
        "a tap of the bed `{name}` would be blind: of the datagrams that came through ({kind}), it saw \
         {requests} go to the server and {replies} come back; take another --kind, or leave --tap out"
    )]
    TapBlind {
        /// The bed.
        name: String,
        /// What lies between client and server.
        kind: &'static str,
        /// Packets from the client.
        requests: u64,
        /// Packets to it.
        replies: u64,
    },
    /// A tap cannot be read.
    #[error("the bed's tap cannot be read: {0}; try again")]
    Tap(&'static str),
    /// More queues than CPUs to send by them.
    #[error(
        "{queues} queues need a CPU each, and this process may use {cpus}: ask for fewer (--queues)"
    )]
    QueuesWithoutCpus {
        /// Queues asked for.
        queues: u32,
        /// CPUs that it may use.
        cpus: u32,
    },
    /// Words that are no name of a bed.
    #[error(
        "`{0}` is not a name of a test network: use up to 24 lower-case letters, digits and dashes"
    )]
    NotABedName(String),
    /// The bed is there already.
    #[error(
        "there is a bed `{name}` already ({what}): take it down with `whylate lab down --name \
         {name}`, or choose another name"
    )]
    BedThere {
        /// Its name.
        name: String,
        /// What of it there is.
        what: String,
    },
    /// Namespaces cannot be made.
    #[error("cannot set up or take down a bed without {0}")]
    NoPrivilege(String),
    /// A program is not installed.
    #[error("{what} needs the program {program}, which is not in PATH: install {package}")]
    NoProgram {
        /// What needs it.
        what: &'static str,
        /// Its name.
        program: &'static str,
        /// Where it is found.
        package: &'static str,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Program {
        /// As it was started.
        command: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// Something of a bed could not be read or written.
    #[error("cannot {what}: {source}")]
    Bed {
        /// What was tried.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// The bed was set up, and no packet came through.
    #[error(
        "the bed `{name}` was set up and taken down again: of {sent} datagrams from client to \
         server and back none came through in {limit}"
    )]
    NothingComesThrough {
        /// Its name.
        name: String,
        /// Datagrams sent.
        sent: u32,
        /// How long it was tried.
        limit: Nanos,
    },
    /// Taking it down failed.
    #[error("cannot take down the bed `{name}`: {why}")]
    BedStays {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// The journal could not be written, or the bed not be announced.
    #[error(transparent)]
    Host(#[from] whylate_host::HostError),
    /// No such protocol.
    #[error("`{0}` is not a protocol: use raw or sockperf")]
    UnknownProtocol(String),
    /// Words that are no address with a port.
    #[error("`{0}` is not an address and port: use 198.18.0.2:11111, [::1]:11111 or NAME:11111")]
    NotAnAddress(String),
    /// A name has no address.
    #[error("cannot resolve {name}: {why}; write its address instead, or see /etc/hosts")]
    Unresolved {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A name's address did not come.
    #[error("{name} was not resolved within {limit}: does a name server answer here?")]
    ResolvingTimedOut {
        /// The name.
        name: String,
        /// How long it was tried.
        limit: Nanos,
    },
    /// The file of a list of sockets cannot be read.
    #[error("cannot read {path}: {why}")]
    FeedUnreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A list of sockets is none.
    #[error("cannot read the list of sockets, line {line}: {why}")]
    Feed {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A kernel interface refused.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The counter cannot be used.
    #[error(transparent)]
    Clock(#[from] whylate_clock::ClockError),
}

impl NetError {
    /// A server at the end of this path returns requests of this protocol as they left.
    pub(crate) fn returned(path: &str, protocol: &str) -> Self {
        let other = path.rsplit_once(" -> ").map_or(path, |(_, other)| other);
        let peer = other.split(' ').next().unwrap_or(other).to_owned();
        match protocol {
            SOCKPERF => {
                Self::Returned { peer, wanted: "sockperf server", start: "sockperf server" }
            }
            _ => Self::Returned { peer, wanted: "whylate reflector", start: "whylate reflect" },
        }
    }
}

/// What a server of another protocol needs, where one of this does not answer.
pub(crate) fn other_protocol(protocol: &str) -> &'static str {
    match protocol {
        SOCKPERF => "whylate's own reflector needs no --protocol",
        _ => "a sockperf server needs --protocol sockperf",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_returns_what_it_gets_is_named_by_its_address_with_what_to_start() {
        let of = |path: &str, protocol: &str| NetError::returned(path, protocol).to_string();
        assert_eq!(
            of("127.0.0.1:4000 -> 127.0.0.1:21111", "raw"),
            "127.0.0.1:21111 returns what it gets and is no whylate reflector: run `whylate reflect` \
             there, or `whylate watch PORT` as root beside your server"
        );
        let sockperf = of("[::1]:4000 -> [::1]:7 by eth0", "sockperf");
        assert!(sockperf.starts_with("[::1]:7 returns what it gets and is no sockperf server: "));
        assert!(sockperf.contains("run `sockperf server` there"), "{sockperf}");
    }

    #[test]
    fn where_nobody_answers_the_other_protocol_is_named() {
        let of = |protocol| {
            let (backend, path) = ("udp over ipv4", "127.0.0.1:1 -> 127.0.0.1:2".to_owned());
            let (limit, advice) = (Nanos(5_000_000_000), other_protocol(protocol));
            NetError::NoReflector { backend, path, limit, advice }.to_string()
        };
        assert!(of("raw").ends_with("running? a sockperf server needs --protocol sockperf"));
        assert!(of("sockperf").ends_with("running? whylate's own reflector needs no --protocol"));
    }
}
