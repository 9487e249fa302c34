//! Any bytes, taken for each of the files of a run directory, give content or an error; a run that
//! can be read can be reported.
//!
//! The first byte chooses the file, so that one corpus serves all of them.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whylate_model::directory::parse_run;
use whylate_model::execution::Block;
use whylate_model::hlog::parse_line;
use whylate_model::paper::Paper;
use whylate_model::run::Run;
use whylate_model::segments::{
    decode_blocks, decode_events, decode_gaps, decode_injections, decode_jobs, decode_journeys,
    decode_packets, decode_truths,
};
use whylate_model::{Hertz, Ticks};
use whylate_report::execution::{Window, rows, switch_times};
use whylate_report::{Style, render};

fuzz_target!(|data: &[u8]| {
    let Some((choice, content)) = data.split_first() else { return };
    let path = Path::new("fuzzed");
    let error = match choice % 11 {
        0 => parse_run(path, content).map(|run| report(&run)).err(),
        1 => parse_line(path, content).err(),
        2 => decode_gaps(path, content.to_vec()).err(),
        3 => decode_events(path, content.to_vec()).err(),
        4 => decode_blocks(path, content.to_vec()).map(|blocks| trace(&blocks)).err(),
        5 => decode_jobs(path, content.to_vec()).err(),
        6 => decode_packets(path, content.to_vec()).err(),
        7 => decode_journeys(path, content.to_vec()).err(),
        8 => decode_truths(path, content.to_vec()).err(),
        9 => Paper::parse(path, content).err(),
        _ => decode_injections(path, content.to_vec()).err(),
    };
    if let Some(error) = error {
        let text = error.to_string();
        assert!(text.len() < 1_000, "an endless message");
        assert!(text.chars().all(|c| !c.is_control()), "a message that is not safe to print");
    }
});

fn report(run: &Run) {
    let text = render(run, Style::default());
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "a report that is not safe to print"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "a line that is too long");
}

fn trace(blocks: &[Block]) {
    let rows = rows(blocks, &["a".to_owned(), "b".to_owned()], Ticks(0), Hertz(1e9));
    let window = Window::of(&rows);
    let figure = whylate_report::svg::execution::figure(&rows, window, "fuzzed");
    assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "a picture of no number");
    let _ = switch_times(blocks, Hertz(1e9));
}
