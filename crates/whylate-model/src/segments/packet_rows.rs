//! Requests as rows: the layout of `packets-0001.parquet`.

use std::io::Write;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::packet::{Outcome, StoredPacket};
use crate::units::{Nanos, Ticks};

#[derive(Default)]
pub(super) struct PacketRows {
    flow: Required<Int32Type>,
    number: Optional<Int64Type>,
    intended: Optional<Int64Type>,
    sent: Optional<Int64Type>,
    at: Required<Int64Type>,
    outcome: Texts,
    service: Optional<Int64Type>,
    response: Optional<Int64Type>,
    lateness: Optional<Int64Type>,
}

/// The outcomes by their names.
const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Answered, "answered"),
    (Outcome::Unanswered, "unanswered"),
    (Outcome::Refused, "refused"),
    (Outcome::NeverSent, "never_sent"),
    (Outcome::OneWay, "one_way"),
];

fn tick(at: Option<Ticks>) -> Option<i64> {
    at.map(|at| at.0.cast_signed())
}

fn time(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| time.0.cast_signed())
}

impl Rows for PacketRows {
    type Row = StoredPacket;

    const KIND: &'static str = "packets";

    const SCHEMA: &'static str = "message packets {
        REQUIRED INT32 flow (INTEGER(16, false));
        OPTIONAL INT64 number (INTEGER(64, false));
        OPTIONAL INT64 intended (INTEGER(64, false));
        OPTIONAL INT64 sent (INTEGER(64, false));
        REQUIRED INT64 at (INTEGER(64, false));
        REQUIRED BYTE_ARRAY outcome (STRING);
        OPTIONAL INT64 service_ns (INTEGER(64, false));
        OPTIONAL INT64 response_ns (INTEGER(64, false));
        OPTIONAL INT64 lateness_ns (INTEGER(64, false));
    }";

    const RISING: &'static [&'static str] = &["number", "intended", "sent", "at"];

    fn push(&mut self, packet: &StoredPacket) {
        self.flow.push(i32::from(packet.flow));
        self.number.push(packet.number.map(u64::cast_signed));
        self.intended.push(tick(packet.intended));
        self.sent.push(tick(packet.sent));
        self.at.push(packet.at.0.cast_signed());
        let name = OUTCOMES.iter().find(|(outcome, _)| *outcome == packet.outcome);
        self.outcome.push(name.map(|(_, name)| *name));
        self.service.push(time(packet.service));
        self.response.push(time(packet.response));
        self.lateness.push(time(packet.lateness));
    }

    fn len(&self) -> usize {
        self.flow.values.len()
    }

    fn span(packet: &StoredPacket) -> (Ticks, Ticks) {
        let first = packet.sent.or(packet.intended).unwrap_or(packet.at);
        (first.min(packet.at), packet.at)
    }

    fn clear(&mut self) {
        self.flow.clear();
        self.number.clear();
        self.intended.clear();
        self.sent.clear();
        self.at.clear();
        self.outcome.clear();
        self.service.clear();
        self.response.clear();
        self.lateness.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.flow.write(group)?;
        self.number.write(group)?;
        self.intended.write(group)?;
        self.sent.write(group)?;
        self.at.write(group)?;
        self.outcome.write(group, Presence::Always)?;
        self.service.write(group)?;
        self.response.write(group)?;
        self.lateness.write(group)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<StoredPacket>> {
        let flow = Required::<Int32Type>::read(columns)?.values;
        let number = Optional::<Int64Type>::read(columns)?;
        let intended = Optional::<Int64Type>::read(columns)?;
        let sent = Optional::<Int64Type>::read(columns)?;
        let at = Required::<Int64Type>::read(columns)?.values;
        let outcome = Texts::read(columns, Presence::Always)?;
        let service = Optional::<Int64Type>::read(columns)?;
        let response = Optional::<Int64Type>::read(columns)?;
        let lateness = Optional::<Int64Type>::read(columns)?;
        let ticks = |value: i64| Ticks(value.cast_unsigned());
        let nanos = |value: i64| Nanos(value.cast_unsigned());
        (0..columns.rows())
            .map(|row| {
                let named = outcome[row].as_ref().map(text).transpose()?;
                let named = OUTCOMES.iter().find(|(_, name)| Some(*name) == named);
                Ok(StoredPacket {
                    flow: u16::try_from(flow[row]).map_err(|_| bad_value("flow"))?,
                    number: number[row].map(i64::cast_unsigned),
                    intended: intended[row].map(ticks),
                    sent: sent[row].map(ticks),
                    at: ticks(at[row]),
                    outcome: named
                        .map(|(outcome, _)| *outcome)
                        .ok_or_else(|| bad_value("outcome"))?,
                    service: service[row].map(nanos),
                    response: response[row].map(nanos),
                    lateness: lateness[row].map(nanos),
                })
            })
            .collect()
    }
}
