//! Calls of the shim, and the memory that DPDK lends: with `raw/` the only unsafe code here.
//!
//! A buffer of DPDK belongs to whoever took it out of a ring or a pool, and to nobody else, until it is
//! sent or released. [`Received`] and [`Outgoing`] (`raw/rings.rs`) own the buffers in their arrays; a
//! slice of one is borrowed from them, so it is gone before the buffer is. Both hold the [`Port`], which
//! is closed when the last of them is dropped. A ring has one owner: `Port` makes one `Received` and one
//! `Outgoing` a queue, once.
//!
//! Buffers may be passed on to another port, in whose rings they then lie, and from there to a third one: a
//! pool is freed when its own port and all that any of it can have come to are closed ([`Sharing`]).

#![expect(unsafe_code, reason = "DPDK is a C library, and lends memory")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use whylate_port::frames::BURST;

use crate::sharing::{Member, Sharing};

mod rings;

pub(crate) use rings::{Outgoing, PASSED, Received, rounds};

/// Frames that wait for being sent, and empty buffers for them: two bursts, a power of two.
pub(crate) const SLOTS: usize = 2 * BURST;
/// Empty buffers taken from the pool at once.
const TAKEN: usize = BURST / 2;
const MESSAGES: usize = 4_096;
/// Sending queues of a port at most: one for each half.
pub(crate) const HALVES: usize = 2;

/// A buffer of DPDK, which only C knows.
#[repr(C)]
pub(crate) struct Buffer {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Pool {
    _opaque: [u8; 0],
}

/// `struct why_frame`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Frame {
    data: *mut u8,
    length: u32,
    tag: u16,
    tagged: u16,
}

const EMPTY: Frame = Frame { data: null_mut(), length: 0, tag: 0, tagged: 0 };
const _: () = assert!(size_of::<Frame>() == 16);

/// `struct why_pass`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Pass {
    bytes: u64,
    shortest: u32,
    longest: u32,
    from: u16,
    to: u16,
    queue: u16,
    most: u16,
    sent: u16,
    odd: u16,
}

const _: () = assert!(size_of::<Pass>() == 32);

/// `struct why_way`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct OneWay {
    received: u64,
    sent: u64,
    bursts: u64,
    empty: u64,
    from: u16,
    to: u16,
    queue: u16,
    most: u16,
}

const _: () = assert!(size_of::<OneWay>() == 40);
// `WHY_BURST`.
const _: () = assert!(BURST == 64);

/// `struct why_device`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct CDevice {
    driver: [c_char; 64],
    mac: [u8; 6],
    mtu: u16,
    most_receive_queues: u16,
    most_send_queues: u16,
    most_receive_frames: u16,
    most_send_frames: u16,
    least_receive_frames: u16,
    least_send_frames: u16,
    least_buffer: u32,
    pub(crate) socket: i32,
    is_pci: u8,
}

/// `struct why_setup`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rings {
    pub(crate) receive_frames: u16,
    pub(crate) send_frames: u16,
    pub(crate) send_queues: u16,
    pub(crate) mtu: u16,
}

/// `struct why_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) missed: u64,
    pub(crate) bad: u64,
    pub(crate) not_sent: u64,
    pub(crate) no_buffer: u64,
}

// SAFETY: the functions of `shim.h`, with its types.
unsafe extern "C" {
    fn why_start(count: c_int, words: *mut *mut c_char) -> c_int;
    fn why_said(text: *mut u8, room: usize) -> usize;
    fn why_directory() -> *const c_char;
    fn why_probe(words: *const c_char, name: *const c_char, port: *mut u16) -> c_int;
    fn why_describe(port: u16, device: *mut CDevice) -> c_int;
    fn why_pool(
        name: *const c_char,
        count: u32,
        cache: u32,
        room: u16,
        socket: i32,
        one_piece: c_int,
        error: *mut c_int,
    ) -> *mut Pool;
    fn why_set_up(port: u16, setup: *mut Rings, pool: *mut Pool, socket: i32) -> c_int;
    fn why_close(port: u16);
    fn why_free_pool(pool: *mut Pool);
    fn why_link(port: u16) -> c_int;
    fn why_counts(port: u16, counts: *mut Counts) -> c_int;
    fn why_pools(ending: *const c_char) -> u32;
    fn why_free_buffers(pool: *const Pool) -> u32;
    fn why_join() -> c_int;
    fn why_receive(
        port: u16,
        buffers: *mut *mut Buffer,
        frames: *mut Frame,
        most: u16,
        lost: *mut u64,
    ) -> u16;
    fn why_look(buffers: *mut *mut Buffer, frames: *mut Frame, count: u16, lost: *mut u64) -> u16;
    #[cfg(test)]
    fn why_chain(buffer: *mut Buffer, next: *mut Buffer) -> c_int;
    fn why_release(buffers: *mut *mut Buffer, count: u16);
    fn why_take(
        pool: *mut Pool,
        buffers: *mut *mut Buffer,
        frames: *mut Frame,
        count: u16,
    ) -> c_int;
    fn why_show(buffer: *mut Buffer, frame: *mut Frame);
    fn why_finish(buffers: *mut *mut Buffer, frames: *const Frame, count: u16);
    fn why_send(port: u16, queue: u16, buffers: *mut *mut Buffer, count: u16) -> u16;
    fn why_receive_bare(port: u16, buffers: *mut *mut Buffer, most: u16) -> u16;
    fn why_are_plain(
        buffers: *const *mut Buffer,
        count: u16,
        shortest: u32,
        longest: u32,
        bytes: *mut u64,
    ) -> c_int;
    fn why_pass(pass: *mut Pass, buffers: *mut *mut Buffer) -> u16;
    fn why_rounds(ways: *mut OneWay, rounds: u32);
}

fn answer(result: c_int) -> Result<c_int, Errno> {
    if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(result) }
}

fn text(words: &str) -> Result<CString, Errno> {
    CString::new(words).map_err(|_| Errno::INVAL)
}

/// Starts DPDK. It keeps the words.
pub(crate) fn start(words: &[String]) -> Result<(), Errno> {
    let words: Vec<CString> = words.iter().map(|word| text(word)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    pointers.push(null_mut());
    let pointers = Box::leak(pointers.into_boxed_slice());
    let count = pointers.len() - 1;
    // SAFETY: an array of strings that ends with a null pointer; neither is ever freed.
    answer(unsafe { why_start(count as c_int, pointers.as_mut_ptr()) }).map(drop)
}

/// What DPDK said since the last time this was asked.
pub(crate) fn said() -> String {
    let mut room = vec![0; MESSAGES];
    // SAFETY: the room has that many bytes.
    let length = unsafe { why_said(room.as_mut_ptr(), room.len()) };
    String::from_utf8_lossy(&room[..length.min(MESSAGES)]).into_owned()
}

/// The directory that DPDK made for itself.
pub(crate) fn directory() -> Option<PathBuf> {
    // SAFETY: gives a string that lives as long as DPDK does, or none.
    let path = unsafe { why_directory() };
    if path.is_null() {
        return None;
    }
    // SAFETY: not null, and ended by a zero.
    let path = unsafe { CStr::from_ptr(path) };
    Some(PathBuf::from(path.to_string_lossy().into_owned()))
}

/// What a device says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) driver: String,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u16,
    pub(crate) most_send_queues: u16,
    pub(crate) receive_frames: (u16, u16),
    pub(crate) send_frames: (u16, u16),
    /// The smallest buffer for receiving, as the driver has it; 0 where it does not matter.
    pub(crate) least_buffer: u32,
    pub(crate) socket: i32,
    pub(crate) is_pci: bool,
}

#[cfg(test)]
impl Told {
    pub(crate) fn planted(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            mac: [2; 6],
            mtu: 1_500,
            most_send_queues: 1,
            receive_frames: (0, 0),
            send_frames: (0, 0),
            least_buffer: 0,
            socket: 0,
            is_pci: false,
        }
    }
}

/// DPDK's lists of devices have no lock of their own: one thread at a time comes or goes.
fn devices() -> MutexGuard<'static, ()> {
    static DEVICES: Mutex<()> = Mutex::new(());
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which ports may hold buffers of which pools.
fn sharing() -> MutexGuard<'static, Sharing<Arc<Buffers>>> {
    static PORTS: Mutex<Sharing<Arc<Buffers>>> = Mutex::new(Sharing::new());
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pools that there are whose name ends so: with that of a device.
///
/// # Errors
/// The name has a zero in it.
pub fn pools(ending: &str) -> Result<u32, Errno> {
    let ending = text(ending)?;
    // SAFETY: a string that ends.
    Ok(unsafe { why_pools(ending.as_ptr()) })
}

/// A device that was found and is not set up. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Probed {
    number: u16,
    pub(crate) told: Told,
}

impl Probed {
    /// Finds the device, or makes it.
    pub(crate) fn new(words: &str, name: &str) -> Result<Self, Errno> {
        let (words, name) = (text(words)?, text(name)?);
        let mut number = 0;
        let one = devices();
        // SAFETY: strings that end, and a place for the number.
        answer(unsafe { why_probe(words.as_ptr(), name.as_ptr(), &raw mut number) })?;
        drop(one);
        // SAFETY: plain numbers, for which zero is a value.
        let mut device: CDevice = unsafe { std::mem::zeroed() };
        // SAFETY: a place of the type's size.
        answer(unsafe { why_describe(number, &raw mut device) })?;
        let driver: Vec<u8> = device.driver.iter().map(|sign| sign.to_ne_bytes()[0]).collect();
        let driver = CStr::from_bytes_until_nul(&driver).unwrap_or_default();
        let told = Told {
            driver: driver.to_string_lossy().into_owned(),
            mac: device.mac,
            mtu: device.mtu,
            most_send_queues: device.most_send_queues,
            receive_frames: (device.least_receive_frames, device.most_receive_frames),
            send_frames: (device.least_send_frames, device.most_send_frames),
            least_buffer: device.least_buffer,
            socket: device.socket,
            is_pci: device.is_pci != 0,
        };
        Ok(Self { number, told })
    }

    /// Makes a pool of `buffers` buffers with room for `room` bytes each. It is the port's.
    pub(crate) fn pool(&self, name: &str, buffers: u32, room: u16) -> Result<Buffers, Errno> {
        const CACHE: u32 = 256;
        let name = text(name)?;
        let mut error = 0;
        let socket = self.told.socket;
        // Its driver shows the kernel the pool's memory as one piece, of the buffers' own bytes: with
        // pages smaller than that, buffers behind holes would lie outside, and the kernel refuses them.
        let one_piece = c_int::from(self.told.driver == "net_af_xdp");
        // SAFETY: a string that ends, and a place for the error.
        let pool = unsafe {
            why_pool(name.as_ptr(), buffers, CACHE, room, socket, one_piece, &raw mut error)
        };
        match NonNull::new(pool) {
            Some(pool) => Ok(Buffers(pool)),
            None => Err(Errno::from_raw_os_error(error.wrapping_neg().max(1))),
        }
    }

    /// Sets the device up and starts it; says how many frames its rings hold.
    pub(crate) fn start(self, pool: Buffers, mut rings: Rings) -> Result<(Port, Rings), Errno> {
        let (number, socket) = (self.number, self.told.socket);
        let blank = self.told.driver == "net_null";
        std::mem::forget(self);
        // From here on the port gives the device back, with its pool.
        let port = Port {
            number,
            send_queues: usize::from(rings.send_queues),
            blank,
            pool: Arc::new(pool),
            member: sharing().enter(),
            received: AtomicBool::new(false),
            sending: Default::default(),
        };
        let one = devices();
        // SAFETY: the device is there, and the pool is its own.
        let error = unsafe { why_set_up(number, &raw mut rings, port.pool.0.as_ptr(), socket) };
        drop(one);
        answer(error)?;
        Ok((port, rings))
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        let _one = devices();
        // SAFETY: nobody else has the device.
        unsafe { why_close(self.number) };
    }
}

/// A pool of buffers; freed when nobody can have one of them any more.
#[derive(Debug)]
pub(crate) struct Buffers(NonNull<Pool>);

// SAFETY: what is asked of a pool here, DPDK lets any thread ask.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: its port and all that buffers of it can have come to are closed, and have none of them.
        unsafe { why_free_pool(self.0.as_ptr()) };
    }
}

/// A device that is set up; given back with the last who holds it.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    send_queues: usize,
    /// Its driver writes no bytes into what is received.
    blank: bool,
    pool: Arc<Buffers>,
    /// Among those with whom it shares buffers.
    member: Member,
    received: AtomicBool,
    sending: [AtomicBool; HALVES],
}

impl Port {
    /// The receiving ring; none where somebody has it.
    pub(crate) fn received(self: &Arc<Self>) -> Option<Received> {
        let taken = self.received.swap(true, Ordering::Relaxed);
        (!taken).then(|| Received::new(Arc::clone(self)))
    }

    /// A sending ring; none where somebody has it, or there is no such queue.
    pub(crate) fn sending(self: &Arc<Self>, queue: usize) -> Option<Outgoing> {
        if queue >= self.send_queues {
            return None;
        }
        let taken = self.sending.get(queue)?.swap(true, Ordering::Relaxed);
        (!taken).then(|| Outgoing::new(Arc::clone(self), queue as u16))
    }

    /// From now on its rings may have buffers of all pools that `from` has some of, or comes to have.
    #[cold]
    fn keep(&self, from: &Self) {
        sharing().join(self.member, from.member);
    }

    /// Is the link up?
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: the port is there.
        unsafe { why_link(self.number) == 1 }
    }

    pub(crate) fn counts(&self) -> Result<Counts, Errno> {
        let mut counts = Counts::default();
        // SAFETY: the port is there, and so is a place for the counts.
        answer(unsafe { why_counts(self.number, &raw mut counts) })?;
        Ok(counts)
    }

    pub(crate) fn free_buffers(&self) -> u32 {
        // SAFETY: the pool lives as long as the port.
        unsafe { why_free_buffers(self.pool.0.as_ptr()) }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let one = devices();
        // SAFETY: whoever had a ring is gone, because each holds the port. What the device still has goes
        // back to pools that are there: its own, and those of all that it shares with.
        unsafe { why_close(self.number) };
        drop(one);
        // Freed behind the locks, and this port's own one with it, where nobody else can have a buffer.
        let unused = sharing().leave(self.member, Arc::clone(&self.pool));
        drop(unused);
    }
}

/// Gives the calling thread caches of its own, where that can be: without them each buffer is taken
/// from a ring that all threads share. Asked of each thread that uses a port; cheap when it is done.
pub(crate) fn join() -> bool {
    // SAFETY: changes what belongs to the calling thread.
    unsafe { why_join() == 1 }
}
