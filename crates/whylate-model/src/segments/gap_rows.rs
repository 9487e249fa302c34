//! Gaps as rows: the layout of `gaps-0001.parquet`.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Distinct, Group, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use super::{BriefGap, BriefGaps, StoredGap};
use crate::gap::{Evidence, Gap, GapKind, RseqWord};
use crate::units::{CpuId, Ticks};

#[derive(Default)]
pub(super) struct GapRows {
    thread: Required<Int32Type>,
    start: Required<Int64Type>,
    end: Required<Int64Type>,
    resumed: Required<Int64Type>,
    cpu_before: Required<Int32Type>,
    cpu_after: Required<Int32Type>,
    rseq: Texts,
    involuntary_switches: Optional<Int32Type>,
    in_recording: Required<BoolType>,
    cause: Texts,
}

impl Rows for GapRows {
    type Row = StoredGap;

    const KIND: &'static str = "gaps";

    const SCHEMA: &'static str = "message gaps {
        REQUIRED INT32 thread (INTEGER(16, false));
        REQUIRED INT64 start (INTEGER(64, false));
        REQUIRED INT64 end (INTEGER(64, false));
        REQUIRED INT64 resumed (INTEGER(64, false));
        REQUIRED INT32 cpu_before (INTEGER(32, false));
        REQUIRED INT32 cpu_after (INTEGER(32, false));
        REQUIRED BYTE_ARRAY rseq (STRING);
        OPTIONAL INT32 involuntary_switches (INTEGER(32, false));
        REQUIRED BOOLEAN in_recording;
        OPTIONAL BYTE_ARRAY cause (STRING);
    }";

    const RISING: &'static [&'static str] = &["start", "end", "resumed"];

    fn push(&mut self, StoredGap { thread, gap, cause }: &StoredGap) {
        self.thread.push(i32::from(*thread));
        self.cause.push(cause.as_deref());
        self.start.push(gap.start.0.cast_signed());
        self.end.push(gap.end.0.cast_signed());
        self.resumed.push(gap.resumed.0.cast_signed());
        self.cpu_before.push(gap.cpu_before.0.cast_signed());
        self.cpu_after.push(gap.cpu_after.0.cast_signed());
        self.rseq.push(Some(word_name(gap.evidence.rseq)));
        self.involuntary_switches.push(gap.evidence.involuntary_switches.map(u32::cast_signed));
        self.in_recording.push(gap.evidence.in_recording);
    }

    fn len(&self) -> usize {
        self.thread.values.len()
    }

    fn span(StoredGap { gap, .. }: &StoredGap) -> (Ticks, Ticks) {
        (gap.start, gap.end.max(gap.resumed))
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.start.clear();
        self.end.clear();
        self.resumed.clear();
        self.cpu_before.clear();
        self.cpu_after.clear();
        self.rseq.clear();
        self.involuntary_switches.clear();
        self.in_recording.clear();
        self.cause.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.thread.write(group)?;
        self.start.write(group)?;
        self.end.write(group)?;
        self.resumed.write(group)?;
        self.cpu_before.write(group)?;
        self.cpu_after.write(group)?;
        self.rseq.write(group, Presence::Always)?;
        self.involuntary_switches.write(group)?;
        self.in_recording.write(group)?;
        self.cause.write(group, Presence::Sometimes)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<StoredGap>> {
        let thread = Required::<Int32Type>::read(columns)?.values;
        let start = Required::<Int64Type>::read(columns)?.values;
        let end = Required::<Int64Type>::read(columns)?.values;
        let resumed = Required::<Int64Type>::read(columns)?.values;
        let cpu_before = Required::<Int32Type>::read(columns)?.values;
        let cpu_after = Required::<Int32Type>::read(columns)?.values;
        let rseq = Texts::read(columns, Presence::Always)?;
        let involuntary_switches = Optional::<Int32Type>::read(columns)?;
        let in_recording = Required::<BoolType>::read(columns)?.values;
        let cause = Texts::read(columns, Presence::Sometimes)?;
        let mut names = Names::default();
        (0..columns.rows())
            .map(|row| {
                let thread = u16::try_from(thread[row]).map_err(|_| bad_value("thread"))?;
                let gap = Gap {
                    start: Ticks(start[row].cast_unsigned()),
                    end: Ticks(end[row].cast_unsigned()),
                    resumed: Ticks(resumed[row].cast_unsigned()),
                    cpu_before: CpuId(cpu_before[row].cast_unsigned()),
                    cpu_after: CpuId(cpu_after[row].cast_unsigned()),
                    kind: GapKind::Interruption,
                    evidence: Evidence {
                        rseq: word(rseq[row].as_ref().map(text).transpose()?)?,
                        involuntary_switches: involuntary_switches[row].map(i32::cast_unsigned),
                        in_recording: in_recording[row],
                    },
                };
                let cause = cause[row].as_ref().map(|name| names.shared(name)).transpose()?;
                Ok(StoredGap { thread, gap, cause })
            })
            .collect()
    }
}

impl GapRows {
    /// Reads the columns alone that a timeline is made of.
    pub(super) fn read_brief(columns: &mut Columns<'_>) -> Result<BriefGaps> {
        let thread = Required::<Int32Type>::read(columns)?.values;
        let start = Required::<Int64Type>::read(columns)?.values;
        let end = Required::<Int64Type>::read(columns)?.values;
        let [resumed, cpu_after, rseq, involuntary_switches, in_recording] = [1; 5];
        columns.skip(resumed);
        let cpu_before = Required::<Int32Type>::read(columns)?.values;
        columns.skip(cpu_after + rseq + involuntary_switches + in_recording);
        let Distinct { texts, rows } = Distinct::read(columns)?;
        let times = start
            .iter()
            .zip(&end)
            .map(|(start, end)| (Ticks(start.cast_unsigned()), Ticks(end.cast_unsigned())));
        let places = thread.iter().zip(&cpu_before);
        let gaps = times.zip(places).zip(rows).map(|(((start, end), (thread, cpu)), cause)| {
            let thread = u16::try_from(*thread).map_err(|_| bad_value("thread"))?;
            Ok(BriefGap { thread, start, end, cpu: CpuId(cpu.cast_unsigned()), cause })
        });
        Ok(BriefGaps { causes: texts, gaps: gaps.collect::<Result<_>>()? })
    }
}

/// The few names that the many gaps of a segment share.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &ByteArray) -> Result<Arc<str>> {
        let name = text(name)?;
        if let Some(known) = self.0.get(name) {
            return Ok(Arc::clone(known));
        }
        let shared: Arc<str> = name.into();
        self.0.insert(Arc::clone(&shared));
        Ok(shared)
    }
}

fn word_name(word: RseqWord) -> &'static str {
    match word {
        RseqWord::Unarmed => "unarmed",
        RseqWord::Set => "set",
        RseqWord::Cleared => "cleared",
    }
}

fn word(name: Option<&str>) -> Result<RseqWord> {
    match name {
        Some("unarmed") => Ok(RseqWord::Unarmed),
        Some("set") => Ok(RseqWord::Set),
        Some("cleared") => Ok(RseqWord::Cleared),
        _ => Err(bad_value("rseq")),
    }
}
