//! Pages and their records: every record type, lost events, damage.

use crate::page::{PageLayout, Records};
use crate::{Missed, PageSummary, TraceError};
use whylate_model::Ticks;

use super::builder::{
    HEADER_PAGE, PageBuilder, Value::Number, decode, decoder, layout, record, recorded_format,
};

/// The first word of a record that was taken back, 5 ticks after the one before.
const DISCARDED: u32 = 0x1d | 0x05 << 5;

/// Stamps and data of the records of a page, and the error that ended it.
fn records(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, Option<TraceError>) {
    let mut found = Vec::new();
    let records = match Records::new(&layout(), page) {
        Ok(records) => records,
        Err(error) => return (found, Some(error)),
    };
    for record in records {
        match record {
            Ok(record) => {
                assert_eq!(record.data, &page[record.offset..record.offset + record.data.len()]);
                found.push((record.stamp, record.data.to_vec()));
            }
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

fn stamps(page: &[u8]) -> Vec<u64> {
    let (found, error) = records(page);
    assert_eq!(error, None);
    found.into_iter().map(|(stamp, _)| stamp).collect()
}

#[test]
fn the_layout_of_the_recorded_kernel_is_a_page_of_4096_bytes() {
    assert_eq!(layout().page_size(), 4096);
}

#[test]
fn a_layout_that_lacks_a_field_or_cannot_be_is_refused() {
    for field in ["timestamp", "commit", "data"] {
        let without: String = HEADER_PAGE
            .lines()
            .filter(|line| !line.contains(field))
            .map(|l| l.to_owned() + "\n")
            .collect();
        assert_eq!(PageLayout::parse(&without), Err(TraceError::LayoutLacks { field }));
    }
    assert!(PageLayout::parse("").is_err());
    for (from, to) in [
        ("timestamp;	offset:0;	size:8", "timestamp;	offset:0;	size:4"),
        ("commit;	offset:8;	size:8", "commit;	offset:8;	size:2"),
        ("commit;	offset:8;	size:8", "commit;	offset:12;	size:8"),
        ("data;	offset:16", "data;	offset:15"),
        ("size:4080", "size:0"),
        ("size:4080", "size:1000000000"),
        ("size:4080", "size:4294967295"),
        ("size:4080", "size:-1"),
    ] {
        assert!(HEADER_PAGE.contains(from));
        let changed = HEADER_PAGE.replace(from, to);
        assert!(PageLayout::parse(&changed).is_err(), "{changed}");
    }
}

#[test]
fn data_of_every_length_come_back_whole() {
    for length in 1..=300 {
        let data: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
        let page = PageBuilder::new(0).event(1, &data).event(1, b"next").page();
        let (found, error) = records(&page);
        assert_eq!((found.len(), error), (2, None));
        assert_eq!(found[0].1[..data.len()], data);
        assert!(found[0].1.len() < data.len() + 4);
        assert_eq!(found[1].1, b"next");
    }
}

#[test]
fn the_long_form_means_the_same_as_the_short_one() {
    let short = PageBuilder::new(9).event(1, b"12345678").event(2, b"abcd").page();
    let long = PageBuilder::new(9).long_event(1, b"12345678").long_event(2, b"abcd").page();
    assert_eq!(records(&short), records(&long));
}

#[test]
fn stamps_add_up_from_that_of_the_page() {
    let page =
        PageBuilder::new(1 << 40).event(0, b"aaaa").event(7, b"bbbb").event(0x7ff_ffff, b"c");
    let base = 1 << 40;
    assert_eq!(stamps(&page.page()), [base, base + 7, base + 7 + 0x7ff_ffff]);
}

#[test]
fn a_time_extend_adds_its_59_bits() {
    let page = PageBuilder::new(100).time_extend(1 << 27).event(5, b"a").time_extend((1 << 58) + 3);
    let page = page.event(0, b"b").page();
    let first = 100 + (1 << 27) + 5;
    assert_eq!(stamps(&page), [first, first + (1 << 58) + 3]);
}

#[test]
fn an_absolute_stamp_replaces_the_lowest_59_bits() {
    let high = 0b1_0110_u64 << 59;
    let page = PageBuilder::new(high + 500).event(1, b"a").time_stamp(900).event(2, b"b").page();
    assert_eq!(stamps(&page), [high + 501, high + 902]);
}

#[test]
fn an_absolute_stamp_that_wrapped_around_goes_forward() {
    for high in [0, 0b1_0110_u64 << 59] {
        let page = PageBuilder::new(high | ((1 << 59) - 10)).event(1, b"a").time_stamp(20);
        assert_eq!(
            stamps(&page.event(0, b"b").page()),
            [high | ((1 << 59) - 9), high + (1 << 59) + 20]
        );
    }
}

#[test]
fn stamps_that_go_back_are_given_as_they_are_and_counted() {
    let format = recorded_format!("irq/softirq_entry");
    let data = record(&format, &[("vec", Number(1))]);
    // Behind the page's stamp, and behind the event before.
    let page = PageBuilder::new(1_000).time_stamp(990).event(0, &data).event(60, &data);
    let page = page.time_stamp(1_020).event(0, &data).event(10, &data).page();
    let (result, events) = decode(&decoder("irq", &format), &page);
    assert_eq!(result, Ok(PageSummary { events: 4, backwards: 2, ..PageSummary::default() }));
    let stamps: Vec<Ticks> = events.iter().map(|event| event.ticks).collect();
    assert_eq!(stamps, [990, 1_050, 1_020, 1_030].map(Ticks));
}

#[test]
fn a_discarded_record_gives_nothing_but_its_time() {
    // The record behind it counts its time from it, and 1 stands for none.
    let page = PageBuilder::new(0).event(3, b"a").discarded(40, 12).event(5, b"b");
    assert_eq!(stamps(&page.page()), [3, 48]);
    let page = PageBuilder::new(0).event(3, b"a").discarded(1, 4).event(5, b"b");
    assert_eq!(stamps(&page.page()), [3, 8]);
}

#[test]
fn nothing_is_read_behind_the_end_mark() {
    let page = PageBuilder::new(0).event(3, b"a").end().raw(&[0xff; 64]).page();
    assert_eq!(stamps(&page), [3]);
}

#[test]
fn nothing_is_read_behind_the_committed_data() {
    let mut page = PageBuilder::new(0).event(3, b"a").page();
    page[24..].fill(0x01);
    assert_eq!(stamps(&page), [3]);
}

#[test]
fn a_full_page_is_read_to_its_last_byte() {
    let mut page = PageBuilder::new(0);
    for _ in 0..4080 / 8 {
        page = page.event(1, b"data");
    }
    assert_eq!(stamps(&page.page()).len(), 510);
}

#[test]
fn an_empty_page_holds_no_events() {
    assert_eq!(records(&PageBuilder::new(5).page()), (vec![], None));
    assert_eq!(records(&[0; 4096]), (vec![], None));
}

#[test]
fn lost_events_are_reported_with_their_number_where_the_kernel_gives_it() {
    let missed = |page: &[u8]| Records::new(&layout(), page).unwrap().missed();
    let page = PageBuilder::new(0).event(3, b"a");
    assert_eq!(missed(&page.page()), Missed::None);
    assert_eq!(missed(&page.clone().missed().page()), Missed::Unknown);
    assert_eq!(missed(&page.clone().missed_count(4_711).page()), Missed::Count(4_711));
    assert_eq!(missed(&page.clone().missed_count(0).page()), Missed::Unknown);
    assert_eq!(missed(&page.clone().missed_count(u64::MAX).page()), Missed::Unknown);
    let marked = page.missed_count(4_711);
    assert_eq!(missed(&marked.short()[..25]), Missed::Unknown, "the number is cut off");
    assert_eq!(stamps(&marked.page()), [3], "the number is no record");
}

#[test]
fn a_32_bit_kernel_has_a_shorter_header() {
    let header = HEADER_PAGE
        .replace("commit;	offset:8;	size:8", "commit;	offset:8;	size:4")
        .replace("data;	offset:16;	size:4080", "data;	offset:12;	size:4084");
    let layout = PageLayout::parse(&header).unwrap();
    assert_eq!(layout.page_size(), 4096);
    let wide = PageBuilder::new(70).event(3, b"abcd").missed_count(9).short();
    let mut page = wide[..8].to_vec();
    page.extend_from_slice(&wide[8..12]);
    page.extend_from_slice(&wide[16..]);
    let mut found = Records::new(&layout, &page).unwrap();
    assert_eq!(found.missed(), Missed::Count(9));
    let first = found.next().unwrap().unwrap();
    assert_eq!((first.stamp, first.offset, first.data), (73, 16, &b"abcd"[..]));
    assert_eq!(found.next(), None);
}

#[test]
fn a_larger_sub_buffer_is_read_with_its_own_layout() {
    let layout = PageLayout::parse(&HEADER_PAGE.replace("4080", "65520")).unwrap();
    assert_eq!(layout.page_size(), 1 << 16);
    let mut builder = PageBuilder::new(0);
    for _ in 0..600 {
        builder = builder.event(1, &[1; 100]);
    }
    let page = builder.short();
    let found = Records::new(&layout, &page).unwrap();
    assert_eq!(found.map(Result::unwrap).count(), 600);
}

#[test]
fn a_page_cut_at_any_byte_gives_the_records_before_the_cut_and_an_error() {
    let page = PageBuilder::new(1 << 61)
        .event(3, b"first record")
        .long_event(4, b"second")
        .time_extend(1 << 30)
        .discarded(7, 16)
        .time_stamp(1 << 40)
        .event(0, b"third")
        .missed_count(11)
        .short();
    let committed = page.len() - 8;
    let (whole, error) = records(&page);
    assert_eq!((whole.len(), error), (3, None));
    for length in 0..committed {
        let (found, error) = records(&page[..length]);
        assert_eq!(found, whole[..found.len()]);
        let need = if length < 16 { 16 } else { committed };
        assert_eq!(error, Some(TraceError::PageTruncated { have: length, need }));
    }
    for length in committed..page.len() {
        assert_eq!(records(&page[..length]), (whole.clone(), None));
    }
}

#[test]
fn a_page_of_ones_is_damaged() {
    let (found, error) = records(&[0xff; 4096]);
    assert_eq!(found, []);
    assert!(matches!(error, Some(TraceError::PageDamaged { offset: 8, .. })), "{error:?}");
}

#[test]
fn the_upper_half_of_the_commit_word_is_the_sign_of_its_flags_or_damage() {
    let page = PageBuilder::new(0).event(3, b"a").missed_count(9).page();
    assert_eq!(&page[12..16], [0xff; 4]);
    let mut unsigned = page.clone();
    unsigned[12..16].fill(0);
    assert_eq!(records(&unsigned), records(&page));
    let missed = Records::new(&layout(), &unsigned).unwrap().missed();
    assert_eq!(missed, Missed::Count(9));
    for (upper, flags) in [(0xfe, 0xc0), (0x01, 0x80), (0xff, 0x40), (0xff, 0x00)] {
        let mut bad = page.clone();
        bad[15] = upper;
        bad[11] = flags;
        let (found, error) = records(&bad);
        assert_eq!(found, []);
        assert!(matches!(error, Some(TraceError::PageDamaged { offset: 8, .. })), "{error:?}");
    }
}

#[test]
fn a_length_beyond_the_page_ends_it_with_an_error_where_it_is() {
    let word = u32::to_le_bytes;
    for (bad, at) in [
        // Type 0 and padding, with lengths that reach too far, are no words, or are nothing.
        ([word(0), word(u32::MAX)], 28),
        ([word(0), word(u32::MAX - 3)], 28),
        ([word(0), word(6)], 28),
        ([word(0), word(0)], 28),
        ([word(0), word(12)], 28),
        ([word(DISCARDED), word(u32::MAX - 3)], 28),
        ([word(DISCARDED), word(0)], 28),
        ([word(DISCARDED), word(3)], 28),
        // A short form that is longer than the rest.
        ([word(28), word(0)], 28),
    ] {
        let page = PageBuilder::new(0).event(1, b"good").raw(&bad.concat()).page();
        let (found, error) = records(&page);
        assert_eq!(found.len(), 1);
        assert!(
            matches!(error, Some(TraceError::PageDamaged { offset, .. }) if offset == at),
            "{bad:?}: {error:?}"
        );
    }
    for kind in [0, DISCARDED] {
        let page = PageBuilder::new(0).event(1, b"good").raw(&[word(kind), word(6)].concat());
        let (found, error) = records(&page.event(1, b"more").event(1, b"more").page());
        assert_eq!(found.len(), 1, "a length that is no number of words");
        assert!(matches!(error, Some(TraceError::PageDamaged { offset: 28, .. })), "{error:?}");
    }
    for kind in [0, DISCARDED, 30, 31] {
        let page = PageBuilder::new(0).event(1, b"good").raw(&word(kind)).page();
        let (found, error) = records(&page);
        assert_eq!(found.len(), 1, "a record without its second word");
        assert!(matches!(error, Some(TraceError::PageDamaged { offset: 28, .. })), "{error:?}");
    }
    for extra in 1..4 {
        let page = PageBuilder::new(0).event(1, b"good").raw(&vec![1; extra]).page();
        let (found, error) = records(&page);
        assert_eq!(found.len(), 1, "a record that begins in the last bytes");
        assert!(matches!(error, Some(TraceError::PageDamaged { offset: 24, .. })), "{error:?}");
    }
}

#[test]
fn events_that_were_not_registered_are_counted() {
    let known = recorded_format!("irq/softirq_entry");
    let other = recorded_format!("irq/softirq_exit");
    let page = PageBuilder::new(0)
        .event(1, &record(&known, &[("vec", Number(1))]))
        .event(1, &record(&other, &[]))
        .event(1, &[0xff; 8])
        .page();
    let (result, events) = decode(&decoder("irq", &known), &page);
    let expected = PageSummary { events: 1, unknown_events: 2, ..PageSummary::default() };
    assert_eq!((result, events.len()), (Ok(expected), 1));
    let nothing = crate::Decoder::new(layout());
    let (result, _) = decode(&nothing, &page);
    assert_eq!(result, Ok(PageSummary { unknown_events: 3, ..PageSummary::default() }));
}

#[test]
fn events_are_appended_to_those_of_earlier_pages() {
    let format = recorded_format!("irq/softirq_entry");
    let decoder = decoder("irq", &format);
    let page = PageBuilder::new(0).event(1, &record(&format, &[])).page();
    let mut events = Vec::new();
    for cpu in 0..3 {
        decoder.decode(&page, whylate_model::CpuId(cpu), &mut events).unwrap();
    }
    let cpus: Vec<u32> = events.iter().map(|event| event.cpu.0).collect();
    assert_eq!(cpus, [0, 1, 2]);
}
