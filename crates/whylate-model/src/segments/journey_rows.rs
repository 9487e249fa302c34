//! Points of requests as rows: the layout of `journeys-0001.parquet`.

use std::io::Write;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;

use super::column::{Columns, Group, Optional, Presence, Required, Texts, text};
use super::rows::{Rows, bad_value};
use crate::breakdown::{Point, Source, StoredJourney};
use crate::units::Ticks;

#[derive(Default)]
pub(super) struct JourneyRows {
    flow: Required<Int32Type>,
    number: Required<Int64Type>,
    points: [Optional<Int64Type>; Point::COUNT],
    sources: Texts,
}

/// The letter of each source.
const LETTERS: [(Source, char); 7] = [
    (Source::Own, 'o'),
    (Source::Told, 't'),
    (Source::Software, 's'),
    (Source::Hardware, 'h'),
    (Source::Trace, 'k'),
    (Source::Tap, 'p'),
    (Source::Metadata, 'm'),
];

fn letter(source: Source) -> char {
    LETTERS.iter().find(|(of, _)| *of == source).map_or('?', |(_, letter)| *letter)
}

fn source(letter: char) -> Option<Source> {
    LETTERS.iter().find(|(_, of)| *of == letter).map(|(source, _)| *source)
}

impl Rows for JourneyRows {
    type Row = StoredJourney;

    const KIND: &'static str = "journeys";

    const SCHEMA: &'static str = "message journeys {
        REQUIRED INT32 flow (INTEGER(16, false));
        REQUIRED INT64 number (INTEGER(64, false));
        OPTIONAL INT64 request_intended (INTEGER(64, false));
        OPTIONAL INT64 request_sent (INTEGER(64, false));
        OPTIONAL INT64 request_queued (INTEGER(64, false));
        OPTIONAL INT64 request_driver (INTEGER(64, false));
        OPTIONAL INT64 request_wire_out (INTEGER(64, false));
        OPTIONAL INT64 request_tap (INTEGER(64, false));
        OPTIONAL INT64 request_wire_in (INTEGER(64, false));
        OPTIONAL INT64 request_arrived (INTEGER(64, false));
        OPTIONAL INT64 request_delivered (INTEGER(64, false));
        OPTIONAL INT64 request_woken (INTEGER(64, false));
        OPTIONAL INT64 request_running (INTEGER(64, false));
        OPTIONAL INT64 request_read (INTEGER(64, false));
        OPTIONAL INT64 reply_intended (INTEGER(64, false));
        OPTIONAL INT64 reply_sent (INTEGER(64, false));
        OPTIONAL INT64 reply_queued (INTEGER(64, false));
        OPTIONAL INT64 reply_driver (INTEGER(64, false));
        OPTIONAL INT64 reply_wire_out (INTEGER(64, false));
        OPTIONAL INT64 reply_tap (INTEGER(64, false));
        OPTIONAL INT64 reply_wire_in (INTEGER(64, false));
        OPTIONAL INT64 reply_arrived (INTEGER(64, false));
        OPTIONAL INT64 reply_delivered (INTEGER(64, false));
        OPTIONAL INT64 reply_woken (INTEGER(64, false));
        OPTIONAL INT64 reply_running (INTEGER(64, false));
        OPTIONAL INT64 reply_read (INTEGER(64, false));
        REQUIRED BYTE_ARRAY sources (STRING);
    }";

    const RISING: &'static [&'static str] = &[
        "number",
        "request_intended",
        "request_sent",
        "request_queued",
        "request_driver",
        "request_wire_out",
        "request_tap",
        "request_wire_in",
        "request_arrived",
        "request_delivered",
        "request_woken",
        "request_running",
        "request_read",
        "reply_intended",
        "reply_sent",
        "reply_queued",
        "reply_driver",
        "reply_wire_out",
        "reply_tap",
        "reply_wire_in",
        "reply_arrived",
        "reply_delivered",
        "reply_woken",
        "reply_running",
        "reply_read",
    ];

    fn push(&mut self, journey: &StoredJourney) {
        self.flow.push(i32::from(journey.flow));
        self.number.push(journey.number.cast_signed());
        for (column, passed) in self.points.iter_mut().zip(&journey.passed) {
            column.push(passed.map(|(at, _)| at.0.cast_signed()));
        }
        let letters = journey.passed.iter().flatten().map(|(_, source)| letter(*source));
        self.sources.push(Some(&letters.collect::<String>()));
    }

    fn len(&self) -> usize {
        self.flow.values.len()
    }

    fn span(journey: &StoredJourney) -> (Ticks, Ticks) {
        let known = || journey.passed.iter().flatten().map(|(at, _)| *at);
        (known().min().unwrap_or_default(), known().max().unwrap_or_default())
    }

    fn clear(&mut self) {
        self.flow.clear();
        self.number.clear();
        self.points.iter_mut().for_each(Optional::clear);
        self.sources.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut Group<'_, W>) -> Result<()> {
        self.flow.write(group)?;
        self.number.write(group)?;
        for column in &self.points {
            column.write(group)?;
        }
        self.sources.write(group, Presence::Always)
    }

    fn read(columns: &mut Columns<'_>) -> Result<Vec<StoredJourney>> {
        let flow = Required::<Int32Type>::read(columns)?.values;
        let number = Required::<Int64Type>::read(columns)?.values;
        let mut points = Vec::with_capacity(Point::COUNT);
        for _ in 0..Point::COUNT {
            points.push(Optional::<Int64Type>::read(columns)?);
        }
        let sources = Texts::read(columns, Presence::Always)?;
        (0..columns.rows())
            .map(|row| {
                let letters = sources[row].as_ref().map(text).transpose()?.unwrap_or_default();
                let mut letters = letters.chars();
                let mut passed = [None; Point::COUNT];
                for (place, column) in passed.iter_mut().zip(&points) {
                    let Some(at) = column[row] else { continue };
                    let by = letters.next().and_then(source).ok_or_else(|| bad_value("sources"))?;
                    *place = Some((Ticks(at.cast_unsigned()), by));
                }
                if letters.next().is_some() {
                    return Err(bad_value("sources"));
                }
                Ok(StoredJourney {
                    flow: u16::try_from(flow[row]).map_err(|_| bad_value("flow"))?,
                    number: number[row].cast_unsigned(),
                    passed,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_letter_and_every_point_a_column() {
        for of in Source::ALL {
            assert_eq!(source(letter(of)), Some(of));
        }
        assert_eq!(source('?'), None);
        let columns = (0..Point::COUNT).filter_map(Point::at).map(|point| {
            format!("{}_{}", point.leg.word(), point.station.word().replace(' ', "_"))
        });
        let rising: Vec<&str> = JourneyRows::RISING[1..].to_vec();
        assert_eq!(columns.collect::<Vec<_>>(), rising);
        for column in rising {
            assert!(
                JourneyRows::SCHEMA.contains(&format!("OPTIONAL INT64 {column} (")),
                "{column}"
            );
        }
    }
}
