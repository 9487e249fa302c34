//! Builds pages and records as the kernel would, from formats rather than from the decoder.

use crate::format::{EventFormat, Storage};
use crate::page::PageLayout;
use crate::{Decoder, PageSummary, TraceError};
use whylate_model::CpuId;
use whylate_model::event::Event;

/// The layout of a 64-bit kernel with pages of 4 KiB.
pub(super) const HEADER_PAGE: &str = include_str!("../../tests/data/events/header_page");
/// The CPU that all hand-built pages come from.
pub(super) const CPU: CpuId = CpuId(3);

const HEADER_BYTES: usize = 16;
const PAGE_BYTES: usize = 4096;

/// The recorded format of an event.
macro_rules! recorded_format {
    ($name:literal) => {
        crate::format::EventFormat::parse(include_str!(concat!(
            "../../tests/data/events/",
            $name,
            "/format"
        )))
        .unwrap()
    };
}
pub(super) use recorded_format;

pub(super) fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}

/// A decoder that knows one event.
pub(super) fn decoder(system: &str, format: &EventFormat) -> Decoder {
    let mut decoder = Decoder::new(layout());
    decoder.register(system, format).unwrap();
    decoder
}

pub(super) fn decode(
    decoder: &Decoder,
    page: &[u8],
) -> (Result<PageSummary, TraceError>, Vec<Event>) {
    let mut events = Vec::new();
    let result = decoder.decode(page, CPU, &mut events);
    (result, events)
}

/// A page that is being written.
#[derive(Debug, Clone)]
pub(super) struct PageBuilder {
    stamp: u64,
    data: Vec<u8>,
    flags: i32,
    behind: Vec<u8>,
}

impl PageBuilder {
    pub(super) fn new(stamp: u64) -> Self {
        Self { stamp, data: Vec::new(), flags: 0, behind: Vec::new() }
    }

    /// A record in the short form where it fits, as the kernel chooses.
    pub(super) fn event(mut self, delta: u32, record: &[u8]) -> Self {
        let words = record.len().div_ceil(4);
        if !(1..=28).contains(&words) {
            return self.long_event(delta, record);
        }
        self.head(words as u32, delta);
        self.put(record);
        self
    }

    /// A record in the long form, with its length in a word of its own.
    pub(super) fn long_event(mut self, delta: u32, record: &[u8]) -> Self {
        self.head(0, delta);
        self.word(record.len().next_multiple_of(4) as u32 + 4);
        self.put(record);
        self
    }

    pub(super) fn time_extend(mut self, delta: u64) -> Self {
        self.head(30, (delta & 0x7ff_ffff) as u32);
        self.word((delta >> 27) as u32);
        self
    }

    pub(super) fn time_stamp(mut self, stamp: u64) -> Self {
        self.head(31, (stamp & 0x7ff_ffff) as u32);
        self.word((stamp >> 27) as u32);
        self
    }

    /// A record of `bytes` data that was written and taken back.
    pub(super) fn discarded(mut self, delta: u32, bytes: usize) -> Self {
        self.head(29, delta);
        self.word(bytes as u32);
        self.data.resize(self.data.len() + bytes - 4, 0xee);
        self
    }

    /// The mark that nothing follows.
    pub(super) fn end(mut self) -> Self {
        self.head(29, 0);
        self
    }

    /// Any bytes in place of a record.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.data.extend_from_slice(bytes);
        self
    }

    pub(super) fn missed(mut self) -> Self {
        self.flags = i32::MIN;
        self
    }

    pub(super) fn missed_count(mut self, count: u64) -> Self {
        self.flags = i32::MIN + (1 << 30);
        self.behind = count.to_le_bytes().to_vec();
        self
    }

    /// Up to the last byte that means something.
    pub(super) fn short(&self) -> Vec<u8> {
        let mut page = self.stamp.to_le_bytes().to_vec();
        // The kernel adds the flags as an `int`, which is negative.
        let commit = self.data.len() as i64 + i64::from(self.flags);
        page.extend_from_slice(&commit.to_le_bytes());
        assert_eq!(page.len(), HEADER_BYTES);
        page.extend_from_slice(&self.data);
        page.extend_from_slice(&self.behind);
        page
    }

    /// As it comes from the kernel.
    pub(super) fn page(&self) -> Vec<u8> {
        let mut page = self.short();
        assert!(page.len() <= PAGE_BYTES, "{} bytes are more than a page", page.len());
        page.resize(PAGE_BYTES, 0);
        page
    }

    fn head(&mut self, kind: u32, delta: u32) {
        assert!(delta < 1 << 27);
        self.word(delta << 5 | kind);
    }

    fn word(&mut self, word: u32) {
        self.data.extend_from_slice(&word.to_le_bytes());
    }

    fn put(&mut self, record: &[u8]) {
        self.data.extend_from_slice(record);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
    }
}

/// A value of a field.
pub(super) enum Value<'a> {
    Number(i64),
    Bytes(&'a [u8]),
}

/// A record of `format` by thread 77 with these values; all other fields are zero.
pub(super) fn record(format: &EventFormat, values: &[(&str, Value<'_>)]) -> Vec<u8> {
    let length = format.fields.iter().map(|field| field.offset + field.size).max().unwrap();
    let mut record = vec![0; (length as usize).next_multiple_of(4)];
    let common =
        [("common_type", Value::Number(format.id.into())), ("common_pid", Value::Number(77))];
    for (name, value) in common.iter().chain(values) {
        let field = format.field(name).unwrap();
        let (offset, size) = (field.offset as usize, field.size as usize);
        match value {
            Value::Number(number) => {
                record[offset..offset + size].copy_from_slice(&number.to_le_bytes()[..size]);
            }
            Value::Bytes(bytes) if field.storage == Storage::Array => {
                record[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Value::Bytes(bytes) => {
                let from = if field.storage == Storage::RelLoc { offset + size } else { 0 };
                let pointer = (bytes.len() as u32) << 16 | (record.len() - from) as u32;
                record[offset..offset + size].copy_from_slice(&pointer.to_le_bytes());
                record.extend_from_slice(bytes);
                record.resize(record.len().next_multiple_of(4), 0);
            }
        }
    }
    record
}
