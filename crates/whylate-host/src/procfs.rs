//! Counters of `/proc` over a stretch of time: interrupts, softirqs, steal.
//!
//! They say how often, never when: evidence that corroborates, per CPU and run. A table is read
//! twice and the difference of the measured CPUs kept; rows that did not move are dropped. A CPU
//! that is missing from either reading gives nothing rather than zero.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::CpuId;
use whylate_model::run::{CpuSteal, ProcDelta};

use crate::error::HostError;
use crate::files::{required, under};

/// Counters of `/proc/interrupts`, per row and CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupts(Table);

/// Counters of `/proc/softirqs`, per row and CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Softirqs(Table);

/// Steal time of each CPU, in clock ticks, from `/proc/stat`: what the hypervisor says it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steal(BTreeMap<CpuId, u64>);

impl Interrupts {
    /// Reads `/proc/interrupts` below `root`.
    pub fn read(root: &Path) -> Result<Self, HostError> {
        let path = under(root, "/proc/interrupts");
        Self::parse(&required(&path)?).ok_or_else(|| no_header(&path))
    }

    /// Parses the text of `/proc/interrupts`; `None` when its first line names no CPU.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Table::parse(text).map(Self)
    }

    /// What the given CPUs counted from `self` to `later`: `interrupts LOC`,
    /// `interrupts 36 virtio1-req.0`.
    #[must_use]
    pub fn delta(&self, later: &Self, cpus: &[CpuId]) -> Vec<ProcDelta> {
        self.0.delta(&later.0, cpus, "interrupts")
    }
}

impl Softirqs {
    /// Reads `/proc/softirqs` below `root`.
    pub fn read(root: &Path) -> Result<Self, HostError> {
        let path = under(root, "/proc/softirqs");
        Self::parse(&required(&path)?).ok_or_else(|| no_header(&path))
    }

    /// Parses the text of `/proc/softirqs`; `None` when its first line names no CPU.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Table::parse(text).map(Self)
    }

    /// What the given CPUs counted from `self` to `later`: `softirqs NET_RX`.
    #[must_use]
    pub fn delta(&self, later: &Self, cpus: &[CpuId]) -> Vec<ProcDelta> {
        self.0.delta(&later.0, cpus, "softirqs")
    }
}

impl Steal {
    /// Reads `/proc/stat` below `root`.
    pub fn read(root: &Path) -> Result<Self, HostError> {
        let path = under(root, "/proc/stat");
        Ok(Self::parse(&required(&path)?))
    }

    /// Parses the text of `/proc/stat`; a CPU whose line has no steal column is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut fields = line.split_whitespace();
            let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
            // user nice system idle iowait irq softirq steal
            let steal = fields.nth(7)?.parse().ok()?;
            Some((CpuId(cpu), steal))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// The unit of the count, in nanoseconds.
    #[must_use]
    pub fn unit_ns() -> f64 {
        1e9 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Steal of the given CPUs together from `self` to `later`, in nanoseconds, as coarse as the
    /// clock tick; `None` when none of them shows any.
    #[must_use]
    pub fn delta_ns(&self, later: &Self, cpus: &[CpuId]) -> Option<f64> {
        let of_each = self.delta_by_cpu(later, cpus);
        of_each.into_iter().map(|of| of.steal_ns).reduce(|sum, steal| sum + steal)
    }

    /// The same of each of them that shows it.
    #[must_use]
    pub fn delta_by_cpu(&self, later: &Self, cpus: &[CpuId]) -> Vec<CpuSteal> {
        let tick_ns = Steal::unit_ns();
        let of_cpu = |cpu: &CpuId| {
            let (before, after) = (self.0.get(cpu)?, later.0.get(cpu)?);
            // The column has been seen to run backwards on some hypervisors.
            let ticks = after.saturating_sub(*before);
            Some(CpuSteal { cpu: *cpu, steal_ns: ticks as f64 * tick_ns })
        };
        cpus.iter().filter_map(of_cpu).collect()
    }
}

/// Rows of counters under a line of CPU names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    cpus: Vec<CpuId>,
    rows: BTreeMap<String, Vec<u64>>,
}

impl Table {
    /// A row with fewer counters than CPUs (`ERR`, `MIS`) is a total of the host and left out.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        // Offline CPUs are missing from the first line, and so are their columns.
        let header = lines.next()?.split_whitespace();
        let cpus: Option<Vec<CpuId>> =
            header.map(|name| name.strip_prefix("CPU")?.parse().ok().map(CpuId)).collect();
        let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
        let mut rows = BTreeMap::new();
        for line in lines {
            let Some((name, mut rest)) = line.split_once(':') else { continue };
            let name = name.trim();
            let mut counts = Vec::with_capacity(cpus.len());
            while counts.len() < cpus.len() {
                let field = rest.trim_start();
                let end = field.find(char::is_whitespace).unwrap_or(field.len());
                let Ok(count) = field[..end].parse() else { break };
                counts.push(count);
                rest = &field[end..];
            }
            if counts.len() < cpus.len() {
                continue;
            }
            let numbered = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
            let name = match handlers(rest) {
                Some(handlers) if numbered => format!("{name} {handlers}"),
                _ => name.to_owned(),
            };
            rows.insert(name, counts);
        }
        Some(Self { cpus, rows })
    }

    fn delta(&self, later: &Self, cpus: &[CpuId], file: &str) -> Vec<ProcDelta> {
        let column = |table: &Self, cpu| table.cpus.iter().position(|&other| other == cpu);
        let columns: Vec<(CpuId, usize, usize)> = cpus
            .iter()
            .filter_map(|&cpu| Some((cpu, column(self, cpu)?, column(later, cpu)?)))
            .collect();
        let mut deltas = Vec::new();
        for (name, after) in &later.rows {
            // A row that was not there before belongs to an interrupt requested since: from zero.
            let before = self.rows.get(name);
            for &(cpu, column_before, column_after) in &columns {
                let before = before.map_or(0, |row| row[column_before]);
                let count = increase(before, after[column_after]);
                if count > 0 {
                    deltas.push(ProcDelta { name: format!("{file} {name}"), cpu, count });
                }
            }
        }
        deltas
    }
}

/// The increase of a counter that the kernel keeps in 32 bits. A counter that fell from its upper
/// half has wrapped; one that fell otherwise belongs to an interrupt that was released and
/// requested again, and counts from zero.
fn increase(before: u64, after: u64) -> u64 {
    const WRAP: u64 = 1 << 32;
    match after.checked_sub(before) {
        Some(increase) => increase,
        None if (WRAP / 2..WRAP).contains(&before) => after + WRAP - before,
        None => after,
    }
}

/// The handlers of a numbered interrupt, behind its chip and type: the kernel sets them off by two
/// blanks. `None` where there is no handler.
fn handlers(tail: &str) -> Option<&str> {
    let last = tail.trim_end().rsplit("  ").next()?.trim();
    let is_type = last.is_empty()
        || ["-edge", "-fasteoi", "-level", "-hypervisor", "Edge", "Level"]
            .iter()
            .any(|end| last.ends_with(end));
    (!is_type).then_some(last)
}

fn no_header(path: &Path) -> HostError {
    HostError::NotUnderstood {
        path: path.to_owned(),
        what: "its first line names no CPU".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const INTEL: &str = include_str!("../fixtures/interrupts-intel-desktop.txt");
    const AMD: &str = include_str!("../fixtures/interrupts-amd-guest.txt");
    const ARM: &str = include_str!("../fixtures/interrupts-arm64-server.txt");
    const SOFTIRQS: &str = include_str!("../fixtures/softirqs.txt");

    fn named(deltas: &[ProcDelta]) -> Vec<(&str, u32, u64)> {
        deltas.iter().map(|delta| (delta.name.as_str(), delta.cpu.0, delta.count)).collect()
    }

    #[test]
    fn columns_follow_the_names_of_the_cpus_and_not_their_place() {
        let before = Interrupts::parse(INTEL).unwrap();
        let later = INTEL
            .replace("   6912345   Local", "   6912350   Local")
            .replace("         12  IR-IO-APIC   16", "         13  IR-IO-APIC   16");
        let later = Interrupts::parse(&later).unwrap();
        let deltas = before.delta(&later, &[CpuId(0), CpuId(4)]);
        assert_eq!(
            named(&deltas),
            [("interrupts 16 i801_smbus, ehci_hcd:usb1", 4, 1), ("interrupts LOC", 4, 5)]
        );
        // CPU 3 is offline: nothing is known of it.
        assert_eq!(before.delta(&later, &[CpuId(3)]), []);
    }

    #[test]
    fn counters_of_32_bits_that_wrap_or_begin_anew_give_their_true_increase() {
        let before = Interrupts::parse(INTEL).unwrap();
        let later = Interrupts::parse(
            &INTEL.replace("4294967290 ", "         4 ").replace(" 104211 ", "      3 "),
        )
        .unwrap();
        assert_eq!(
            named(&before.delta(&later, &[CpuId(0), CpuId(1)])),
            [("interrupts 125 nvme0q0", 0, 3), ("interrupts 126 enp0s31f6", 1, 10)]
        );
    }

    #[test]
    fn totals_of_the_host_and_foreign_lines_are_left_out() {
        for text in [INTEL, AMD, ARM] {
            let table = Table::parse(text).unwrap();
            assert!(!table.rows.keys().any(|name| ["ERR", "MIS", "Err"].contains(&name.as_str())));
        }
        let odd = format!("{AMD}garbage\n: 1 2\nXYZ: 1 x\n");
        let table = Table::parse(&odd).unwrap();
        assert_eq!(table.rows.len(), Table::parse(AMD).unwrap().rows.len() + 1);
    }

    #[test]
    fn arm_names_have_their_handlers_and_ipis_their_number() {
        let table = Table::parse(ARM).unwrap();
        for name in ["11 arch_timer", "47 virtio0-input.0", "55", "IPI0", "IPI5"] {
            assert!(table.rows.contains_key(name), "{name} in {:?}", table.rows.keys());
        }
        assert_eq!(table.rows["11 arch_timer"], [903_311, 802_214, 811_010, 799_128]);
    }

    #[test]
    fn handlers_are_found_behind_every_kind_of_chip() {
        let table = Table::parse(INTEL).unwrap();
        for name in ["0 timer", "9 acpi", "20", "120 dmar0", "125 nvme0q0", "THR"] {
            assert!(table.rows.contains_key(name), "{name} in {:?}", table.rows.keys());
        }
        let table = Table::parse(AMD).unwrap();
        assert!(table.rows.contains_key("36 virtio1-req.0"));
        assert!(table.rows.contains_key("24 ACPI:Ged"));
    }

    #[test]
    fn softirqs_are_named_after_their_row() {
        let before = Softirqs::parse(SOFTIRQS).unwrap();
        let later = Softirqs::parse(&SOFTIRQS.replace("4028", "4033")).unwrap();
        assert_eq!(
            named(&before.delta(&later, &[CpuId(0), CpuId(1)])),
            [("softirqs NET_RX", 1, 5)]
        );
        assert_eq!(before.delta(&before, &[CpuId(0), CpuId(1)]), []);
    }

    #[test]
    fn rows_that_appear_count_from_zero() {
        let before = Interrupts::parse(AMD).unwrap();
        let text =
            format!("{AMD} 50:          0          9 PCI-MSIX-0000:00:05.0   0-edge      x\n");
        let later = Interrupts::parse(&text).unwrap();
        assert_eq!(named(&before.delta(&later, &[CpuId(1)])), [("interrupts 50 x", 1, 9)]);
    }

    #[test]
    fn tables_of_a_thousand_cpus_are_read() {
        let mut text = String::new();
        for cpu in 0..1024 {
            let _ = write!(text, " CPU{cpu}");
        }
        text.push_str("\nLOC:");
        for cpu in 0..1024 {
            let _ = write!(text, " {cpu}");
        }
        text.push_str("   Local timer interrupts\n");
        let table = Table::parse(&text).unwrap();
        assert_eq!(table.rows["LOC"][1023], 1023);
    }

    #[test]
    fn text_without_cpus_is_no_table() {
        for text in ["", "\n", "hello world\n", "CPU0 CPUx\n1: 2 3\n"] {
            assert_eq!(Table::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn steal_is_the_eighth_column_and_missing_columns_are_unknown() {
        let before =
            Steal::parse("cpu 9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 100 0 0\ncpu1 1 2 3\n");
        let later = Steal::parse("cpu0 1 2 3 4 5 6 7 103 0 0\ncpu1 1 2 3\nintr 1\n");
        let tick_ns = Steal::unit_ns();
        assert_eq!(before.delta_ns(&later, &[CpuId(0), CpuId(1)]), Some(3.0 * tick_ns));
        assert_eq!(later.delta_ns(&before, &[CpuId(0)]), Some(0.0));
        assert_eq!(before.delta_ns(&later, &[CpuId(1)]), None);
    }

    #[test]
    fn the_steal_of_each_cpu_adds_up_to_that_of_all() {
        let of = |first, second| {
            let line = |cpu, steal| format!("cpu{cpu} 1 2 3 4 5 6 7 {steal} 0 0");
            Steal::parse(&[line(0, first), line(1, second), "cpu2 1 2 3".to_owned()].join("\n"))
        };
        let (before, later) = (of(100, 7), of(103, 9));
        let by_cpu = before.delta_by_cpu(&later, &[CpuId(0), CpuId(1), CpuId(2)]);
        let ticks = by_cpu.iter().map(|of| (of.cpu.0, of.steal_ns / Steal::unit_ns()));
        assert_eq!(ticks.collect::<Vec<_>>(), [(0, 3.0), (1, 2.0)]);
        let all = before.delta_ns(&later, &[CpuId(0), CpuId(1)]);
        assert_eq!(all, Some(by_cpu.iter().map(|of| of.steal_ns).sum()));
    }

    #[test]
    fn the_tables_of_this_host_are_read_and_only_grow() {
        let root = Path::new("/");
        let before = Interrupts::read(root).unwrap();
        let later = Interrupts::read(root).unwrap();
        let cpus = before.0.cpus.clone();
        for delta in before.delta(&later, &cpus) {
            assert!(delta.count < 1_000_000, "{delta:?}");
        }
        Softirqs::read(root).unwrap();
        assert!(!Steal::read(root).unwrap().0.is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(CPU[0-9] ){0,3}\n([ A-Z0-9:-]{0,30}\n){0,6}|.{0,80}") {
            if let Some(table) = Interrupts::parse(&text) {
                prop_assert!(table.delta(&table, &table.0.cpus).is_empty());
            }
        }
    }
}
