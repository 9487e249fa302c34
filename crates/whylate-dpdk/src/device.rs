//! Opening a device: its buffers, its rings, its link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use whylate_port::device::DeviceName;
use whylate_port::frame::{ETHERNET, Mac, TAG};
use whylate_port::frames::{Copies, Counted, FramesFacts, Rings as Held};
use whylate_port::{LinkOptions, PortError, Wait};
use whylate_sys::capability::{self, Cap};

use crate::beneath::Beneath;
use crate::eal::{Hold, prepare, said};
use crate::error::DpdkError;
use crate::raw::{self, Port, Probed, Rings, SLOTS, Told};
use crate::words::Named;

pub(crate) const BACKEND: &str = "dpdk";
/// Frames in a ring where nothing else was asked for.
const USUAL_FRAMES: u32 = 1_024;
const FRAMES: std::ops::RangeInclusive<u32> = 32..=16_384;
/// What network cards and drivers of sockets have as a matter of course.
const USUAL_BUFFER: u32 = 2_048;
const MOST_BUFFER: u32 = 16_384;
/// Beside its bytes, a buffer has a header of DPDK's, headroom and its place in the pool.
const OF_BUFFER: u32 = 128 + 128 + 64;
/// Buffers beside those in rings: in the caches of four threads, in bursts, and for drivers that fill
/// rings of the kernel (net_af_xdp, 2048).
const BESIDE: u32 = 4 * 384 + 2 * SLOTS as u32 + 2_048;
/// A queue of an interface is free again a little after the socket of AF_XDP on it was closed: how often
/// and how far apart its driver is tried, which says no more than that it could not have it.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(10);
/// How long a link may take to come up: the other end of shared memory answers within milliseconds.
const LINK_LOOKS: u32 = 100;
const LINK_LOOK: Duration = Duration::from_millis(10);

/// Pools that were made.
static POOLS: AtomicU32 = AtomicU32::new(0);

/// A device that is ready.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) port: Arc<Port>,
    pub(crate) facts: FramesFacts,
    pub(crate) hold: Hold,
    pub(crate) up: bool,
    /// The interface of the kernel that it takes its frames from, where it has one.
    pub(crate) beneath: Option<Beneath>,
    /// What the device counts as not sent.
    pub(crate) not_sent: Counted,
}

/// Opens it with so many sending queues.
pub(crate) fn open(options: &LinkOptions, queues: u16, wait: Wait) -> Result<Opened, PortError> {
    if wait != Wait::Spin {
        let choose = "spin: DPDK's drivers look in rings, and do not sleep";
        return Err(PortError::WaitUnfit { backend: BACKEND, wait, choose });
    }
    let device = &options.device;
    let name: &DeviceName = device.name.as_ref().ok_or(PortError::DeviceMissing)?;
    let named = Named::of(name).map_err(refused)?;
    if options.queues.iter().any(|queue| *queue != 0) || options.queues.len() > 1 {
        let asked = options.queues.last().copied().unwrap_or(0);
        let why = "a port over DPDK has one receiving queue, queue 0";
        return Err(PortError::RingUnfit { what: "a list of queues", asked, why });
    }
    permitted(&named).map_err(refused)?;
    let running = prepare(&[device]).map_err(refused)?;
    let hold = Hold::of(&named.name).map_err(refused)?;
    // What was said until now belongs to others.
    let _ = said();
    let wanted = Wanted { named: &named, options, queues, memory_mb: running.start.memory_mb };
    let Begun { port, rings, told, room } = wanted.begin()?;
    let up = is_up(&port, &named);
    let mut instead: Vec<String> = running.instead.into_iter().collect();
    if !up && !named.is_visited() {
        instead.push(format!("the link of {} was not up when it was opened", named.name));
    }
    let mtu = u32::from(told.mtu);
    let facts = FramesFacts {
        backend: BACKEND,
        interface: named.name.clone(),
        // Its number is DPDK's own, and that of another interface to the kernel.
        index: 0,
        mac: Mac(told.mac),
        mtu,
        queues: vec![0],
        rings: Held {
            receive: u32::from(rings.receive_frames),
            send: u32::from(rings.send_frames),
            fill: 0,
            completion: 0,
        },
        buffer: room,
        room: (longest(mtu) as usize).min(room as usize),
        copies: copies(&told),
        attachment: None,
        tells_wakeups: false,
        bypasses_qdisc: bypasses_qdisc(&named, &told),
        instead,
        wait,
    };
    let not_sent = not_sent(&told);
    let beneath = named.interface().and_then(Beneath::named);
    Ok(Opened { port: Arc::new(port), facts, hold, up, beneath, not_sent })
}

/// Names a capability that opening it needs and the calling thread has not: its driver says no more than that
/// it cannot.
fn permitted(named: &Named) -> Result<(), DpdkError> {
    let own = capability::effective();
    let absent = |any_of: &&&[Cap]| !any_of.iter().any(|cap| own.has(*cap));
    let Some(first) = named.needs().iter().find(absent).and_then(|any_of| any_of.first()) else {
        return Ok(());
    };
    Err(DpdkError::Denied { device: named.words.clone(), advice: capability::explain(*first) })
}

/// What a device is begun with.
struct Wanted<'a> {
    named: &'a Named,
    options: &'a LinkOptions,
    queues: u16,
    memory_mb: u32,
}

/// A device that runs.
struct Begun {
    port: Port,
    rings: Rings,
    told: Told,
    room: u32,
}

impl Wanted<'_> {
    fn begin(&self) -> Result<Begun, PortError> {
        let tries = if self.named.takes_a_queue() { TRIES } else { 1 };
        for _ in 1..tries {
            match self.try_once() {
                Err(Refused::Device(_)) => thread::sleep(BETWEEN),
                begun => return begun.map_err(|of| self.because(of)),
            }
        }
        self.try_once().map_err(|of| self.because(of))
    }

    fn try_once(&self) -> Result<Begun, Refused> {
        let (named, options) = (self.named, self.options);
        // What was said until now belongs to others.
        let _ = said();
        let probed = Probed::new(&named.words, &named.name).map_err(Refused::Device)?;
        let told = probed.told.clone();
        if told.most_send_queues < self.queues {
            return Err(Refused::Port(PortError::NotDivisible { backend: BACKEND }));
        }
        let room = buffer(named, &told, options.buffer).map_err(Refused::Port)?;
        let (receive, send) = frames(&told, options.ring).map_err(Refused::Port)?;
        let buffers = buffers(receive, send * u32::from(self.queues));
        let pool_name = pool_name(&named.name);
        let pool = probed.pool(&pool_name, buffers, room as u16).map_err(|_| {
            let bytes = room + OF_BUFFER;
            let needed_mb = (u64::from(bytes) * u64::from(buffers)).div_ceil(1 << 20) as u32;
            let (device, memory_mb) = (named.words.clone(), self.memory_mb);
            let of = DpdkError::Pool { device, buffers, bytes, needed_mb, memory_mb, said: said() };
            Refused::Port(refused(of))
        })?;
        let rings = Rings {
            receive_frames: receive as u16,
            send_frames: send as u16,
            send_queues: self.queues,
            mtu: told.mtu,
        };
        let (port, rings) = probed.start(pool, rings).map_err(Refused::Device)?;
        Ok(Begun { port, rings, told, room })
    }

    fn because(&self, of: Refused) -> PortError {
        match of {
            Refused::Device(errno) => refused(of_device(self.named, errno)),
            Refused::Port(error) => error,
        }
    }
}

/// Who refused.
enum Refused {
    /// DPDK, or the device.
    Device(Errno),
    /// We.
    Port(PortError),
}

pub(crate) fn refused(error: DpdkError) -> PortError {
    PortError::Backend(Box::new(error))
}

fn of_device(named: &Named, errno: Errno) -> DpdkError {
    let device = named.words.clone();
    DpdkError::Device { device, reason: errno.to_string(), said: said() }
}

/// The name of a pool: a new one each time, for an older pool of the device may still be there, kept by
/// a port that was passed some of its buffers. It has 25 characters at most.
fn pool_name(device: &str) -> String {
    let number = POOLS.fetch_add(1, Ordering::Relaxed);
    format!("why{:04x}-{}", number & 0xffff, raw_name(device))
}

fn raw_name(name: &str) -> &str {
    let from = name.len().saturating_sub(16);
    name.get(from..).unwrap_or(name)
}

/// The longest frame with an MTU: two tags may be on it.
fn longest(mtu: u32) -> u32 {
    mtu + (ETHERNET + 2 * TAG) as u32
}

/// Bytes of a buffer, as asked for or fit.
fn buffer(named: &Named, told: &Told, asked: Option<u32>) -> Result<u32, PortError> {
    let mtu = u32::from(told.mtu);
    // Drivers that give no limit say all of 32 bits.
    let least = if told.least_buffer > MOST_BUFFER { 0 } else { told.least_buffer };
    let needed = longest(mtu).max(least);
    if needed > MOST_BUFFER {
        let (interface, bytes) = (named.name.clone(), MOST_BUFFER);
        let advice = "no buffer is larger here: lower the MTU, to 16362 at most";
        return Err(PortError::BufferTooSmall { interface, mtu, bytes, needed, advice });
    }
    match asked {
        Some(asked) if asked > MOST_BUFFER => {
            let why = "it has 16384 bytes at most";
            Err(PortError::RingUnfit { what: "a buffer", asked, why })
        }
        Some(bytes) if bytes < needed => {
            let (interface, advice) =
                (named.name.clone(), "ask for larger ones, or let it be chosen");
            Err(PortError::BufferTooSmall { interface, mtu, bytes, needed, advice })
        }
        Some(bytes) => Ok(bytes),
        None => Ok(needed.next_multiple_of(64).max(USUAL_BUFFER)),
    }
}

/// Frames in the receiving and in the sending ring.
fn frames(told: &Told, asked: Option<u32>) -> Result<(u32, u32), PortError> {
    let asked = asked.unwrap_or(USUAL_FRAMES);
    if !FRAMES.contains(&asked) {
        let why = "it holds from 32 to 16384 frames";
        return Err(PortError::RingUnfit { what: "a ring", asked, why });
    }
    let within = |(least, most): (u16, u16)| {
        let most = if most == 0 { u32::from(u16::MAX) } else { u32::from(most) };
        asked.max(u32::from(least)).min(most)
    };
    Ok((within(told.receive_frames), within(told.send_frames)))
}

/// Buffers of a pool; one less than a power of two is what DPDK stores best.
fn buffers(receive: u32, send: u32) -> u32 {
    // Rings at either end of shared memory may hold as many again.
    (2 * (receive + send) + BESIDE).next_power_of_two() - 1
}

fn copies(told: &Told) -> Copies {
    match told.driver.as_str() {
        _ if told.is_pci => Copies::Nobody,
        "net_null" | "net_ring" => Copies::Nobody,
        "net_af_packet" | "net_tap" | "net_af_xdp" | "net_pcap" => Copies::Kernel,
        _ => Copies::Driver,
    }
}

/// What a device's counter of frames that were not sent counts. That of AF_XDP counts each try that found
/// no room: we keep those frames, and offer them again.
fn not_sent(told: &Told) -> Counted {
    if told.driver == "net_af_xdp" { Counted::Occasions } else { Counted::Frames }
}

fn bypasses_qdisc(named: &Named, told: &Told) -> bool {
    match told.driver.as_str() {
        "net_tap" | "net_pcap" => false,
        "net_af_packet" => named.argument("qdisc_bypass") == Some("1"),
        _ => true,
    }
}

/// Waits a while for the link, where somebody is to be there already.
fn is_up(port: &Port, named: &Named) -> bool {
    let looks = if named.is_visited() { 1 } else { LINK_LOOKS };
    for look in 0..looks {
        if port.is_up() {
            return true;
        }
        if look + 1 < looks {
            thread::sleep(LINK_LOOK);
        }
    }
    false
}

/// Gives the calling thread what it needs for a port.
pub(crate) fn join() -> bool {
    raw::join()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mtu: u16, least_buffer: u32) -> Told {
        Told { mtu, least_buffer, ..Told::planted("net_null") }
    }

    fn named() -> Named {
        Named::of(&DeviceName::Virtual("net_null0".to_owned())).unwrap()
    }

    #[test]
    fn two_pools_of_one_device_have_different_names() {
        let (one, another) = (pool_name("net_null0"), pool_name("net_null0"));
        assert!(one != another && another.ends_with("-net_null0"), "{one} {another}");
    }

    #[test]
    fn buffers_hold_the_longest_frame_and_what_the_driver_needs_or_are_refused_with_numbers() {
        let of = |mtu, least, asked| buffer(&named(), &told(mtu, least), asked);
        assert_eq!(of(1_500, 0, None).unwrap(), 2_048);
        assert_eq!(of(9_000, 0, None).unwrap(), 9_024);
        assert_eq!(of(1_500, 3_000, None).unwrap(), 3_008);
        assert_eq!(of(1_500, u32::MAX, None).unwrap(), 2_048);
        assert_eq!(of(1_500, 0, Some(1_522)).unwrap(), 1_522);
        let error = of(1_500, 0, Some(1_521)).unwrap_err();
        let wanted = matches!(
            error,
            PortError::BufferTooSmall { mtu: 1_500, bytes: 1_521, needed: 1_522, .. }
        );
        assert!(wanted, "{error}");
        assert!(of(1_500, 0, Some(20_000)).is_err());
    }

    #[test]
    fn an_mtu_that_no_buffer_holds_is_refused_with_the_limit() {
        let of = |mtu, asked| buffer(&named(), &told(mtu, 0), asked);
        // Each of them is a number of 16 bits, as DPDK wants it.
        assert_eq!(of(16_362, None).unwrap(), MOST_BUFFER);
        assert_eq!(of(16_298, None).unwrap(), 16_320);
        for (mtu, asked) in [(16_363, None), (u16::MAX, None), (u16::MAX, Some(16_384))] {
            let error = of(mtu, asked).unwrap_err();
            let told = error.to_string();
            let wanted = matches!(error, PortError::BufferTooSmall { bytes: MOST_BUFFER, .. });
            assert!(wanted && told.contains("16362") && told.contains(&mtu.to_string()), "{told}");
        }
    }

    #[test]
    fn rings_are_as_asked_for_within_what_the_driver_has() {
        let mut told = told(1_500, 0);
        assert_eq!(frames(&told, None).unwrap(), (1_024, 1_024));
        told.receive_frames = (64, 512);
        told.send_frames = (2_048, 4_096);
        assert_eq!(frames(&told, None).unwrap(), (512, 2_048));
        assert!(frames(&told, Some(16)).is_err() && frames(&told, Some(1 << 15)).is_err());
        assert_eq!(buffers(1_024, 1_024), 8_191);
    }

    #[test]
    fn tries_that_found_no_room_are_no_lost_frames() {
        assert_eq!(not_sent(&Told::planted("net_af_xdp")), Counted::Occasions);
        for driver in ["net_af_packet", "net_ring", "net_memif"] {
            assert_eq!(not_sent(&Told::planted(driver)), Counted::Frames, "{driver}");
        }
    }

    #[test]
    fn names_of_pools_are_short_enough() {
        assert_eq!(raw_name("net_null0"), "net_null0");
        assert!(pool_name("net_virtio_user_with_a_name_12").len() <= 25);
    }
}
