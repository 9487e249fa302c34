//! All that an interface hears, and its way out: an end of a forwarder, opened by a word.
//!
//! Frames come as they are, whoever they are for; the interface listens to all stations for as long as
//! the end lives, also after a crash: the kernel closes what asked for it. A new backend of [`Frames`]
//! has its line in [`End::open`].

use std::os::fd::OwnedFd;

use whylate_clock::Counter;

use crate::bpf::Take;
use crate::device::{self, Device, DeviceName};
use crate::error::PortError;
use crate::frame::Tags;
use crate::frames::{Frames, FramesFacts};
use crate::link::{Link, LinkOptions};
use crate::open::Transport;
use crate::packet::{self, Packet};
use crate::port::Setup;
use crate::queues::Queues;
use crate::raw;
use crate::xdp::{self, Xdp};

/// Queues of an interface that are taken where none are named.
const MOST_QUEUES: u32 = 64;

/// How many threads are to use an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One receives and sends.
    One,
    /// One receives and another one sends.
    Two,
}

/// An interface of which everything is taken.
pub struct End {
    /// Receives; sends as well where nobody else does.
    pub receiving: Box<dyn Frames>,
    /// Only sends, on another thread; none where one thread does both.
    pub sending: Option<Box<dyn Frames>>,
    /// Keeps the interface listening.
    pub heard: Heard,
}

/// Keeps an interface listening to what is sent to others, for as long as this lives.
#[derive(Debug)]
pub struct Heard {
    _socket: Option<OwnedFd>,
}

impl Heard {
    /// Asks for nothing: for ends that are no interface.
    #[must_use]
    pub fn nothing() -> Self {
        Self { _socket: None }
    }

    fn everything(backend: &'static str, index: u32) -> Result<Self, PortError> {
        let socket = raw::packet_socket(backend)?;
        let what = "wish to hear what is for others";
        raw::hear_everything(&socket, index).map_err(|errno| PortError::Option {
            backend,
            what,
            errno,
        })?;
        Ok(Self { _socket: Some(socket) })
    }
}

/// The device of this name, as the options have it else.
fn device_named(name: &str, options: &LinkOptions) -> Device {
    Device { name: Some(DeviceName::of(name)), ..options.device.clone() }
}

impl End {
    /// Makes ready what several ends need before the first of them is opened: nothing, but for devices of
    /// DPDK.
    ///
    /// # Errors
    /// DPDK cannot be had for all of them.
    pub fn prepare(
        transport: Transport,
        names: &[String],
        options: &LinkOptions,
    ) -> Result<(), PortError> {
        if transport != Transport::Dpdk {
            return Ok(());
        }
        let devices: Vec<Device> = names.iter().map(|name| device_named(name, options)).collect();
        device::prepare(&devices.iter().collect::<Vec<_>>())
    }

    /// Opens the interface of this name in the calling thread's network namespace, or the device of DPDK
    /// that is named so. Without queues in the options all of them are taken. Waits of `setup` that sleep
    /// are for ends with two threads.
    ///
    /// # Errors
    /// The transport carries no whole frames, the interface cannot be had, or the backend cannot be
    /// used by two threads.
    pub fn open<C: Counter + Clone + 'static>(
        transport: Transport,
        name: &str,
        options: &LinkOptions,
        threads: Threads,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        // Room for a tag: frames leave with those that they came with.
        let options = LinkOptions { tags: Tags::one(1), ..options.clone() };
        if transport == Transport::Dpdk {
            let device = device_named(name, &options);
            let port = device::open(&LinkOptions { device, ..options }, threads, setup)?;
            return match threads {
                Threads::One => Ok(Self::whole(port, Heard::nothing())),
                Threads::Two => Self::divided(port, Heard::nothing()),
            };
        }
        let link = Link::named(name)?;
        match transport {
            Transport::Packet => {
                let heard = Heard::everything(packet::BACKEND, link.index)?;
                let port = Packet::open(link, &options, setup)?;
                match threads {
                    Threads::One => Ok(Self::whole(Box::new(port), heard)),
                    Threads::Two => Self::divided(Box::new(port.divisible()?), heard),
                }
            }
            Transport::Xdp => {
                let heard = Heard::everything(xdp::BACKEND, link.index)?;
                let options = with_all_queues(&link, options);
                let port = Xdp::open(link, &options, &Take::Everything, setup)?;
                match threads {
                    Threads::One => Ok(Self::whole(Box::new(port), heard)),
                    Threads::Two => Self::divided(Box::new(port.divisible()), heard),
                }
            }
            Transport::Udp | Transport::Tcp | Transport::Unix | Transport::Dpdk => {
                Err(PortError::WrongTarget {
                    transport: transport.name(),
                    target: format!("all of `{name}`"),
                    why: "it carries messages; whole frames are carried by packet, xdp or dpdk",
                })
            }
        }
    }

    fn whole(receiving: Box<dyn Frames>, heard: Heard) -> Self {
        Self { receiving, sending: None, heard }
    }

    fn divided(receiving: Box<dyn Frames>, heard: Heard) -> Result<Self, PortError> {
        let sending = Some(receiving.divide()?);
        Ok(Self { receiving, sending, heard })
    }

    /// What it is.
    #[must_use]
    pub fn facts(&self) -> &FramesFacts {
        self.receiving.facts()
    }

    /// Its way out.
    pub fn out(&mut self) -> &mut dyn Frames {
        match &mut self.sending {
            Some(sending) => &mut **sending,
            None => &mut *self.receiving,
        }
    }
}

/// A program that takes everything takes it from the host, also by queues without a socket.
fn with_all_queues(link: &Link, options: LinkOptions) -> LinkOptions {
    if !options.queues.is_empty() {
        return options;
    }
    let count = Queues::of(&link.name).map_or(1, |of| of.receive.clamp(1, MOST_QUEUES));
    LinkOptions { queues: (0..count).collect(), ..options }
}
