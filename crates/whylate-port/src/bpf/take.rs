//! What a program takes out of the stream of frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bpf::error::BpfError;

/// Ports in one program at most: each costs an instruction per frame that is none of them.
pub const MOST_PORTS: usize = 64;
/// Addresses in one program at most: each costs up to eight instructions.
pub const MOST_ADDRESSES: usize = 16;

/// Which frames go to the sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// All of them, whatever they are: for a forwarder. The host hears nothing on this interface.
    Everything,
    /// Messages to certain ports.
    Messages(Messages),
}

/// Messages of UDP, over IPv4 or IPv6, in up to two VLAN tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages {
    /// Their destination ports; at least one.
    pub ports: Vec<u16>,
    /// Their destination addresses; none stands for any, the host's own among them.
    pub addresses: Vec<IpAddr>,
    /// Addresses whose owner the socket is: questions about them and answers to them (ARP, neighbour
    /// discovery) are taken, too, and the host does not hear them. So they should be addresses that
    /// the host itself does not have. Where there are destination addresses, these are some of them.
    pub neighbours: Vec<IpAddr>,
}

impl Messages {
    /// To these ports of any address.
    #[must_use]
    pub fn to_ports(ports: &[u16]) -> Self {
        Self { ports: ports.to_vec(), addresses: Vec::new(), neighbours: Vec::new() }
    }

    /// Refuses what no program can look for.
    pub(super) fn check(&self) -> Result<(), BpfError> {
        let unfit = |what, why: String| Err(BpfError::Unfit { what, why });
        if self.ports.is_empty() || self.ports.contains(&0) {
            return unfit("ports", "at least one is needed, and none of them is 0".to_owned());
        }
        if self.ports.len() > MOST_PORTS {
            return unfit("ports", format!("{} of at most {MOST_PORTS}", self.ports.len()));
        }
        let most = self.addresses.len().max(self.neighbours.len());
        if most > MOST_ADDRESSES {
            return unfit("addresses", format!("{most} of at most {MOST_ADDRESSES}"));
        }
        let mut all = self.addresses.iter().chain(&self.neighbours);
        if let Some(odd) = all.find(|one| one.is_unspecified()) {
            return unfit("addresses", format!("{odd} is no destination"));
        }
        let known = |one: &&IpAddr| self.addresses.is_empty() || self.addresses.contains(one);
        match self.neighbours.iter().find(|one| !known(one)) {
            Some(odd) => unfit("neighbours", format!("{odd} is none of the addresses")),
            None => Ok(()),
        }
    }

    /// Can a message of IPv4 be meant?
    pub(super) fn wants_v4(&self) -> bool {
        self.addresses.is_empty() || v4(&self.addresses).next().is_some()
    }

    /// Can a message of IPv6 be meant?
    pub(super) fn wants_v6(&self) -> bool {
        self.addresses.is_empty() || v6(&self.addresses).next().is_some()
    }
}

/// Those of IPv4.
pub(super) fn v4(addresses: &[IpAddr]) -> impl Iterator<Item = Ipv4Addr> + '_ {
    addresses.iter().filter_map(|one| match one {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}

/// Those of IPv6.
pub(super) fn v6(addresses: &[IpAddr]) -> impl Iterator<Item = Ipv6Addr> + '_ {
    addresses.iter().filter_map(|one| match one {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str, addresses: usize, neighbours: usize) -> Messages {
        let many = |n| vec![address.parse().unwrap(); n];
        Messages { ports: vec![7], addresses: many(addresses), neighbours: many(neighbours) }
    }

    #[test]
    fn what_no_program_can_look_for_is_refused_with_the_reason() {
        let told = |messages: Messages| messages.check().unwrap_err().to_string();
        assert!(Messages::to_ports(&[1, 65_535]).check().is_ok());
        assert!(told(Messages::to_ports(&[])).contains("at least one"));
        assert!(told(Messages::to_ports(&[7, 0])).contains("none of them is 0"));
        assert!(told(Messages::to_ports(&[7; 65])).contains("65 of at most 64"));
        assert!(of("198.18.0.1", 16, 16).check().is_ok());
        assert!(of("198.18.0.1", 0, 1).check().is_ok());
        assert!(told(of("fd00::1", 17, 0)).contains("17 of at most 16"));
        assert!(told(of("fd00::1", 0, 17)).contains("17 of at most 16"));
        assert!(told(of("::", 1, 0)).contains(":: is no destination"));
        let neighbours = vec!["198.18.0.2".parse().unwrap()];
        let odd = Messages { neighbours, ..of("198.18.0.1", 1, 0) };
        assert!(told(odd).contains("198.18.0.2 is none of the addresses"));
    }

    #[test]
    fn addresses_of_one_family_leave_out_the_other() {
        let messages = of("fd00::1", 1, 0);
        assert!(messages.wants_v6() && !messages.wants_v4());
        let any = Messages::to_ports(&[7]);
        assert!(any.wants_v6() && any.wants_v4());
    }
}
