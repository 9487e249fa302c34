//! Jobs as rows: the layout of `jobs-0001.parquet`.

use std::io::Write;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::execution::{StoredJob, Verdict};
use crate::units::{Nanos, Ticks};

#[derive(Default)]
pub(super) struct JobRows {
    thread: Required<Int32Type>,
    index: Required<Int64Type>,
    release: Required<Int64Type>,
    deadline: Required<Int64Type>,
    woke: Optional<Int64Type>,
    done: Optional<Int64Type>,
    received_ns: Required<Int64Type>,
    verdict: Texts,
    threads_ns: Required<Int64Type>,
    waking_ns: Required<Int64Type>,
    interrupts_ns: Required<Int64Type>,
    host_ns: Required<Int64Type>,
    blocked_ns: Required<Int64Type>,
    away_ns: Required<Int64Type>,
    unknown_ns: Required<Int64Type>,
}

/// The verdicts by their names.
const VERDICTS: [(Verdict, &str); 4] = [
    (Verdict::Hit, "hit"),
    (Verdict::Late, "late"),
    (Verdict::Unfinished, "unfinished"),
    (Verdict::Skipped, "skipped"),
];

fn signed(nanos: Nanos) -> i64 {
    nanos.0.cast_signed()
}

impl Rows for JobRows {
    type Row = StoredJob;

    const KIND: &'static str = "jobs";

    const SCHEMA: &'static str = "message jobs {
        REQUIRED INT32 thread (INTEGER(16, false));
        REQUIRED INT64 index (INTEGER(64, false));
        REQUIRED INT64 release (INTEGER(64, false));
        REQUIRED INT64 deadline (INTEGER(64, false));
        OPTIONAL INT64 woke (INTEGER(64, false));
        OPTIONAL INT64 done (INTEGER(64, false));
        REQUIRED INT64 received_ns (INTEGER(64, false));
        REQUIRED BYTE_ARRAY verdict (STRING);
        REQUIRED INT64 threads_ns (INTEGER(64, false));
        REQUIRED INT64 waking_ns (INTEGER(64, false));
        REQUIRED INT64 interrupts_ns (INTEGER(64, false));
        REQUIRED INT64 host_ns (INTEGER(64, false));
        REQUIRED INT64 blocked_ns (INTEGER(64, false));
        REQUIRED INT64 away_ns (INTEGER(64, false));
        REQUIRED INT64 unknown_ns (INTEGER(64, false));
    }";

    const RISING: &'static [&'static str] = &["release", "deadline"];

    fn push(&mut self, job: &StoredJob) {
        self.thread.push(i32::from(job.thread));
        self.index.push(job.index.cast_signed());
        self.release.push(job.release.0.cast_signed());
        self.deadline.push(job.deadline.0.cast_signed());
        self.woke.push(job.woke.map(|at| at.0.cast_signed()));
        self.done.push(job.done.map(|at| at.0.cast_signed()));
        self.received_ns.push(signed(job.received));
        let name = VERDICTS.iter().find(|(verdict, _)| *verdict == job.verdict);
        self.verdict.push(name.map(|(_, name)| *name));
        self.threads_ns.push(signed(job.threads));
        self.waking_ns.push(signed(job.waking));
        self.interrupts_ns.push(signed(job.interrupts));
        self.host_ns.push(signed(job.host));
        self.blocked_ns.push(signed(job.blocked));
        self.away_ns.push(signed(job.away));
        self.unknown_ns.push(signed(job.unknown));
    }

    fn len(&self) -> usize {
        self.thread.values.len()
    }

    fn span(job: &StoredJob) -> (Ticks, Ticks) {
        (job.release, job.done.unwrap_or(job.deadline).max(job.deadline))
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.index.clear();
        self.release.clear();
        self.deadline.clear();
        self.woke.clear();
        self.done.clear();
        self.received_ns.clear();
        self.verdict.clear();
        self.threads_ns.clear();
        self.waking_ns.clear();
        self.interrupts_ns.clear();
        self.host_ns.clear();
        self.blocked_ns.clear();
        self.away_ns.clear();
        self.unknown_ns.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.thread.write(group)?;
        self.index.write(group)?;
        self.release.write(group)?;
        self.deadline.write(group)?;
        self.woke.write(group)?;
        self.done.write(group)?;
        self.received_ns.write(group)?;
        self.verdict.write(group, Presence::Always)?;
        self.threads_ns.write(group)?;
        self.waking_ns.write(group)?;
        self.interrupts_ns.write(group)?;
        self.host_ns.write(group)?;
        self.blocked_ns.write(group)?;
        self.away_ns.write(group)?;
        self.unknown_ns.write(group)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<StoredJob>> {
        let thread = Required::<Int32Type>::read(columns)?.values;
        let index = Required::<Int64Type>::read(columns)?.values;
        let release = Required::<Int64Type>::read(columns)?.values;
        let deadline = Required::<Int64Type>::read(columns)?.values;
        let woke = Optional::<Int64Type>::read(columns)?;
        let done = Optional::<Int64Type>::read(columns)?;
        let received = Required::<Int64Type>::read(columns)?.values;
        let verdict = Texts::read(columns, Presence::Always)?;
        let mut taken = Vec::new();
        for _ in 0..7 {
            taken.push(Required::<Int64Type>::read(columns)?.values);
        }
        let ticks = |value: i64| Ticks(value.cast_unsigned());
        let nanos = |value: i64| Nanos(value.cast_unsigned());
        (0..columns.rows())
            .map(|row| {
                let named = verdict[row].as_ref().map(text).transpose()?;
                let named = VERDICTS.iter().find(|(_, name)| Some(*name) == named);
                Ok(StoredJob {
                    thread: u16::try_from(thread[row]).map_err(|_| bad_value("thread"))?,
                    index: index[row].cast_unsigned(),
                    release: ticks(release[row]),
                    deadline: ticks(deadline[row]),
                    woke: woke[row].map(ticks),
                    done: done[row].map(ticks),
                    received: nanos(received[row]),
                    verdict: named
                        .map(|(verdict, _)| *verdict)
                        .ok_or_else(|| bad_value("verdict"))?,
                    threads: nanos(taken[0][row]),
                    waking: nanos(taken[1][row]),
                    interrupts: nanos(taken[2][row]),
                    host: nanos(taken[3][row]),
                    blocked: nanos(taken[4][row]),
                    away: nanos(taken[5][row]),
                    unknown: nanos(taken[6][row]),
                })
            })
            .collect()
    }
}
