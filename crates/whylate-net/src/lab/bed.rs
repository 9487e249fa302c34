//! A bed that is up.

use std::net::Ipv4Addr;

use whylate_host::bed::{self, Role};
use whylate_sys::namespace;

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

    /// Moves the calling thread into a namespace of the bed, with all threads that it starts
    /// afterwards: call it at the start of a child process.
    pub fn enter(&self, role: Role) -> Result<(), NetError> {
        Ok(namespace::enter_network(&bed::mount_point(&self.name, role))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bed_that_is_not_up_is_named_with_the_command_that_sets_it_up() {
        let error = Bed::open("never-was").unwrap_err().to_string();
        assert!(error.contains("whylate lab up --name never-was"), "{error}");
        assert!(matches!(Bed::open("../x"), Err(NetError::NotABedName(_))));
    }
}
