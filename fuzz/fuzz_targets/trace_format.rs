//! Any text as `events/header_page` and as an event's format, and any bytes as a page under both.
//!
//! The input is a header page, a format and a page, with a zero byte between them. Good seeds: the
//! files below `crates/whylate-trace/tests/data/events`, joined so.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_model::CpuId;
use whylate_trace::Decoder;
use whylate_trace::format::EventFormat;
use whylate_trace::page::PageLayout;

const HEADER_PAGE: &str = include_str!("../../crates/whylate-trace/tests/data/events/header_page");
const SYSTEMS: &[&str] =
    &["irq_vectors", "irq", "sched", "exceptions", "nmi", "signal", "workqueue", "ipi", "csd"];

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let layout = PageLayout::parse(&text())
        .or_else(|_| PageLayout::parse(HEADER_PAGE))
        .expect("invariant: a recorded text");
    let Ok(format) = EventFormat::parse(&text()) else { return };
    let page = parts.next().unwrap_or_default();
    for system in SYSTEMS {
        let mut decoder = Decoder::new(layout);
        if decoder.register(system, &format).is_err() {
            continue;
        }
        let mut events = Vec::new();
        let _ = decoder.decode(page, CpuId(0), &mut events);
        assert!(events.len() <= page.len() / 8);
    }
});
