//! Pages of the kernel's ring buffer: their layout, their header, and the records on them.
//!
//! A page is a stamp, a word that says how many bytes follow (its two top bits say that events were
//! lost before it), and records. A record begins with 32 bits: 5 of type or length, 27 of time since
//! the record before. Layout: the kernel's `include/linux/ring_buffer.h` and the text of
//! `events/header_page` and `events/header_event`.

use crate::error::TraceError;
use crate::format::Field;

/// Events were lost before this page.
const MISSED: u32 = 1 << 31;
/// Their number is stored behind the data.
const MISSED_STORED: u32 = 1 << 30;
/// The most that a sub-buffer can hold: 128 system pages of 64 KiB.
const LARGEST_PAGE: usize = 128 << 16;
/// Bits of time in the first word of a record.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute stamp; the rest is that of the page.
const ABSOLUTE_BITS: u32 = 59;
/// Type of a record that holds nothing.
const PADDING: u32 = 29;
/// Type of a record that only moves the time on.
const TIME_EXTEND: u32 = 30;
/// Type of a record that only sets the time.
const TIME_STAMP: u32 = 31;
/// Bytes of a word of the page.
const WORD: usize = 4;
/// A discarded record has this delta where its own was none.
const NO_DELTA: u32 = 1;

/// How a page is laid out, from the text of `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    stamp_offset: usize,
    commit_offset: usize,
    commit_size: usize,
    data_offset: usize,
    data_size: usize,
}

impl PageLayout {
    /// Reads the text of `events/header_page`.
    pub fn parse(header_page: &str) -> Result<Self, TraceError> {
        let fields: Vec<Field> = header_page
            .lines()
            .filter_map(|line| line.trim().strip_prefix("field:"))
            .filter_map(|line| Field::parse(line).ok())
            .take(16)
            .collect();
        let find = |name| {
            let field = fields.iter().find(|field| field.name == name);
            let field = field.ok_or(TraceError::LayoutLacks { field: name })?;
            Ok((field.offset as usize, field.size as usize))
        };
        let impossible = |field, (offset, size), why| {
            Err(TraceError::LayoutImpossible { field, offset, size, why })
        };
        let (stamp, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        if stamp.1 != 8 {
            return impossible("timestamp", stamp, "a stamp has 8 bytes");
        }
        if !matches!(commit.1, 4 | 8) {
            return impossible("commit", commit, "it has the size of a machine word, 4 or 8 bytes");
        }
        if data.0 < stamp.0 + stamp.1 || data.0 < commit.0 + commit.1 {
            return impossible("data", data, "it begins behind the other fields");
        }
        if data.1 == 0 || data.0 + data.1 > LARGEST_PAGE {
            return impossible("data", data, "a sub-buffer has between 1 and 128 pages");
        }
        Ok(Self {
            stamp_offset: stamp.0,
            commit_offset: commit.0,
            commit_size: commit.1,
            data_offset: data.0,
            data_size: data.1,
        })
    }

    /// Bytes of a whole page, as `trace_pipe_raw` gives it.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.data_offset + self.data_size
    }
}

/// Events that were lost before a page, because the buffer was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// None.
    #[default]
    None,
    /// So many.
    Count(u64),
    /// At least one; the kernel did not say how many.
    Unknown,
}

/// One record with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its stamp, in units of the trace clock.
    pub stamp: u64,
    /// Where its data begin on the page.
    pub offset: usize,
    /// Its data; up to 3 bytes more than were written, for alignment.
    pub data: &'a [u8],
}

/// The records of one page, in the order in which they were written.
///
/// Each step goes on by at least one word, and nothing follows an error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    page: &'a [u8],
    /// Where the next record begins.
    at: usize,
    /// Where the data end that are there.
    end: usize,
    /// Where the data end according to the header.
    committed: usize,
    stamp: u64,
    missed: Missed,
}

impl<'a> Records<'a> {
    /// Reads the header of `page`. A page that ends before the place that its header names gives
    /// the records that are whole, and then an error.
    pub fn new(layout: &PageLayout, page: &'a [u8]) -> Result<Self, TraceError> {
        let truncated = TraceError::PageTruncated { have: page.len(), need: layout.data_offset };
        if page.len() < layout.data_offset {
            return Err(truncated);
        }
        let stamp = unsigned(page, layout.stamp_offset, 8).ok_or(truncated.clone())?;
        let commit = unsigned(page, layout.commit_offset, layout.commit_size).ok_or(truncated)?;
        // The kernel adds the flags as a negative `int`, which sets the upper half of a long too.
        let (upper, word) = ((commit >> 32) as u32, commit as u32);
        let flags = word & (MISSED | MISSED_STORED);
        let length = (word & !flags) as usize;
        if length > LARGEST_PAGE || (upper != 0 && (upper != u32::MAX || word & MISSED == 0)) {
            return Err(TraceError::PageDamaged {
                offset: layout.commit_offset,
                why: "more data than the largest sub-buffer holds",
            });
        }
        let committed = layout.data_offset + length;
        let missed = if flags == 0 {
            Missed::None
        } else if flags & MISSED_STORED == 0 {
            Missed::Unknown
        } else {
            stored_count(page, committed, layout.commit_size)
        };
        let end = committed.min(page.len());
        Ok(Self { page, at: layout.data_offset, end, committed, stamp, missed })
    }

    /// What was lost before this page.
    #[must_use]
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// The stamp that the page or the last record set.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Takes the record at `at`, and gives it back where it has data.
    fn one(&mut self) -> Result<Option<Record<'a>>, TraceError> {
        let start = self.at;
        let first = self.word(start)?;
        let (kind, delta) = (first & 31, first >> (32 - DELTA_BITS));
        match kind {
            PADDING if delta == 0 => {
                // The rest of the page is not used.
                self.finish();
                return Ok(None);
            }
            PADDING => {
                let length = self.word(start + WORD)?;
                self.data(start + WORD, length)?;
                // A record that was written and taken back: the time of the next counts from it.
                if delta != NO_DELTA {
                    self.stamp = self.stamp.wrapping_add(u64::from(delta));
                }
                return Ok(None);
            }
            TIME_EXTEND => {
                let high = u64::from(self.word(start + WORD)?) << DELTA_BITS;
                self.stamp = self.stamp.wrapping_add(high | u64::from(delta));
                self.at = start + 2 * WORD;
                return Ok(None);
            }
            TIME_STAMP => {
                let high = u64::from(self.word(start + WORD)?) << DELTA_BITS;
                self.stamp = absolute(self.stamp, high | u64::from(delta));
                self.at = start + 2 * WORD;
                return Ok(None);
            }
            _ => {}
        }
        let (offset, data) = if kind == 0 {
            let length = self.word(start + WORD)?;
            let data = self.data(start + WORD, length)?;
            (start + 2 * WORD, &data[WORD..])
        } else {
            (start + WORD, self.data(start + WORD, kind * WORD as u32)?)
        };
        self.stamp = self.stamp.wrapping_add(u64::from(delta));
        Ok(Some(Record { stamp: self.stamp, offset, data }))
    }

    /// `length` bytes from `start`, at least one word of them; the next record begins behind.
    fn data(&mut self, start: usize, length: u32) -> Result<&'a [u8], TraceError> {
        let length = length as usize;
        let damaged = |why| TraceError::PageDamaged { offset: start, why };
        if length < WORD || !length.is_multiple_of(WORD) {
            return Err(damaged("a record whose length is no number of words"));
        }
        if length > self.committed - start {
            return Err(damaged("a record that is longer than the rest of the page"));
        }
        let data = self.page.get(start..start + length).ok_or_else(|| self.truncated())?;
        self.at = start + length;
        Ok(data)
    }

    fn word(&self, at: usize) -> Result<u32, TraceError> {
        if self.committed.saturating_sub(at) < WORD {
            let why = "a record that begins in the last bytes of the page";
            return Err(TraceError::PageDamaged { offset: at, why });
        }
        let word = self.page.get(at..at + WORD).and_then(|bytes| bytes.try_into().ok());
        word.map(u32::from_le_bytes).ok_or_else(|| self.truncated())
    }

    fn truncated(&self) -> TraceError {
        TraceError::PageTruncated { have: self.end, need: self.committed }
    }

    fn finish(&mut self) {
        self.at = self.committed;
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.committed {
            match self.one() {
                Ok(None) => {}
                Ok(Some(record)) => return Some(Ok(record)),
                Err(error) => {
                    self.finish();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// The number of lost events, which the kernel puts behind the data in a word of `size` bytes.
fn stored_count(page: &[u8], offset: usize, size: usize) -> Missed {
    match unsigned(page, offset, size) {
        // The word is a signed long in the kernel, and -1 there means that the number is not known.
        Some(count) if count != 0 && count >> (8 * size - 1) == 0 => Missed::Count(count),
        _ => Missed::Unknown,
    }
}

/// The full stamp of which `low` holds the lowest 59 bits, where the one before was `previous`.
///
/// A low part that is behind by more than half its range has wrapped around.
fn absolute(previous: u64, low: u64) -> u64 {
    let range = 1 << ABSOLUTE_BITS;
    let stamp = previous & !(range - 1) | low;
    if previous.saturating_sub(stamp) > range / 2 { stamp.wrapping_add(range) } else { stamp }
}

/// The unsigned number of `size` (at most 8) bytes at `offset`.
fn unsigned(page: &[u8], offset: usize, size: usize) -> Option<u64> {
    let bytes = page.get(offset..offset.checked_add(size)?)?;
    let mut whole = [0; 8];
    whole.get_mut(..size)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}
