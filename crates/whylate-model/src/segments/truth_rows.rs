//! The truth of frames at a delay line as rows: the layout of `truths-0001.parquet`.

use std::io::Write;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::delay::{Fate, Truth};
use crate::units::Ticks;

#[derive(Default)]
pub(super) struct TruthRows {
    direction: Required<Int32Type>,
    ordinal: Required<Int64Type>,
    arrival: Required<Int64Type>,
    due: Required<Int64Type>,
    departure: Optional<Int64Type>,
    bytes: Required<Int32Type>,
    number: Optional<Int64Type>,
    cookie: Optional<Int64Type>,
    fate: Texts,
}

impl Rows for TruthRows {
    type Row = Truth;

    const KIND: &'static str = "truths";

    const SCHEMA: &'static str = "message truths {
        REQUIRED INT32 direction (INTEGER(8, false));
        REQUIRED INT64 ordinal (INTEGER(64, false));
        REQUIRED INT64 arrival (INTEGER(64, false));
        REQUIRED INT64 due (INTEGER(64, false));
        OPTIONAL INT64 departure (INTEGER(64, false));
        REQUIRED INT32 bytes (INTEGER(32, false));
        OPTIONAL INT64 number (INTEGER(64, false));
        OPTIONAL INT64 cookie (INTEGER(64, false));
        REQUIRED BYTE_ARRAY fate (STRING);
    }";

    const RISING: &'static [&'static str] = &["ordinal", "arrival", "due", "departure", "number"];

    fn push(&mut self, truth: &Truth) {
        self.direction.push(i32::from(truth.direction));
        self.ordinal.push(truth.ordinal.cast_signed());
        self.arrival.push(truth.arrival.0.cast_signed());
        self.due.push(truth.due.0.cast_signed());
        self.departure.push(truth.departure.map(|at| at.0.cast_signed()));
        self.bytes.push(truth.bytes.cast_signed());
        self.number.push(truth.number.map(u64::cast_signed));
        self.cookie.push(truth.flow.map(u64::cast_signed));
        self.fate.push(Some(truth.fate.word()));
    }

    fn len(&self) -> usize {
        self.ordinal.values.len()
    }

    fn span(truth: &Truth) -> (Ticks, Ticks) {
        (truth.arrival, truth.departure.unwrap_or(truth.due))
    }

    fn clear(&mut self) {
        self.direction.clear();
        self.ordinal.clear();
        self.arrival.clear();
        self.due.clear();
        self.departure.clear();
        self.bytes.clear();
        self.number.clear();
        self.cookie.clear();
        self.fate.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.direction.write(group)?;
        self.ordinal.write(group)?;
        self.arrival.write(group)?;
        self.due.write(group)?;
        self.departure.write(group)?;
        self.bytes.write(group)?;
        self.number.write(group)?;
        self.cookie.write(group)?;
        self.fate.write(group, Presence::Always)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<Truth>> {
        let direction = Required::<Int32Type>::read(columns)?.values;
        let ordinal = Required::<Int64Type>::read(columns)?.values;
        let arrival = Required::<Int64Type>::read(columns)?.values;
        let due = Required::<Int64Type>::read(columns)?.values;
        let departure = Optional::<Int64Type>::read(columns)?;
        let bytes = Required::<Int32Type>::read(columns)?.values;
        let number = Optional::<Int64Type>::read(columns)?;
        let cookie = Optional::<Int64Type>::read(columns)?;
        let fate = Texts::read(columns, Presence::Always)?;
        let ticks = |value: i64| Ticks(value.cast_unsigned());
        (0..columns.rows())
            .map(|row| {
                let word = fate[row].as_ref().map(text).transpose()?;
                let fate = Fate::ALL.into_iter().find(|fate| Some(fate.word()) == word);
                Ok(Truth {
                    direction: u8::try_from(direction[row]).map_err(|_| bad_value("direction"))?,
                    ordinal: ordinal[row].cast_unsigned(),
                    arrival: ticks(arrival[row]),
                    due: ticks(due[row]),
                    departure: departure[row].map(ticks),
                    bytes: bytes[row].cast_unsigned(),
                    number: number[row].map(i64::cast_unsigned),
                    flow: cookie[row].map(i64::cast_unsigned),
                    fate: fate.ok_or_else(|| bad_value("fate"))?,
                })
            })
            .collect()
    }
}
