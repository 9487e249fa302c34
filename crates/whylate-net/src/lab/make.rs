//! Setting a bed up and taking it down.

use std::fs::File;
use std::path::Path;

use whylate_host::bed::{self, MOUNTS, Role};
use whylate_host::guard::BedInTheMaking;
use whylate_host::journal::{Journal, Outcome};
use whylate_model::Pid;
use whylate_model::lab::{BedKind, BedNotes, BedStatus, ProcessInside};
use whylate_sys::capability::{self, Cap};
use whylate_sys::namespace;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::process;

use super::bed::Bed;
use super::ip::{self, ip};
use super::{ovs, probe, status};
use crate::error::NetError;

/// Sets up the bed `name`, sends datagrams through it, and leaves it up. What fails halfway is
/// taken down again.
pub fn up(journal: &Journal, name: &str, kind: BedKind) -> Result<BedStatus, NetError> {
    checked(name)?;
    privileged()?;
    ip::needed()?;
    if kind == BedKind::Ovs {
        ovs::needed()?;
    }
    let _others_wait = alone()?;
    if bed::exists(name) {
        let there = status::of(name);
        let what = there.map_or_else(|| "left half done".to_owned(), |there| summary(&there));
        return Err(NetError::BedThere { name: name.to_owned(), what });
    }
    let making = BedInTheMaking::begin(journal, name)?;
    namespaces(name)?;
    let datapath = join(name, kind)?;
    probe::packets_come_through(name)?;
    let notes = BedNotes { kind, datapath, since_ns: clock_ns(Clock::Realtime) };
    status::note(name, &notes)?;
    making.keep()?;
    status::of(name).ok_or_else(|| NetError::NoBed(name.to_owned()))
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
fn join(name: &str, kind: BedKind) -> Result<String, NetError> {
    let inside = |role| bed::namespace(name, role);
    if kind == BedKind::Direct {
        let server = inside(Role::Server);
        let words = format!("link add client0 type veth peer name server0 netns {server}");
        ip(name, Role::Client, &words)?;
    } else {
        let device = inside(Role::Device);
        for (role, own, other) in
            [(Role::Client, "client0", "to-client"), (Role::Server, "server0", "to-server")]
        {
            let words = format!("link add {own} type veth peer name {other} netns {device}");
            ip(name, role, &words)?;
            // No address of its own: what a device sends by itself is not the bed's traffic.
            ip(name, Role::Device, &format!("link set {other} addrgenmode none up"))?;
        }
    }
    for (role, link) in [(Role::Client, "client0"), (Role::Server, "server0")] {
        ip(name, role, &format!("addr add {}/24 dev {link}", Bed::address(role)))?;
        ip(name, role, &format!("link set {link} addrgenmode none up"))?;
    }
    match kind {
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
