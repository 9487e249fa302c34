//! Devices without an interface of the kernel, and the backend of another crate that drives them.
//!
//! This crate knows no DPDK: `whylate-dpdk` registers a function that opens frames, where it was built
//! in, and everything else here works on [`Frames`]. Without it such a device is refused by name.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use whylate_clock::{Counter, HardwareCounter};

use crate::end::Threads;
use crate::error::PortError;
use crate::frames::Frames;
use crate::link::LinkOptions;
use crate::port::Setup;

/// A device of DPDK and what its memory is made of; the default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Which one; none is refused when it is opened.
    pub name: Option<DeviceName>,
    /// Megabytes of memory that DPDK takes, once in a process; none lets it be chosen.
    pub memory_mb: Option<u32>,
    /// Pages of that memory.
    pub pages: Pages,
}

impl Device {
    /// Does its driver keep a queue of the kernel's for as long as the process lives, so that it can be
    /// opened once? DPDK's driver of AF_XDP never closes the socket that its memory belongs to.
    #[must_use]
    pub fn keeps_its_queue(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.words().starts_with("net_af_xdp"))
    }
}

/// How DPDK names a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// A virtual one, with its arguments: `net_memif0,role=client,socket=/run/m.sock`.
    Virtual(String),
    /// A card by its place on the bus, with arguments where it takes some: `0000:03:00.0`.
    Pci(String),
}

impl DeviceName {
    /// A card where it reads like a place on the bus, else a virtual one.
    #[must_use]
    pub fn of(words: &str) -> Self {
        let place = words.split(',').next().unwrap_or_default();
        let hex = |text: &str| !text.is_empty() && text.chars().all(|of| of.is_ascii_hexdigit());
        let bus = place.rsplit_once('.').is_some_and(|(slot, function)| {
            hex(function) && slot.contains(':') && slot.split(':').all(hex)
        });
        let words = words.to_owned();
        if bus { Self::Pci(words) } else { Self::Virtual(words) }
    }

    /// A card's place on the bus in its long form, in which each has one: `0000:af:00.0`.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let Self::Pci(words) = self else { return None };
        let place = words.split(',').next().unwrap_or_default().to_ascii_lowercase();
        Some(if place.matches(':').count() == 1 { format!("0000:{place}") } else { place })
    }

    /// The value of an argument.
    #[must_use]
    pub fn argument(&self, key: &str) -> Option<&str> {
        self.words().split(',').skip(1).find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// With its arguments.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Virtual(words) | Self::Pci(words) => words,
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// Which pages the memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pages {
    /// Huge ones where enough are free, else ordinary ones, which is said.
    #[default]
    Auto,
    /// Ordinary ones.
    Ordinary,
    /// Huge ones, or there is no port.
    Huge,
}

/// Opens frames of a device.
pub type Opener =
    fn(&LinkOptions, Threads, Setup<HardwareCounter>) -> Result<Box<dyn Frames>, PortError>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// From now on devices are opened by `opener`. The first one stays.
pub fn register(opener: Opener) {
    let _ = OPENER.set(opener);
}

/// Makes a backend ready for all of these devices.
pub type Preparer = fn(&[&Device]) -> Result<(), PortError>;

static PREPARER: OnceLock<Preparer> = OnceLock::new();

/// From now on devices are prepared by `preparer`. The first one stays.
pub fn register_preparer(preparer: Preparer) {
    let _ = PREPARER.set(preparer);
}

/// Makes everything ready for these devices, before the first of them is opened: DPDK is started once in a
/// process, and drives no card that it was not told of then.
pub fn prepare(devices: &[&Device]) -> Result<(), PortError> {
    let preparer = PREPARER.get().ok_or(PortError::WithoutDpdk)?;
    preparer(devices)
}

/// The frames of a device, which can be divided where two threads are to use it.
pub fn open<C: Counter + 'static>(
    options: &LinkOptions,
    threads: Threads,
    setup: Setup<C>,
) -> Result<Box<dyn Frames>, PortError> {
    let opener = OPENER.get().ok_or(PortError::WithoutDpdk)?;
    let Setup { counter, rate, wait } = setup;
    // What is registered is compiled elsewhere, for the counter of the processor: mocks have no devices.
    let counter = (&counter as &dyn Any).downcast_ref::<HardwareCounter>().copied();
    let counter = counter.ok_or(PortError::WithoutDpdk)?;
    opener(options, threads, Setup { counter, rate, wait })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use whylate_clock::MockCounter;
    use whylate_model::Hertz;

    use super::*;
    use crate::open::{Client, Server, Target, Transport};
    use crate::options::Options;
    use crate::waiting::Wait;

    #[test]
    fn a_device_of_af_xdp_is_opened_once_in_a_process_and_others_as_often_as_wanted() {
        let keeps = |words| {
            Device { name: Some(DeviceName::of(words)), ..Device::default() }.keeps_its_queue()
        };
        assert!(keeps("net_af_xdp0,iface=near"));
        assert!(
            !keeps("net_memif0") && !keeps("0000:03:00.0") && !Device::default().keeps_its_queue()
        );
    }

    #[test]
    fn without_dpdk_its_ports_are_refused_with_how_to_get_it() {
        let Ok(counter) = HardwareCounter::open() else { return };
        let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
        let options = Options::default();
        let target = Target::Address(SocketAddr::from(([198, 18, 0, 2], 7)));
        let own = SocketAddr::from(([198, 18, 0, 1], 0));
        let (transport, from) = (Transport::Dpdk, Some(own));
        let client = Client { transport, target: target.clone(), from, options: options.clone() };
        let server = Server { transport, target, options };
        let framing = |_: &[u8]| crate::framing::Frame::Unknown;
        for error in [client.open(setup, framing).err(), server.open(setup, framing).err()] {
            let told = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains("built without DPDK; build with --features dpdk"), "{told}");
        }
        let client = Client { from: None, ..client };
        let error = client.open(setup, framing).err();
        assert!(matches!(error, Some(PortError::FramesWithoutAddress)), "{error:?}");
    }

    #[test]
    fn a_place_on_the_bus_is_a_card_and_anything_else_a_virtual_device() {
        for words in ["0000:03:00.0", "03:00.1", "0000:af:1f.7,arg=1"] {
            assert_eq!(DeviceName::of(words), DeviceName::Pci(words.to_owned()));
        }
        for words in ["net_null0", "net_memif0,socket=/tmp/a:b.0", "", ".", "a.b", "net:0.1"] {
            assert_eq!(DeviceName::of(words), DeviceName::Virtual(words.to_owned()));
        }
    }

    #[test]
    fn a_card_has_one_place_however_it_is_written_and_arguments_are_found_by_their_keys() {
        let place = |words| DeviceName::of(words).place();
        for words in ["AF:00.0", "0000:af:00.0", "af:00.0,mac=x"] {
            assert_eq!(place(words).as_deref(), Some("0000:af:00.0"), "{words}");
        }
        assert_eq!(place("net_null0"), None);
        let device = DeviceName::of("net_af_xdp0,iface=eth1,start_queue=0");
        assert_eq!((device.argument("iface"), device.argument("if")), (Some("eth1"), None));
    }

    #[test]
    fn a_counter_that_no_device_knows_is_refused() {
        let setup =
            Setup { counter: MockCounter::new(Hertz(1e9)), rate: Hertz(1e9), wait: Wait::Spin };
        let error = open(&LinkOptions::default(), Threads::One, setup).err();
        assert!(matches!(error, Some(PortError::WithoutDpdk)), "{error:?}");
    }
}
