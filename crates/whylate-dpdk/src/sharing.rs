//! Which ports may hold buffers of which pools. Pure.
//!
//! A frame that is passed on is its buffer, which may be passed on again: what a port has in its rings may
//! be from any pool of any port that frames came from, over any number of others, also of one that began
//! to pass on later. So ports that passed frames on are one group, whoever did it first, and the pools of
//! a group are given up together: when the last of its ports is closed, none earlier.

/// A port. No other one is ever given the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member(u64);

/// Ports any of which may hold buffers of any other, and the pools of those that are closed.
#[derive(Debug)]
struct Group<P> {
    members: Vec<Member>,
    pools: Vec<P>,
}

/// All ports there are, in their groups.
#[derive(Debug)]
pub struct Sharing<P> {
    next: u64,
    groups: Vec<Group<P>>,
}

impl<P> Default for Sharing<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> Sharing<P> {
    /// Without ports.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 0, groups: Vec::new() }
    }

    /// A new port, which shares with nobody.
    #[must_use]
    pub fn enter(&mut self) -> Member {
        let member = Member(self.next);
        self.next += 1;
        self.groups.push(Group { members: vec![member], pools: Vec::new() });
        member
    }

    /// Frames go from one of these ports to the other from now on.
    pub fn join(&mut self, one: Member, other: Member) {
        let (Some(one), Some(other)) = (self.group(one), self.group(other)) else { return };
        if one == other {
            return;
        }
        let Group { mut members, mut pools } = self.groups.swap_remove(one.max(other));
        // The smaller place is still that of its group: what was swapped in stands behind it.
        let into = &mut self.groups[one.min(other)];
        into.members.append(&mut members);
        into.pools.append(&mut pools);
    }

    /// A port was closed, and this was its pool. Gives all pools of which nobody can have a buffer now.
    #[must_use]
    pub fn leave(&mut self, member: Member, pool: P) -> Vec<P> {
        let Some(at) = self.group(member) else { return vec![pool] };
        let group = &mut self.groups[at];
        group.members.retain(|one| *one != member);
        group.pools.push(pool);
        if group.members.is_empty() { self.groups.swap_remove(at).pools } else { Vec::new() }
    }

    fn group(&self, member: Member) -> Option<usize> {
        self.groups.iter().position(|group| group.members.contains(&member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_a_chain_of_ports_are_kept_until_the_last_of_them_is_closed() {
        // Passed on first at the end of the chain, or first at its beginning.
        for end_first in [true, false] {
            let mut sharing = Sharing::new();
            let [near, mid, far, alone]: [Member; 4] = std::array::from_fn(|_| sharing.enter());
            let mut steps = [(near, mid), (mid, far)];
            if end_first {
                steps.reverse();
            }
            for (from, to) in steps {
                sharing.join(from, to);
                sharing.join(from, to);
            }
            assert!(sharing.leave(near, "near").is_empty());
            assert!(sharing.leave(mid, "mid").is_empty(), "frames of both may lie in the far ring");
            assert_eq!(sharing.leave(alone, "alone"), ["alone"]);
            assert_eq!(sharing.leave(far, "far"), ["near", "mid", "far"]);
            assert!(sharing.groups.is_empty());
        }
    }

    #[test]
    fn whichever_of_many_ports_go_together_their_pools_are_given_up_once() {
        let mut sharing = Sharing::new();
        let ports: [Member; 12] = std::array::from_fn(|_| sharing.enter());
        // Three groups of four, made in an odd order.
        for (one, other) in
            [(0, 9), (1, 4), (11, 2), (3, 6), (5, 2), (7, 10), (8, 11), (6, 9), (10, 1)]
        {
            sharing.join(ports[one], ports[other]);
        }
        assert_eq!(sharing.groups.len(), 3);
        let mut given = Vec::new();
        for (number, port) in ports.into_iter().enumerate() {
            let unused = sharing.leave(port, number);
            assert!(unused.is_empty() || unused.len() == 4, "{unused:?}");
            given.extend(unused);
        }
        given.sort_unstable();
        assert_eq!(given, (0..12).collect::<Vec<_>>());
        // Who is not there any more shares with nobody.
        sharing.join(ports[0], ports[1]);
        assert_eq!(sharing.leave(ports[0], 7), [7]);
    }
}
