//! A bed that is up.

use std::net::Ipv4Addr;

use whylate_host::bed::{self, Role};
use whylate_model::lab::BedKind;
use whylate_sys::namespace;

use super::status;
use crate::error::NetError;

/// A bed that is up, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bed {
    name: String,
}

impl Bed {
    /// Finds the bed `name`.
    pub fn open(name: &str) -> Result<Self, NetError> {
        if !bed::is_name(name) {
            return Err(NetError::NotABedName(name.to_owned()));
        }
        if !Role::ALL.iter().all(|role| bed::mount_point(name, *role).exists()) {
            return Err(NetError::NoBed(name.to_owned()));
        }
        Ok(Self { name: name.to_owned() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that a part of the bed has inside it.
    #[must_use]
    pub fn address(role: Role) -> Ipv4Addr {
        // RFC 2544 keeps 198.18.0.0/15 for benchmarks.
        match role {
            Role::Client => Ipv4Addr::new(198, 18, 0, 1),
            Role::Server => Ipv4Addr::new(198, 18, 0, 2),
            Role::Device => Ipv4Addr::new(198, 18, 0, 3),
        }
    }

    /// What lies between its ends; none where its notes cannot be read.
    #[must_use]
    pub fn kind(&self) -> Option<BedKind> {
        status::notes(&self.name).map(|notes| notes.kind)
    }

    /// The interface of its device that sees everything between client and server, where it was set up
    /// for a tap.
    pub fn tap(&self) -> Result<String, NetError> {
        let tap = status::notes(&self.name).and_then(|notes| notes.tap);
        tap.ok_or_else(|| NetError::NoTap(self.name.clone()))
    }

    /// Moves the calling thread into a namespace of the bed, with all threads that it starts
    /// afterwards: call it at the start of a child process.
    pub fn enter(&self, role: Role) -> Result<(), NetError> {
        Ok(namespace::enter_network(&bed::mount_point(&self.name, role))?)
    }
}

/// Does something on a thread of its own in a namespace of the bed `name`; processes that it starts are
/// born there.
pub(super) fn inside<T: Send>(
    name: &str,
    role: Role,
    work: impl FnOnce() -> Result<T, NetError> + Send,
) -> Result<T, NetError> {
    let place = bed::mount_point(name, role);
    std::thread::scope(|scope| {
        let there = move || {
            namespace::enter_network(&place)?;
            work()
        };
        scope.spawn(there).join().unwrap_or_else(|_| Err(NetError::NoBed(name.to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bed_that_is_not_up_is_named_with_the_command_that_sets_it_up() {
        let error = Bed::open("never-was").unwrap_err().to_string();
        assert!(error.contains("no test network `never-was`: set it up first"), "{error}");
        assert!(matches!(Bed::open("../x"), Err(NetError::NotABedName(_))));
        assert_eq!(Bed { name: "never-was".to_owned() }.kind(), None);
        let error = Bed { name: "never-was".to_owned() }.tap().unwrap_err().to_string();
        assert!(error.contains("whylate lab up --tap --name never-was"), "{error}");
    }
}
