//! The processes of a host, as far as the checks ask for them.

use whylate_model::{CpuId, Printable};

use super::view::{View, cpu_list};

/// One process, kernel threads among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    /// Its name, fit to print.
    pub(super) name: String,
    /// A thread of the kernel. It has no memory of its own, so `status` shows none.
    pub(super) kernel: bool,
    /// The CPUs it may use, where shown.
    pub(super) allowed: Option<Vec<CpuId>>,
}

/// Reads `/proc/PID/status` of every process; those that end meanwhile are left out.
pub(super) fn read(view: &View) -> Vec<Process> {
    let ids = view.numbers("/proc");
    ids.into_iter()
        .filter_map(|id| parse(id, &view.table(&format!("/proc/{id}/status")).ok()?))
        .collect()
}

fn parse(id: u32, status: &str) -> Option<Process> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    let name = field("Name:")?;
    let ended = field("State:").is_some_and(|state| state.starts_with(['Z', 'X']));
    (!ended).then(|| Process {
        id,
        name: Printable(name).to_string(),
        kernel: field("VmSize:").is_none(),
        allowed: field("Cpus_allowed_list:").and_then(cpu_list).filter(|list| !list.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_kind_and_cpus_are_read_and_the_dead_left_out() {
        let status = "Name:\tirqbalance\nState:\tS (sleeping)\nVmSize:\t 8 kB\n\
                      Cpus_allowed_list:\t0-1\n";
        let read = parse(7, status).unwrap();
        assert_eq!((read.name.as_str(), read.kernel), ("irqbalance", false));
        assert_eq!(read.allowed, Some(vec![CpuId(0), CpuId(1)]));
        assert!(parse(7, "Name:\tkthreadd\n").unwrap().kernel);
        assert_eq!(parse(7, "Name:\tx\nState:\tZ (zombie)\n"), None);
        assert_eq!(parse(7, "rubbish"), None);
    }
}
