//! Bytes that no kernel wrote: never a panic, never an endless loop, never an event made of nothing.

use crate::format::EventFormat;
use crate::page::{PageLayout, Records};
use crate::{Decoder, PageSummary};
use proptest::prelude::*;
use whylate_model::event::Event;

use super::builder::{CPU, HEADER_PAGE, layout};
use super::recorded::{PAGES, decoder};

/// Decodes, and checks what holds for any bytes.
fn check(decoder: &Decoder, page: &[u8]) -> Result<(), TestCaseError> {
    let mut events = Vec::new();
    let result = decoder.decode(page, CPU, &mut events);
    // A record takes 8 bytes at least.
    prop_assert!(events.len() <= page.len() / 8);
    if let Ok(summary) = result {
        prop_assert_eq!(summary.events, events.len());
        if summary.unknown_events == 0 {
            let first = Records::new(&layout(), page).unwrap().stamp();
            prop_assert_eq!(summary.backwards, steps_back(first, &events));
        }
    }
    if let Ok(records) = Records::new(&layout(), page) {
        let (good, bad): (Vec<_>, Vec<_>) = records.partition(Result::is_ok);
        prop_assert!(good.len() <= page.len() / 8);
        prop_assert!(bad.len() <= 1, "nothing follows an error");
        let mut end = 16;
        for record in good.into_iter().flatten() {
            prop_assert!(record.offset > end && record.offset + record.data.len() <= page.len());
            end = record.offset + record.data.len() - 1;
        }
    }
    Ok(())
}

fn steps_back(first: u64, events: &[Event]) -> usize {
    let stamps = events.iter().map(|event| event.ticks.0);
    std::iter::once(first).chain(stamps.clone()).zip(stamps).filter(|(a, b)| b < a).count()
}

/// A header that makes the rest of a page be looked at.
fn with_header(stamp: u64, committed: u16, data: &[u8]) -> Vec<u8> {
    let committed = usize::from(committed).min(data.len() + 8) as u64;
    [&stamp.to_le_bytes(), &committed.to_le_bytes(), data].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_a_page_or_an_error(page in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&decoder(), &page)?;
    }

    #[test]
    fn any_records_are_read_or_an_error(
        stamp: u64,
        committed: u16,
        data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        check(&decoder(), &with_header(stamp, committed, &data))?;
    }

    #[test]
    fn any_mix_of_small_words_is_read_or_an_error(
        words in prop::collection::vec(prop_oneof![0_u32..64, any::<u32>()], 0..150),
    ) {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        check(&decoder(), &with_header(1, u16::MAX, &data))?;
    }

    #[test]
    fn a_recorded_page_with_changed_bytes_is_read_or_an_error(
        which in 0..PAGES.len(),
        changes in prop::collection::vec((0_usize..4096, any::<u8>()), 1..8),
        length in 0_usize..=4096,
    ) {
        let mut page = PAGES[which].bytes.to_vec();
        for (at, byte) in changes {
            page[at] = byte;
        }
        check(&decoder(), &page)?;
        check(&decoder(), &page[..length])?;
    }

    #[test]
    fn any_text_is_a_format_or_an_error(text in "\\PC*") {
        let _ = EventFormat::parse(&text);
        let _ = PageLayout::parse(&text);
    }

    #[test]
    fn any_lines_of_a_format_are_read_or_an_error(
        name in "sched_switch|irq_handler_entry|ipi_send_cpumask|\\PC{0,9}",
        lines in prop::collection::vec(
            "\tfield:(__data_loc |__rel_loc |)(int|char\\[\\]|long) (comm|name|cpumask|common_type|common_pid|irq|[a-z]{0,5})(\\[[0-9]{0,3}\\]|);\toffset:[0-9]{1,7};\tsize:[0-9]{1,7};\tsigned:[01];",
            0..12,
        ),
        page in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let text = format!("name: {name}\nID: 1\nformat:\n{}\n\nprint fmt: \"\"", lines.join("\n"));
        let Ok(format) = EventFormat::parse(&text) else { return Ok(()) };
        prop_assert!(format.fields.len() <= lines.len());
        let mut decoder = Decoder::new(layout());
        for system in ["sched", "irq", "ipi"] {
            let _ = decoder.register(system, &format);
        }
        check(&decoder, &with_header(0, u16::MAX, &page))?;
    }

    #[test]
    fn any_layout_reads_any_page_or_is_an_error(
        offsets in prop::array::uniform3(0_u32..64),
        sizes in prop::array::uniform3(0_u32..200),
        page in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let field = |name: &str, place: usize| {
            format!("\tfield: u64 {name};\toffset:{};\tsize:{};\tsigned:0;\n", offsets[place], sizes[place])
        };
        let text = field("timestamp", 0) + &field("commit", 1) + &field("data", 2);
        if let Ok(layout) = PageLayout::parse(&text) {
            let mut events = Vec::new();
            let _ = Decoder::new(layout).decode(&page, CPU, &mut events);
        }
    }

    #[test]
    fn a_header_page_with_changed_bytes_is_a_layout_or_an_error(
        changes in prop::collection::vec((0..HEADER_PAGE.len(), 0_u8..128), 1..6),
    ) {
        let mut text = HEADER_PAGE.as_bytes().to_vec();
        for (at, byte) in changes {
            text[at] = byte;
        }
        let _ = PageLayout::parse(&String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_page_of_one_byte_repeated_is_read_or_an_error() {
    let decoder = decoder();
    for byte in 0..=u8::MAX {
        for length in [0, 1, 8, 15, 16, 17, 24, 4096, 65_536] {
            check(&decoder, &vec![byte; length]).unwrap();
            check(&decoder, &with_header(0, u16::MAX, &vec![byte; length])).unwrap();
        }
    }
}

#[test]
fn a_recorded_page_cut_at_any_byte_gives_a_part_of_its_events() {
    let decoder = decoder();
    for page in PAGES {
        let mut whole = Vec::new();
        let committed = u32::from_le_bytes(page.bytes[8..12].try_into().unwrap()) & 0x3fff_ffff;
        decoder.decode(page.bytes, CPU, &mut whole).unwrap();
        for length in 0..4096 {
            let mut events = Vec::new();
            let result = decoder.decode(&page.bytes[..length], CPU, &mut events);
            assert_eq!(events, whole[..events.len()]);
            if length < 16 + committed as usize {
                result.unwrap_err();
            } else {
                let PageSummary { events: count, .. } = result.unwrap();
                assert_eq!(count, whole.len());
            }
        }
    }
}
