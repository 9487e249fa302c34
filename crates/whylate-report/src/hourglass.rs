//! The output lines of Hourglass 0.5, as its scripts read them.
//!
//! Execution trace: thread, start, finish, duration, gap; milliseconds with six decimals, zero-based.
//! The gap is the start less the finish of the record before, of any thread on that CPU. `latlate:`
//! lines are in microseconds. The raw trace is in ticks of the counter, not zero-based, and its lines
//! begin with `raw:`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use whylate_model::execution::Block;
use whylate_model::threads::{Deadlines, ThreadSummary};
use whylate_model::{CpuId, Hertz, Nanos, Ticks};

/// What Hourglass prints about.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The threads, in the order of their numbers.
    pub threads: &'a [ThreadSummary],
    /// The execution trace, in the order of time.
    pub blocks: &'a [Block],
    /// Latencies: thread, instant, latency.
    pub latencies: &'a [(u16, Ticks, Nanos)],
    /// First instant of the run.
    pub begin: Ticks,
    /// Rate of the counter.
    pub hz: Hertz,
    /// Print the raw trace, too.
    pub raw: bool,
}

impl Output<'_> {
    /// Writes every line.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.trace(out)?;
        if self.raw {
            self.raw_trace(out)?;
        }
        for (_, _, late) in self.latencies {
            writeln!(out, "latlate: {:.6}", late.0 as f64 / 1e3)?;
        }
        for (number, thread) in self.threads.iter().enumerate() {
            if let Some(deadlines) = &thread.deadlines {
                writeln!(out, "{}", summary(number, deadlines))?;
            }
        }
        out.flush()
    }

    fn trace(&self, out: &mut dyn Write) -> io::Result<()> {
        let ms = |ticks: u64| ticks as f64 * 1e3 / self.hz.0;
        let mut finished: BTreeMap<CpuId, Ticks> = BTreeMap::new();
        for block in self.blocks {
            let before = finished.insert(block.cpu, block.end).unwrap_or(self.begin);
            writeln!(
                out,
                "{} {:.6} {:.6} {:.6} {:.6}",
                block.thread,
                ms(block.start.since(self.begin).0),
                ms(block.end.since(self.begin).0),
                ms(block.length().0),
                ms(block.start.since(before).0),
            )?;
        }
        Ok(())
    }

    fn raw_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut finished: BTreeMap<CpuId, Ticks> = BTreeMap::new();
        for Block { thread, cpu, start, end } in self.blocks {
            let before = finished.insert(*cpu, *end).unwrap_or(self.begin);
            let (length, gap) = (end.since(*start).0, start.since(before).0);
            writeln!(out, "raw: {thread} {} {} {length} {gap}", start.0, end.0)?;
        }
        Ok(())
    }
}

/// What came of the deadlines of the thread with that number.
pub(crate) fn summary(number: usize, of: &Deadlines) -> String {
    format!("thread {number}: missed {} deadlines, hit {}", of.misses, of.hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(thread: u16, cpu: u32, start: u64, end: u64) -> Block {
        Block { thread, cpu: CpuId(cpu), start: Ticks(start), end: Ticks(end) }
    }

    #[test]
    fn the_paper_s_columns_come_out_with_the_gap_of_each_cpu() {
        let blocks = [
            block(0, 1, 1_442_323, 2_222_287),
            block(3, 0, 1_500_000, 9_000_000),
            block(1, 1, 2_224_485, 3_123_644),
        ];
        let output = Output {
            threads: &[],
            blocks: &blocks,
            latencies: &[(2, Ticks(5), Nanos(97_843))],
            begin: Ticks(1_000_000),
            hz: Hertz(1e9),
            raw: true,
        };
        let mut out = Vec::new();
        output.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "0 0.442323 1.222287 0.779964 0.442323");
        assert_eq!(lines[1], "3 0.500000 8.000000 7.500000 0.500000");
        assert_eq!(lines[2], "1 1.224485 2.123644 0.899159 0.002198", "on its own CPU");
        assert_eq!(lines[5], "raw: 1 2224485 3123644 899159 2198");
        assert_eq!(lines[6], "latlate: 97.843000");
    }
}
