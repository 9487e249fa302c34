//! Interruptions of a self-test as rows: the layout of `injections-0001.parquet`.

use std::io::Write;

use parquet::data_type::Int64Type;
use parquet::errors::Result;

use super::column::{Columns, Group, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::injection::Injection;
use crate::units::{Ticks, TicksDelta};

#[derive(Default)]
pub(super) struct InjectionRows {
    kind: Texts,
    since: Required<Int64Type>,
    start: Required<Int64Type>,
    end: Required<Int64Type>,
    asked: Required<Int64Type>,
}

impl Rows for InjectionRows {
    type Row = Injection;

    const KIND: &'static str = "injections";

    const SCHEMA: &'static str = "message injections {
        REQUIRED BYTE_ARRAY kind (STRING);
        REQUIRED INT64 since (INTEGER(64, false));
        REQUIRED INT64 start (INTEGER(64, false));
        REQUIRED INT64 end (INTEGER(64, false));
        REQUIRED INT64 asked (INTEGER(64, false));
    }";

    const RISING: &'static [&'static str] = &["since", "start", "end"];

    fn push(&mut self, injection: &Injection) {
        self.kind.push(Some(&injection.kind));
        self.since.push(injection.since.0.cast_signed());
        self.start.push(injection.start.0.cast_signed());
        self.end.push(injection.end.0.cast_signed());
        self.asked.push(injection.asked.0.cast_signed());
    }

    fn len(&self) -> usize {
        self.since.values.len()
    }

    fn span(injection: &Injection) -> (Ticks, Ticks) {
        (injection.since, injection.end)
    }

    fn clear(&mut self) {
        self.kind.clear();
        self.since.clear();
        self.start.clear();
        self.end.clear();
        self.asked.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.kind.write(group, Presence::Always)?;
        self.since.write(group)?;
        self.start.write(group)?;
        self.end.write(group)?;
        self.asked.write(group)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<Injection>> {
        let kind = Texts::read(columns, Presence::Always)?;
        let since = Required::<Int64Type>::read(columns)?.values;
        let start = Required::<Int64Type>::read(columns)?.values;
        let end = Required::<Int64Type>::read(columns)?.values;
        let asked = Required::<Int64Type>::read(columns)?.values;
        let ticks = |value: i64| Ticks(value.cast_unsigned());
        (0..columns.rows())
            .map(|row| {
                let kind = kind[row].as_ref().map(text).transpose()?;
                Ok(Injection {
                    kind: kind.ok_or_else(|| bad_value("kind"))?.to_owned(),
                    since: ticks(since[row]),
                    start: ticks(start[row]),
                    end: ticks(end[row]),
                    asked: TicksDelta(asked[row].cast_unsigned()),
                })
            })
            .collect()
    }
}
