//! Ports over whole frames, between network namespaces of the test's own: nothing outside them is
//! touched. Needs root and `ip` of iproute2.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use whylate_testing::place;

mod faults;
mod peers;
mod queues;
mod stamps;
mod stamps_of_frames;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_model::{Hertz, Nanos};
use whylate_port::{
    Client, Frame, FrameCounts, LinkOptions, Options, Port, PortError, Received, Server, Setup,
    Target, Transport, Wait,
};
use whylate_sys::nanosleep::{Clock, clock_ns};

/// How long a message is waited for.
pub(crate) const LIMIT: Nanos = Nanos(60_000_000_000);

pub(crate) fn setup(wait: Wait) -> Setup<HardwareCounter> {
    let counter = HardwareCounter::open().expect("looked at before");
    Setup { counter, rate: Hertz(2e9), wait }
}

fn framing(_: &[u8]) -> Frame {
    Frame::Unknown
}

pub(crate) fn by(interface: &str, link: LinkOptions) -> Options {
    Options { interface: Some(interface.to_owned()), link, ..Options::default() }
}

pub(crate) fn listen(
    transport: Transport,
    at: &str,
    options: Options,
    wait: Wait,
) -> Result<Box<dyn Port>, PortError> {
    let target = Target::Address(at.parse().unwrap());
    Server { transport, target, options }.open(setup(wait), framing)
}

pub(crate) fn connect(
    transport: Transport,
    (from, to): (&str, &str),
    options: Options,
    wait: Wait,
) -> Result<Box<dyn Port>, PortError> {
    let (target, from) = (Target::Address(to.parse().unwrap()), from.parse::<SocketAddr>().ok());
    Client { transport, target, from, options }.open(setup(wait), framing)
}

/// Opens what can be opened, within a minute: the kernel takes its time until what a closed port of
/// AF_XDP had is free again.
pub(crate) fn soon<T>(mut open: impl FnMut() -> Result<T, PortError>) -> Result<T, PortError> {
    let end = clock_ns(Clock::Monotonic) + 60_000_000_000;
    loop {
        let opened = open();
        if opened.is_ok() || clock_ns(Clock::Monotonic) > end {
            return opened;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Looks until it is so, for minutes.
pub(crate) fn until(what: &str, mut look: impl FnMut() -> bool) {
    let end = clock_ns(Clock::Monotonic) + 3 * LIMIT.0;
    while !look() {
        assert!(clock_ns(Clock::Monotonic) < end, "waited for minutes in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The next message, where one comes in time.
pub(crate) fn received(port: &mut dyn Port) -> Option<Vec<u8>> {
    let mut buffer = [0; 9_000];
    let deadline = Duration::from_nanos(LIMIT.0);
    let mut waited = Duration::ZERO;
    // A signal or a look that ends early is no end of the wait.
    while waited < deadline {
        match port.receive(&mut buffer, Nanos(100_000_000)).unwrap() {
            Received::Message { length, .. } => return Some(buffer[..length].to_vec()),
            Received::Nothing { .. } => waited += Duration::from_millis(100),
        }
    }
    None
}

pub(crate) fn counts(port: &mut dyn Port) -> FrameCounts {
    port.frame_counts().unwrap().unwrap()
}
