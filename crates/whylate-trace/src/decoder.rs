//! From pages to events, with all places looked up beforehand.

use whylate_model::event::Event;
use whylate_model::{CpuId, Pid, Ticks};

use crate::error::TraceError;
use crate::field::Number;
use crate::format::EventFormat;
use crate::page::{Missed, PageLayout, Records};
use crate::shape::Shape;

/// Decodes the pages of one kernel: its layout, and the formats of the events registered.
#[derive(Debug, Clone)]
pub struct Decoder {
    layout: PageLayout,
    common: Option<Common>,
    shapes: Vec<Shape>,
    /// At the number of an event: 1 + the place of its shape, or 0.
    by_id: Vec<u32>,
}

/// The fields that all events share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Common {
    id: Number,
    pid: Number,
}

/// What a page held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageSummary {
    /// Events decoded.
    pub events: usize,
    /// Events lost before this page.
    pub missed: Missed,
    /// Records of events that were not registered.
    pub unknown_events: usize,
    /// Events stamped before the event in front of them, or before their page. A kernel with a
    /// sound clock writes none.
    pub backwards: usize,
}

impl Decoder {
    /// A decoder of pages with this layout, which knows no event yet.
    #[must_use]
    pub fn new(layout: PageLayout) -> Self {
        Self { layout, common: None, shapes: Vec::new(), by_id: Vec::new() }
    }

    /// Bytes of a whole page: read that many at a time from `trace_pipe_raw`.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.layout.page_size()
    }

    /// Decodes the event from now on. On an error nothing has changed.
    pub fn register(&mut self, system: &str, format: &EventFormat) -> Result<(), TraceError> {
        let shape = Shape::of(system, format)?;
        let common = Common {
            id: Number::of(format, "common_type")?,
            pid: Number::of(format, "common_pid")?,
        };
        if self.common.is_some_and(|before| before != common) {
            return Err(TraceError::CommonFieldsMoved { event: format.name.clone() });
        }
        let id = usize::from(format.id);
        if self.by_id.get(id).is_some_and(|place| *place != 0) {
            return Err(TraceError::NumberTaken { event: format.name.clone(), id: format.id });
        }
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        self.shapes.push(shape);
        self.by_id[id] = self.shapes.len() as u32;
        self.common = Some(common);
        Ok(())
    }

    /// Appends the events of one page of the buffer of `cpu` to `out`.
    ///
    /// An error says that the rest of the page is lost; the events before that place were whole
    /// and have been appended.
    pub fn decode(
        &self,
        page: &[u8],
        cpu: CpuId,
        out: &mut Vec<Event>,
    ) -> Result<PageSummary, TraceError> {
        let records = Records::new(&self.layout, page)?;
        let mut summary = PageSummary { missed: records.missed(), ..PageSummary::default() };
        let mut before = records.stamp();
        for record in records {
            let record = record?;
            summary.backwards += usize::from(record.stamp < before);
            before = record.stamp;
            let Some(common) = self.common else {
                summary.unknown_events += 1;
                continue;
            };
            let unfit = |id: u64| TraceError::RecordUnfit { offset: record.offset, id: id as u16 };
            let id = common.id.read(record.data).ok_or_else(|| unfit(0))?;
            let Some(shape) = self.shape(id) else {
                summary.unknown_events += 1;
                continue;
            };
            let pid = common.pid.read_i32(record.data).ok_or_else(|| unfit(id))?;
            let kind = shape.read(record.data).ok_or_else(|| unfit(id))?;
            out.push(Event { ticks: Ticks(record.stamp), cpu, pid: Pid(pid), kind });
            summary.events += 1;
        }
        Ok(summary)
    }

    #[inline]
    fn shape(&self, id: u64) -> Option<&Shape> {
        let place = *self.by_id.get(usize::try_from(id).ok()?)?;
        self.shapes.get((place as usize).checked_sub(1)?)
    }
}
