//! Which CPUs and which memory node a configuration gives a box, and what is refused.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::CpuId;

use super::{Configuration, Element, NotHere, Subject};
use crate::cpus::format_list;
use crate::error::HostError;
use crate::files::{trimmed, under};
use crate::topology::Topology;

/// What a configuration would be on this host; nothing is changed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(super) cpus: Vec<CpuId>,
    /// Where its memory is to come from; none where the host has no choice of nodes, or the
    /// configuration makes none.
    pub(super) node: Option<u32>,
    pub(super) notes: Vec<NotHere>,
    /// No CPU is left but the box's and those of who measures: what we run beside the measuring threads shares one
    /// of these.
    pub(super) is_shared: bool,
}

impl Plan {
    /// Looks at this host, and refuses what cannot be had here.
    pub fn of(configuration: &Configuration, subject: &Subject) -> Result<Self, HostError> {
        Self::below(Path::new("/"), configuration, subject)
    }

    /// The same on the host whose `/proc` and `/sys` lie below `root`.
    pub(super) fn below(
        root: &Path,
        configuration: &Configuration,
        subject: &Subject,
    ) -> Result<Self, HostError> {
        let cpus = subject.cpus.clone();
        let mut plan = Self { cpus, node: None, notes: Vec::new(), is_shared: false };
        if configuration.has(Element::Unchanged) {
            return Ok(plan);
        }
        let topology = Topology::read(root)?;
        let looked = Looked { root, configuration, subject, topology: &topology };
        looked.check_cpus()?;
        if configuration.has(Element::Local) || configuration.has(Element::Remote) {
            looked.choose_node(&mut plan)?;
        }
        if configuration.has(Element::Isolset) {
            looked.leave_housekeeping(&mut plan)?;
        }
        Ok(plan)
    }

    /// The CPUs that the box will have.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// The node that its memory will be taken from; none where that is not chosen.
    #[must_use]
    pub fn node(&self) -> Option<u32> {
        self.node
    }
}

struct Looked<'a> {
    root: &'a Path,
    configuration: &'a Configuration,
    subject: &'a Subject,
    topology: &'a Topology,
}

impl Looked<'_> {
    fn refused(&self, why: String) -> HostError {
        HostError::ConfigurationRefused { name: self.configuration.name().to_owned(), why }
    }

    fn check_cpus(&self) -> Result<(), HostError> {
        if self.subject.cpus.is_empty() {
            return Err(self.refused("no CPU is named for the box; name one".to_owned()));
        }
        let online = self.topology.online();
        match self.subject.cpus.iter().find(|cpu| !online.contains(cpu)) {
            Some(cpu) => {
                let online = format_list(online);
                Err(self.refused(format!("cpu {cpu} of the box is not online; {online} are")))
            }
            None => Ok(()),
        }
    }

    /// Nodes that have CPUs, with those that are online.
    fn nodes(&self) -> BTreeMap<u32, Vec<CpuId>> {
        let online = |cpus: &Vec<CpuId>| -> Vec<CpuId> {
            cpus.iter().filter(|cpu| self.topology.online().contains(cpu)).copied().collect()
        };
        let all = self.topology.nodes().iter().map(|(node, cpus)| (*node, online(cpus)));
        all.filter(|(_, cpus)| !cpus.is_empty()).collect()
    }

    fn choose_node(&self, plan: &mut Plan) -> Result<(), HostError> {
        let nodes = self.nodes();
        let remote = self.configuration.has(Element::Remote);
        if nodes.len() < 2 {
            if remote {
                let why = "this machine has one memory node, so no CPU is remote from an interface; \
                           leave remote out, or measure on a machine with two";
                return Err(self.refused(why.to_owned()));
            }
            let why = "this machine has one memory node: all of it is local";
            plan.notes.push(NotHere { knob: "numa.memory".to_owned(), why: why.to_owned() });
            return Ok(());
        }
        let home = self.home(plan)?;
        let mut wanted: Vec<u32> =
            nodes.keys().copied().filter(|node| (*node == home) != remote).collect();
        // One where it is already comes first.
        wanted.sort_by_key(|node| nodes.get(node).is_none_or(|cpus| !self.has_all(cpus)));
        let found = wanted.iter().find_map(|node| Some((*node, self.take(nodes.get(node)?)?)));
        let Some((node, cpus)) = found else {
            let (many, clients) = (self.subject.cpus.len(), format_list(&self.subject.clients));
            if wanted.is_empty() {
                // A node of memory or devices alone.
                wanted.push(home);
            }
            let words = wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(self.refused(format!(
                "the box has {many} CPUs and memory node {words} has fewer beside those that \
                 measure ({clients}); give the box fewer, or measure from another node"
            )));
        };
        (plan.node, plan.cpus) = (Some(node), cpus);
        Ok(())
    }

    /// The node of the first interface that has one; else that of the box's first CPU, which is said.
    fn home(&self, plan: &mut Plan) -> Result<u32, HostError> {
        let of_interface = |name: &String| {
            let component = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
            let file = format!("/sys/class/net/{name}/device/numa_node");
            // -1 where the firmware does not say.
            component.then(|| trimmed(&under(self.root, &file)))??.parse::<u32>().ok()
        };
        if let Some(node) = self.subject.interfaces.iter().find_map(of_interface) {
            return Ok(node);
        }
        let cpu = self.subject.cpus[0];
        let Some(node) = self.topology.node_of(cpu) else {
            return Err(self.refused(format!("cpu {cpu} belongs to no memory node")));
        };
        let names = self.subject.interfaces.join(", ");
        let why = format!(
            "no interface of the box ({names}) belongs to a device whose memory node is known: \
             node {node}, that of cpu {cpu}, is taken for local"
        );
        plan.notes.push(NotHere { knob: "numa.interface".to_owned(), why });
        Ok(node)
    }

    fn has_all(&self, cpus: &[CpuId]) -> bool {
        self.subject.cpus.iter().all(|cpu| cpus.contains(cpu))
    }

    /// As many CPUs of a node as the box has: its own first, never those of who measures.
    fn take(&self, of_node: &[CpuId]) -> Option<Vec<CpuId>> {
        let subject = self.subject;
        let own = subject.cpus.iter().filter(|cpu| of_node.contains(cpu));
        let free = of_node
            .iter()
            .filter(|cpu| !subject.cpus.contains(cpu) && !subject.clients.contains(cpu));
        let taken: Vec<CpuId> = own.chain(free).take(subject.cpus.len()).copied().collect();
        (taken.len() == subject.cpus.len()).then_some(taken)
    }

    /// Somebody else must find a CPU that the scheduler still uses of itself.
    fn leave_housekeeping(&self, plan: &mut Plan) -> Result<(), HostError> {
        let (online, isolated) = (self.topology.online(), self.topology.isolated());
        let left: Vec<CpuId> = online
            .iter()
            .filter(|cpu| !plan.cpus.contains(cpu) && !isolated.contains(cpu))
            .copied()
            .collect();
        if left.is_empty() {
            return Err(self.refused(format!(
                "with cpus {} for the box alone no CPU is left for the housekeeping (online are \
                 {}, isolated at boot {}); give the box fewer CPUs",
                format_list(&plan.cpus),
                format_list(online),
                if isolated.is_empty() { "none".to_owned() } else { format_list(isolated) },
            )));
        }
        if left.iter().all(|cpu| self.subject.clients.contains(cpu)) {
            let why = format!(
                "cpus {} are all that is left, and they measure: what is moved off the box's CPUs \
                 runs beside those who measure",
                format_list(&left)
            );
            plan.notes.push(NotHere { knob: "housekeeping".to_owned(), why });
        }
        // One that is isolated serves for our own threads all the same.
        let is_taken = |cpu: &CpuId| plan.cpus.contains(cpu) || self.subject.clients.contains(cpu);
        plan.is_shared = online.iter().all(is_taken);
        Ok(())
    }
}
