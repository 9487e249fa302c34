//! Setting a bed up and taking it down.

use std::fs::File;
use std::num::NonZeroU32;
use std::path::Path;

use whylate_host::bed::{self, MOUNTS, Role};
use whylate_host::guard::BedInTheMaking;
use whylate_host::journal::{Journal, Outcome};
use whylate_model::Pid;
use whylate_model::lab::{BedKind, BedNotes, BedStatus, ProcessInside};
use whylate_sys::affinity;
use whylate_sys::capability::{self, Cap};
use whylate_sys::namespace;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::process;

use super::bed::Bed;
use super::ip::{self, ip};
use super::tap::{self, Tap};
use super::{open, ovs, probe, queues, status};
use crate::error::NetError;

/// Sets up the bed `name` with so many queues at each end of its links, sends datagrams through it (but
/// for an open one), and leaves it up. Several queues are sent by from one of the CPUs of the calling thread each. For a tap
/// all packets pass the device, whatever the kind. What fails halfway is taken down again.
pub fn up(
    journal: &Journal,
    name: &str,
    kind: BedKind,
    queues: NonZeroU32,
    tap: Tap,
) -> Result<BedStatus, NetError> {
    let (making, _others_wait) = made(journal, name, kind, queues, tap)?;
    making.keep()?;
    status::of(name).ok_or_else(|| NetError::NoBed(name.to_owned()))
}

/// A bed for a while: it goes with this value, and after a crash with the next start.
#[derive(Debug)]
pub struct Borrowed {
    bed: Bed,
    _making: BedInTheMaking,
}

impl Borrowed {
    /// The bed.
    #[must_use]
    pub fn bed(&self) -> &Bed {
        &self.bed
    }
}

/// Sets up the bed `name` as [`up`] does, for as long as what is returned lives.
pub fn borrow(
    journal: &Journal,
    name: &str,
    kind: BedKind,
    queues: NonZeroU32,
) -> Result<Borrowed, NetError> {
    let (making, _others_wait) = made(journal, name, kind, queues, Tap::None)?;
    Ok(Borrowed { bed: Bed::open(name)?, _making: making })
}

/// Namespaces of the bed `name` with nothing between them, for as long as what is returned lives.
pub(super) fn borrow_empty(journal: &Journal, name: &str) -> Result<Borrowed, NetError> {
    checked(name)?;
    privileged()?;
    ip::needed()?;
    let _others_wait = alone()?;
    refuse_what_is_there(name)?;
    let making = BedInTheMaking::begin(journal, name)?;
    namespaces(name)?;
    Ok(Borrowed { bed: Bed::open(name)?, _making: making })
}

/// A bed of this name is not set up twice.
fn refuse_what_is_there(name: &str) -> Result<(), NetError> {
    if !bed::exists(name) {
        return Ok(());
    }
    let there = status::of(name);
    let what = there.map_or_else(|| "left half done".to_owned(), |there| summary(&there));
    Err(NetError::BedThere { name: name.to_owned(), what })
}

/// A whole bed that is not kept yet, and the lock that lets others wait meanwhile.
fn made(
    journal: &Journal,
    name: &str,
    kind: BedKind,
    queues: NonZeroU32,
    tap: Tap,
) -> Result<(BedInTheMaking, File), NetError> {
    checked(name)?;
    queues::checked(queues, &affinity::get())?;
    privileged()?;
    ip::needed()?;
    if kind == BedKind::Ovs {
        ovs::needed()?;
    }
    if kind == BedKind::Direct && tap == Tap::Between {
        tap::needed()?;
    }
    let others_wait = alone()?;
    refuse_what_is_there(name)?;
    let making = BedInTheMaking::begin(journal, name)?;
    namespaces(name)?;
    let datapath = join(name, kind, queues, tap)?;
    // Nothing passes an open bed before a box is there.
    if kind != BedKind::Open {
        let through = || probe::packets_come_through(name);
        match tap {
            Tap::Between => tap::sees(name, kind, through)?,
            Tap::None => through()?,
        }
    }
    let queues = Some(queues.get()).filter(|queues| *queues > 1);
    let tap = (tap == Tap::Between).then(|| tap::INTERFACE.to_owned());
    let notes = BedNotes { kind, datapath, since_ns: clock_ns(Clock::Realtime), queues, tap };
    status::note(name, &notes)?;
    Ok((making, others_wait))
}

/// Takes down the bed `name`, or what there is of it. Whoever was inside and was not started for
/// the bed is returned: the kernel keeps the namespace without its name until they end.
pub fn down(name: &str) -> Result<Vec<ProcessInside>, NetError> {
    checked(name)?;
    if !bed::exists(name) {
        return Err(NetError::NoBed(name.to_owned()));
    }
    privileged()?;
    let _others_wait = alone()?;
    let before = inside(name);
    if let Outcome::Failed { why } = bed::remove(name) {
        return Err(NetError::BedStays { name: name.to_owned(), why });
    }
    let still = before.into_iter().filter(Inside::lives);
    Ok(still.map(|Inside { pid, name, .. }| ProcessInside { pid, name }).collect())
}

/// A process in a namespace of a bed, as it was before the bed was taken down.
#[derive(Debug)]
struct Inside {
    pid: Pid,
    name: String,
    /// A number may have gone to another process since.
    began: u64,
}

impl Inside {
    fn lives(&self) -> bool {
        process::alive(self.pid, self.began)
    }
}

fn inside(name: &str) -> Vec<Inside> {
    let all = Role::ALL.iter().flat_map(|role| bed::processes(name, *role));
    // One that has no start time any more has ended.
    let began = |(pid, name)| Some(Inside { pid, name, began: process::start_time(pid).ok()? });
    all.filter_map(began).collect()
}

/// Beds are set up and taken down one after the other.
fn alone() -> Result<File, NetError> {
    bed::one_at_a_time().map_err(|source| NetError::Bed {
        what: "wait for others that set beds up".to_owned(),
        source,
    })
}

fn checked(name: &str) -> Result<(), NetError> {
    if bed::is_name(name) { Ok(()) } else { Err(NetError::NotABedName(name.to_owned())) }
}

fn privileged() -> Result<(), NetError> {
    let effective = capability::effective();
    match [Cap::SysAdmin, Cap::NetAdmin].into_iter().find(|cap| !effective.has(*cap)) {
        None => Ok(()),
        // Not what it is for elsewhere: here it makes namespaces.
        Some(cap) => Err(NetError::NoPrivilege(format!("{}: run as root", cap.name()))),
    }
}

fn summary(there: &BedStatus) -> String {
    match &there.notes {
        Some(notes) => format!("{}, up", notes.kind.name()),
        None => "left half done".to_owned(),
    }
}

fn namespaces(name: &str) -> Result<(), NetError> {
    let failed = |what: String| move |source| NetError::Bed { what, source };
    std::fs::create_dir_all(MOUNTS).map_err(failed(format!("make {MOUNTS}")))?;
    for role in Role::ALL {
        let place = bed::mount_point(name, role);
        File::create_new(&place).map_err(failed(format!("make {}", place.display())))?;
        namespace::make_network(&place)?;
        ip(name, role, "link set lo up")?;
    }
    Ok(())
}

/// Joins the namespaces; says who forwards the packets.
fn join(name: &str, kind: BedKind, queues: NonZeroU32, tap: Tap) -> Result<String, NetError> {
    let inside = |role| bed::namespace(name, role);
    let many = queues::words(queues);
    let mut ends = vec![(Role::Client, "client0"), (Role::Server, "server0")];
    if kind == BedKind::Direct && tap == Tap::None {
        let server = inside(Role::Server);
        let words =
            format!("link add client0 {many} type veth peer name server0 {many} netns {server}");
        ip(name, Role::Client, &words)?;
    } else {
        let device = inside(Role::Device);
        for (role, own, other) in
            [(Role::Client, "client0", tap::INTERFACE), (Role::Server, "server0", "to-server")]
        {
            let words =
                format!("link add {own} {many} type veth peer name {other} {many} netns {device}");
            ip(name, role, &words)?;
            // No address of its own: what a device sends by itself is not the bed's traffic.
            ip(name, Role::Device, &format!("link set {other} addrgenmode none up"))?;
            ends.push((Role::Device, other));
        }
    }
    for (role, link) in [(Role::Client, "client0"), (Role::Server, "server0")] {
        ip(name, role, &format!("addr add {}/24 dev {link}", Bed::address(role)))?;
        ip(name, role, &format!("link set {link} addrgenmode none up"))?;
    }
    for end in ends {
        queues::map(name, end, queues, &affinity::get())?;
    }
    match kind {
        BedKind::Direct if tap == Tap::Between => tap::join(name),
        BedKind::Direct => Ok("none: client and server are back to back".to_owned()),
        BedKind::Bridge => {
            ip(name, Role::Device, "link add bridge0 type bridge")?;
            for port in ["to-client", "to-server"] {
                ip(name, Role::Device, &format!("link set {port} master bridge0"))?;
            }
            let address = Bed::address(Role::Device);
            ip(name, Role::Device, &format!("addr add {address}/24 dev bridge0"))?;
            ip(name, Role::Device, "link set bridge0 addrgenmode none up")?;
            Ok("a bridge of the kernel".to_owned())
        }
        BedKind::Ovs => ovs::start(name, Path::new("/sys/module/openvswitch").exists()),
        BedKind::Open => open::leave(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_number_went_to_another_is_not_still_inside() {
        let pid = process::pid();
        let began = process::start_time(pid).unwrap();
        let inside = |began| Inside { pid, name: "x".to_owned(), began };
        assert!(inside(began).lives());
        assert!(!inside(began - 1).lives(), "the one that was inside had ended");
    }
}
