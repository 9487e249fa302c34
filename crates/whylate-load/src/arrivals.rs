//! Interrupts of a load, counted where they arrive.

use std::path::Path;

use whylate_host::procfs::Interrupts;
use whylate_model::CpuId;
use whylate_model::run::ProcDelta;

/// Rows of `/proc/interrupts` that shootdowns and barriers count in.
const ROWS: [&str; 2] = ["interrupts TLB", "interrupts CAL"];

/// What some CPUs have counted.
#[derive(Debug)]
pub(crate) struct Arrivals {
    cpus: Vec<CpuId>,
    before: Interrupts,
    after: Option<Interrupts>,
}

impl Arrivals {
    /// Counting from now on; none where the kernel does not count per CPU.
    pub(crate) fn of(cpus: &[CpuId]) -> Option<Self> {
        Some(Self { cpus: cpus.to_vec(), before: read()?, after: None })
    }

    /// The measurement beside it begins.
    pub(crate) fn begins(&mut self) {
        if let Some(now) = read() {
            (self.before, self.after) = (now, None);
        }
    }

    /// The measurement beside it has ended.
    pub(crate) fn ends(&mut self) {
        self.after = read();
    }

    /// Interrupts since it began; none where the rows are not there.
    pub(crate) fn count(&self) -> Option<u64> {
        let now = match &self.after {
            Some(after) => after.clone(),
            None => read()?,
        };
        rise(&self.before.delta(&now, &self.cpus))
    }
}

fn read() -> Option<Interrupts> {
    Interrupts::read(Path::new("/")).ok()
}

/// Sum of the rows; none where none of them moved: then this kernel counts elsewhere.
fn rise(counted: &[ProcDelta]) -> Option<u64> {
    let of = counted.iter().filter(|delta| ROWS.contains(&delta.name.as_str()));
    of.map(|delta| delta.count).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rows_of_the_target_cpus_count() {
        let table = |tlb: u64, cal: u64| {
            Interrupts::parse(&format!(
                "            CPU0       CPU1\n TLB:  9{tlb}  {tlb}  TLB shootdowns\n \
                 CAL:  7  {cal}  Function call interrupts\n LOC:  1  99{tlb}  Local timer\n"
            ))
            .unwrap()
        };
        let counted = table(100, 20).delta(&table(600, 25), &[CpuId(1)]);
        assert_eq!(rise(&counted), Some(505));
        let none = table(1, 1).delta(&table(1, 1), &[CpuId(1)]);
        assert_eq!(rise(&none), None);
    }
}
