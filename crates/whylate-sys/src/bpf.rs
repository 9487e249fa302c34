//! Programs for the kernel's receiving path, and the maps that they share with us.
//!
//! [bpf(2)](https://man7.org/linux/man-pages/man2/bpf.2.html) and
//! [`linux/bpf.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/bpf.h).
//! Capability: `CAP_BPF` and `CAP_NET_ADMIN` (`CAP_SYS_ADMIN` before Linux 5.8), and `CAP_PERFMON` for
//! programs that add what a packet says to a pointer into it. Before Linux 5.11 maps and programs
//! count as locked memory: where that limit is in the way, it is raised for the one call.
//!
//! Only what programs on packets need is here: no objects on disk, no types of the kernel.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::capability::{self, Cap};
use crate::error::{SysError, last_errno};

mod attributes;

use attributes::{
    AskInfo, Attribute, ById, CreateLink, CreateMap, Element, LinkFields, Load, ProgramFields,
    TestRun,
};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;

const MAP_TYPE_PERCPU_ARRAY: u32 = 6;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;

/// The program is for one interface, and runs there alone (Linux 6.3).
const DEVICE_BOUND: u32 = 1 << 6;

/// Room for a name in the kernel, with the byte that ends it.
const NAME_BYTES: usize = 16;
/// Room for what the verifier says; its last words are the reason.
const LOG_BYTES: usize = 256 * 1024;
/// Characters of it that are shown: the instructions before the refused one, and the reason.
const LOG_SHOWN: usize = 2_000;
/// The most CPUs that any kernel is built for (`NR_CPUS`). A counter of each CPU is read into this much
/// room, so that no list of CPUs has to be right for the kernel to stay inside.
const MOST_CPUS: usize = 8_192;
/// Instructions of a program at most (`BPF_MAXINSNS`, which older kernels allow).
const MOST_INSTRUCTIONS: usize = 4_096;
/// Room for what a tried program leaves of a frame.
const MOST_FRAME: usize = 4_096;

/// One instruction: `struct bpf_insn`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What is done.
    pub code: u8,
    /// The two registers, four bits each; the destination comes first in memory.
    pub registers: u8,
    /// Distance of a jump in instructions, or of memory in bytes.
    pub offset: i16,
    /// A constant.
    pub immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8, "the kernel's instruction has 8 bytes");

/// Calls `bpf(2)`. What the pointers in `attribute` lead to must be as long as `command` takes it to
/// be, and live until the call is over.
// SAFETY: to be called so alone; each caller says beside its call why that holds.
unsafe fn bpf<A: Attribute>(command: libc::c_int, attribute: &mut A) -> Result<i32, Errno> {
    // SAFETY: the kernel reads and writes `size_of::<A>()` bytes of it, all of them integers; for what
    // the integers lead to, the caller answers.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attribute, size_of::<A>()) };
    if answer < 0 { Err(last_errno()) } else { Ok(answer as i32) }
}

/// The same for commands that answer with a descriptor, which nobody else then has.
// SAFETY: to be called as `bpf`, and only with a command that makes a descriptor.
unsafe fn bpf_descriptor<A: Attribute>(
    command: libc::c_int,
    attribute: &mut A,
) -> Result<OwnedFd, Errno> {
    // SAFETY: as the caller promises.
    let number = unsafe { bpf(command, attribute) }?;
    // SAFETY: a descriptor that the kernel has just made for us, and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sockets of AF_XDP by receiving queue: where a program redirects to.
#[derive(Debug)]
pub struct SocketMap {
    map: OwnedFd,
    queues: u32,
}

impl SocketMap {
    /// A map for the queues `0..queues`, empty.
    pub fn new(name: &CStr, queues: u32) -> Result<Self, SysError> {
        Ok(Self { map: create(name, MAP_TYPE_XSKMAP, 4, queues)?, queues })
    }

    /// Lets a program redirect what comes by `queue` to `socket`, which the map forgets by itself
    /// when it is closed.
    pub fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), SysError> {
        let what = || format!("give the queue {queue} of {} to a socket", self.queues);
        if queue >= self.queues {
            return Err(SysError::invalid(what(), "there is no such queue"));
        }
        let value = socket.as_raw_fd();
        let (key, value) = ((&raw const queue) as u64, (&raw const value) as u64);
        let mut element = element(&self.map, key, value);
        // SAFETY: key and value are four bytes each, as the map was made.
        let done = unsafe { bpf(MAP_UPDATE_ELEM, &mut element) };
        let advice = |errno: Errno| match errno {
            Errno::OPNOTSUPP => "that is no socket of AF_XDP".to_owned(),
            _ => advice(errno),
        };
        done.map(|_| ()).map_err(|errno| SysError::advised("bpf", what(), errno, advice(errno)))
    }

    /// The queues it was made for.
    #[must_use]
    pub fn queues(&self) -> u32 {
        self.queues
    }
}

impl AsFd for SocketMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// Counters that a program adds to, each CPU to its own.
#[derive(Debug)]
pub struct CounterMap {
    map: OwnedFd,
    counters: u32,
}

impl CounterMap {
    /// So many counters, all zero.
    pub fn new(name: &CStr, counters: u32) -> Result<Self, SysError> {
        Ok(Self { map: create(name, MAP_TYPE_PERCPU_ARRAY, 8, counters)?, counters })
    }

    /// Each counter of each CPU, by the number of the CPU; CPUs after the last one that counted
    /// anything are left out. The counters go on while they are read: each is exact at some moment of
    /// the call, and no two need be of one moment.
    pub fn read(&self) -> Result<Vec<Vec<u64>>, SysError> {
        let mut room = vec![0_u64; MOST_CPUS];
        (0..self.counters)
            .map(|counter| {
                let (key, value) = ((&raw const counter) as u64, room.as_mut_ptr() as u64);
                let mut element = element(&self.map, key, value);
                // SAFETY: the key is four bytes, as the map was made; the kernel writes eight bytes
                // for each CPU that it may ever have, for which there is room.
                let done = unsafe { bpf(MAP_LOOKUP_ELEM, &mut element) };
                done.map_err(|errno| {
                    SysError::call("bpf", format!("read the counter {counter} of a map"), errno)
                })?;
                let counted = room.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
                Ok(room[..counted].to_vec())
            })
            .collect()
    }
}

impl AsFd for CounterMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// Addresses of key and value for a map.
fn element(map: &OwnedFd, key: u64, value: u64) -> Element {
    let map = map.as_raw_fd() as u32;
    Element { map, padding: 0, key, value, flags: 0 }
}

fn create(name: &CStr, kind: u32, value_bytes: u32, entries: u32) -> Result<OwnedFd, SysError> {
    let shown = name.to_string_lossy().into_owned();
    let mut attribute = CreateMap {
        kind,
        key_bytes: 4,
        value_bytes,
        entries,
        flags: 0,
        inner: 0,
        numa_node: 0,
        name: named(name),
    };
    let made = with_room(|| {
        // SAFETY: the attribute leads nowhere.
        unsafe { bpf_descriptor(MAP_CREATE, &mut attribute) }
    });
    made.map_err(|errno| {
        let what = format!("make the map {shown} of {entries} entries");
        let advice = match errno {
            Errno::INVAL => {
                "does this kernel know maps of this kind? AF_XDP came with Linux 4.18, \
                             and needs CONFIG_XDP_SOCKETS"
                    .to_owned()
            }
            _ => advice(errno),
        };
        SysError::advised("bpf", what, errno, advice)
    })
}

/// Loads a program for the receiving path of an interface (XDP). `license` is judged by the kernel:
/// one that it does not count as GPL-compatible is refused helpers that are for such programs alone.
pub fn load_xdp(
    name: &CStr,
    license: &CStr,
    instructions: &[Instruction],
) -> Result<OwnedFd, SysError> {
    load(name, license, instructions, None)
}

/// The same for the interface of this index alone: what the program calls of the kernel about a frame's
/// metadata is then that interface's driver's (Linux 6.3). Refused where the driver has nothing of it.
pub fn load_xdp_for(
    interface: u32,
    name: &CStr,
    license: &CStr,
    instructions: &[Instruction],
) -> Result<OwnedFd, SysError> {
    load(name, license, instructions, Some(interface))
}

fn load(
    name: &CStr,
    license: &CStr,
    instructions: &[Instruction],
    interface: Option<u32>,
) -> Result<OwnedFd, SysError> {
    let what = || format!("load the program {}", name.to_string_lossy());
    if instructions.len() > MOST_INSTRUCTIONS {
        let why = format!("{} instructions, of at most {MOST_INSTRUCTIONS}", instructions.len());
        return Err(SysError::invalid(what(), why));
    }
    let attribute = |log: &mut [u8]| Load {
        kind: PROG_TYPE_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel_version: 0,
        flags: if interface.is_some() { DEVICE_BOUND } else { 0 },
        name: named(name),
        interface: interface.unwrap_or(0),
        attach_type: 0,
    };
    let load = |log: &mut [u8]| {
        let mut attribute = attribute(log);
        // SAFETY: instructions, licence (a string that ends) and log are as long as they are said to
        // be, and outlive the call.
        unsafe { bpf_descriptor(PROG_LOAD, &mut attribute) }
    };
    // Without a log at first: it costs time, and one that is too small would be a reason to refuse.
    let refused = match with_room(|| load(&mut [])) {
        Ok(program) => return Ok(program),
        Err(errno) => errno,
    };
    let mut log = vec![0; LOG_BYTES];
    let log = match load(&mut log) {
        Ok(program) => return Ok(program),
        Err(_) => CStr::from_bytes_until_nul(&log).map_or("".into(), CStr::to_string_lossy),
    };
    if log.trim().is_empty() {
        return Err(SysError::advised("bpf", what(), refused, advice(refused)));
    }
    let help = if refused == Errno::ACCESS { advice(refused) } else { String::new() };
    let why = format!("the kernel's verifier refuses it ({refused}): {}\n{help}", last_words(&log));
    Err(SysError::invalid(what(), why.trim_end()))
}

/// The end of a log, from the beginning of a line.
fn last_words(log: &str) -> &str {
    let log = log.trim();
    let Some(from) = log.len().checked_sub(LOG_SHOWN) else { return log };
    let Some(line) = log.as_bytes()[from..].iter().position(|&byte| byte == b'\n') else {
        return log;
    };
    // A newline is one byte whatever stands before it, so the text can be cut behind it.
    &log[from + line + 1..]
}

/// What a program did with a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What it returned: `XDP_DROP` is 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4.
    pub returned: u32,
    /// The frame as it was left.
    pub frame: Vec<u8>,
}

/// Runs a program once on `frame`, as if it had come by the first queue, without any interface. The
/// kernel takes frames of 14 bytes to somewhat less than a page.
pub fn try_on(program: impl AsFd, frame: &[u8]) -> Result<Tried, SysError> {
    let mut left = vec![0; MOST_FRAME];
    let mut attribute = TestRun {
        program: program.as_fd().as_raw_fd() as u32,
        returned: 0,
        bytes_in: frame.len() as u32,
        bytes_out: left.len() as u32,
        data_in: frame.as_ptr() as u64,
        data_out: left.as_mut_ptr() as u64,
        repeat: 1,
        duration: 0,
        context_in_bytes: 0,
        context_out_bytes: 0,
        context_in: 0,
        context_out: 0,
    };
    // SAFETY: both frames are as long as they are said to be and outlive the call.
    let done = unsafe { bpf(PROG_TEST_RUN, &mut attribute) };
    done.map_err(|errno| {
        let what = format!("try a program on a frame of {} bytes", frame.len());
        SysError::advised("bpf", what, errno, advice(errno))
    })?;
    left.truncate(attribute.bytes_out as usize);
    Ok(Tried { returned: attribute.returned, frame: left })
}

/// A loaded program, as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Its number.
    pub id: u32,
    /// The name that its loader gave it; empty where it gave none.
    pub name: String,
}

/// What the kernel says of a program.
pub fn program_info(program: impl AsFd) -> Result<ProgramInfo, SysError> {
    let mut fields = ProgramFields::default();
    let (at, bytes) = ((&raw mut fields) as u64, size_of::<ProgramFields>() as u32);
    // SAFETY: it leads to integers, so many bytes of them.
    unsafe { info(program, at, bytes) }
        .map_err(|errno| SysError::call("bpf", "ask about a program", errno))?;
    let length = fields.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    let name = String::from_utf8_lossy(&fields.name[..length]).into_owned();
    Ok(ProgramInfo { id: fields.id, name })
}

/// The program of this number. Needs `CAP_SYS_ADMIN`.
pub fn program_by_id(id: u32) -> Result<OwnedFd, SysError> {
    let mut attribute = ById { id, next: 0, flags: 0 };
    // SAFETY: the attribute leads nowhere.
    let found = unsafe { bpf_descriptor(PROG_GET_FD_BY_ID, &mut attribute) };
    found.map_err(|errno| SysError::call("bpf", format!("open the program {id}"), errno))
}

/// Attaches a program to the interface of this index in the calling thread's namespace (Linux 5.9).
/// It stays until the descriptor that comes back is closed, and never takes another one's place.
/// `flags` are those of `linux/if_link.h`: one mode.
pub fn link_xdp(program: impl AsFd, interface: u32, flags: u32) -> Result<OwnedFd, Errno> {
    let program = program.as_fd().as_raw_fd() as u32;
    let mut attribute = CreateLink { program, interface, attach_type: ATTACH_TYPE_XDP, flags };
    // SAFETY: the attribute leads nowhere.
    unsafe { bpf_descriptor(LINK_CREATE, &mut attribute) }
}

/// The index of the interface that a link still holds its program at; none when that is gone.
pub fn linked_interface(link: impl AsFd) -> Result<Option<u32>, SysError> {
    let mut fields = LinkFields::default();
    let (at, bytes) = ((&raw mut fields) as u64, size_of::<LinkFields>() as u32);
    // SAFETY: it leads to integers, so many bytes of them.
    unsafe { info(link, at, bytes) }
        .map_err(|errno| SysError::call("bpf", "ask about a link", errno))?;
    Ok((fields.interface != 0).then_some(fields.interface))
}

/// Has the kernel describe an object. `at` must lead to `bytes` bytes of integers.
// SAFETY: to be called so alone, and while nobody else reaches those bytes.
unsafe fn info(object: impl AsFd, at: u64, bytes: u32) -> Result<(), Errno> {
    let descriptor = object.as_fd().as_raw_fd() as u32;
    let mut attribute = AskInfo { descriptor, bytes, info: at };
    // SAFETY: the kernel writes at most `bytes` bytes, for which the caller answers.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attribute) }.map(|_| ())
}

fn named(name: &CStr) -> [u8; NAME_BYTES] {
    let mut room = [0; NAME_BYTES];
    // One byte stays zero: the name ends there.
    for (to, from) in room[..NAME_BYTES - 1].iter_mut().zip(name.to_bytes()) {
        *to = *from;
    }
    room
}

/// Makes something, with the limit on locked memory lifted for the moment where it is in the way.
fn with_room<T>(mut make: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let refused = match make() {
        Err(Errno::PERM) => Errno::PERM,
        other => return other,
    };
    let limit = getrlimit(Resource::Memlock);
    let unlimited = Rlimit { current: None, maximum: None };
    if limit.current.is_none() || setrlimit(Resource::Memlock, unlimited).is_err() {
        return Err(refused);
    }
    let outcome = make();
    // What was made stays charged; the limit is as it was for all that comes later.
    let _ = setrlimit(Resource::Memlock, limit);
    outcome
}

/// What to try after this answer.
fn advice(errno: Errno) -> String {
    let has = capability::effective();
    let any = |caps: &[Cap]| caps.iter().any(|&cap| has.has(cap));
    match errno {
        Errno::PERM | Errno::ACCESS if !any(&[Cap::Bpf, Cap::SysAdmin]) => {
            capability::explain(Cap::Bpf)
        }
        Errno::PERM | Errno::ACCESS if !any(&[Cap::NetAdmin, Cap::SysAdmin]) => {
            capability::explain(Cap::NetAdmin)
        }
        Errno::ACCESS if !any(&[Cap::Perfmon, Cap::SysAdmin]) => {
            "without CAP_PERFMON the kernel refuses sums of a pointer and what a packet says: run \
             as root or give it: setcap cap_perfmon+ep WHYLATE"
                .to_owned()
        }
        Errno::PERM => {
            "the capabilities are there: the kernel's lockdown, a container's filter of \
                        system calls, or RLIMIT_MEMLOCK before Linux 5.11 is in the way"
                .to_owned()
        }
        Errno::NOSYS => "this kernel was built without bpf(2)".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
