//! What can be wrong with a kernel's trace texts and pages.

/// A text or a page of the kernel's trace that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// `events/header_page` lacks a field without which pages cannot be read.
    #[error(
        "cannot read the page layout: events/header_page has no field `{field}`; report it with \
         that file and the kernel's version"
    )]
    LayoutLacks {
        /// The field.
        field: &'static str,
    },
    /// `events/header_page` describes a page that no kernel writes.
    #[error(
        "cannot use the page layout: in events/header_page the field `{field}` is at offset \
         {offset} with size {size}, but {why}; report it with that file and the kernel's version"
    )]
    LayoutImpossible {
        /// The field.
        field: &'static str,
        /// Its offset in the page.
        offset: usize,
        /// Its size.
        size: usize,
        /// What it should have been.
        why: &'static str,
    },
    /// A format text is not what the kernel writes.
    #[error(
        "cannot read the event format: {why} in line {line}; give the unchanged text of \
         events/SYSTEM/EVENT/format"
    )]
    FormatMalformed {
        /// Line, from 1. One past the last where something is missing.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A format text is longer than any that a kernel writes.
    #[error(
        "cannot read the event format: it has {bytes} bytes and the most is {limit}; give the \
         text of events/SYSTEM/EVENT/format"
    )]
    FormatTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An event lacks a field that its meaning needs.
    #[error(
        "cannot decode {event}: this kernel's format has no field `{field}`; leave the event off"
    )]
    FieldMissing {
        /// The event.
        event: String,
        /// The field.
        field: &'static str,
    },
    /// A field has a type or a place that cannot be read.
    #[error(
        "cannot decode {event}: field `{field}` {why} in this kernel's format; leave the event off"
    )]
    FieldUnfit {
        /// The event.
        event: String,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The event is not one that whylate gives a meaning to.
    #[error("cannot decode {system}:{event}: it is not an event that whylate knows; leave it off")]
    EventNotKnown {
        /// The event's system.
        system: String,
        /// The event.
        event: String,
    },
    /// The fields that all events share lie elsewhere than in the events registered before.
    #[error(
        "cannot decode {event}: its common fields lie elsewhere than those of the events \
         registered before; all formats must come from one kernel"
    )]
    CommonFieldsMoved {
        /// The event.
        event: String,
    },
    /// Another event was registered under the same number.
    #[error(
        "cannot decode {event}: its number {id} is already that of another event; all formats \
         must come from one kernel, read in one go"
    )]
    NumberTaken {
        /// The event.
        event: String,
        /// The number.
        id: u16,
    },
    /// A page ends before the place that its own header names.
    #[error(
        "trace page truncated: it has {have} bytes and its header asks for {need}; read whole \
         sub-buffers from trace_pipe_raw"
    )]
    PageTruncated {
        /// Bytes that were there.
        have: usize,
        /// Bytes that its header and its records ask for.
        need: usize,
    },
    /// A page holds something that no kernel writes.
    #[error(
        "trace page damaged at byte {offset}: {why}; what follows on this page is lost, count it \
         as lost events"
    )]
    PageDamaged {
        /// Where, from the start of the page.
        offset: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A record is too short for its own format, or points outside itself.
    #[error(
        "trace record at byte {offset} of a page does not fit the format of its event, number \
         {id}; the format must come from the kernel and the boot that wrote the page"
    )]
    RecordUnfit {
        /// Where, from the start of the page.
        offset: usize,
        /// The number of its event.
        id: u16,
    },
}
