//! Blocks of CPU time and jobs one by one: written in segments, read back in order, never trusted.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::execution::{Block, StoredJob, Verdict};
use whylate_model::segments::{
    Limits, Writer, decode_blocks, decode_gaps, decode_jobs, read_blocks, read_gaps, read_jobs,
    survey,
};
use whylate_model::{CpuId, Nanos, RunDir, Ticks};

use crate::samples::run;
use crate::segments::{gap_at, segment_files};

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

/// Two readings of a counter, the second no earlier.
fn span() -> impl Strategy<Value = (Ticks, Ticks)> {
    (any::<u64>(), any::<u64>()).prop_map(|(a, b)| (Ticks(a.min(b)), Ticks(a.max(b))))
}

fn any_block() -> impl Strategy<Value = Block> {
    (any::<u16>(), any::<u32>(), span()).prop_map(|(thread, cpu, (start, end))| Block {
        thread,
        cpu: CpuId(cpu),
        start,
        end,
    })
}

fn any_job() -> impl Strategy<Value = StoredJob> {
    let verdict = prop_oneof![
        Just(Verdict::Hit),
        Just(Verdict::Late),
        Just(Verdict::Unfinished),
        Just(Verdict::Skipped)
    ];
    let ticks = || option::of(any::<u64>().prop_map(Ticks));
    let times = any::<[u64; 8]>().prop_map(|times| times.map(Nanos));
    (any::<(u16, u64)>(), span(), (ticks(), ticks()), verdict, times).prop_map(
        |((thread, index), (release, deadline), (woke, done), verdict, times)| {
            let [received, threads, waking, interrupts, host, blocked, away, unknown] = times;
            StoredJob {
                thread,
                index,
                release,
                deadline,
                woke,
                done,
                received,
                verdict,
                threads,
                waking,
                interrupts,
                host,
                blocked,
                away,
                unknown,
            }
        },
    )
}

/// A block that tells by its ticks which one it is.
fn block_at(number: u64) -> Block {
    let start = Ticks(1_000 + number * 100);
    let end = Ticks(start.0 + 60 + number % 30);
    Block { thread: (number % 3) as u16, cpu: CpuId((number % 2) as u32), start, end }
}

/// A job that tells by its ticks which one it is, of each verdict in turn.
fn job_at(number: u64) -> StoredJob {
    let release = Ticks(1_000 + number * 100);
    let verdicts = [Verdict::Hit, Verdict::Late, Verdict::Unfinished, Verdict::Skipped];
    let verdict = verdicts[(number % 4) as usize];
    let done = matches!(verdict, Verdict::Hit | Verdict::Late);
    StoredJob {
        thread: (number % 2) as u16,
        index: number / 2,
        release,
        deadline: Ticks(release.0 + 100),
        woke: (verdict != Verdict::Skipped).then_some(Ticks(release.0 + 7)),
        done: done.then_some(Ticks(release.0 + 90 + number % 20)),
        received: Nanos(if done { 50 } else { 0 }),
        verdict,
        threads: Nanos(number),
        waking: Nanos(4),
        interrupts: Nanos(2),
        host: Nanos(1),
        blocked: Nanos(6),
        away: Nanos(3),
        unknown: Nanos(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_blocks_and_jobs_come_back_as_they_were_pushed(
        blocks in vec(any_block(), 0..40),
        jobs in vec(any_job(), 0..40),
        rows in 1_usize..20,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, event_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for block in &blocks {
            writer.push_block(block).unwrap();
        }
        for job in &jobs {
            writer.push_job(job).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_blocks(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(back, blocks);
        let back: Vec<_> = read_jobs(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(back, jobs);
    }

    #[test]
    fn many_changed_bytes_of_blocks_and_jobs_give_rows_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (mut blocks, mut jobs) = whole_segments();
        for (place, value) in &changes {
            let (in_blocks, in_jobs) = (place.index(blocks.len()), place.index(jobs.len()));
            blocks[in_blocks] = *value;
            jobs[in_jobs] = *value;
        }
        let _ = decode_blocks(Path::new("blocks"), blocks);
        let _ = decode_jobs(Path::new("jobs"), jobs);
    }

    #[test]
    fn any_bytes_are_neither_blocks_nor_jobs(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(decode_blocks(Path::new("bytes"), bytes.clone()).is_err());
        prop_assert!(decode_jobs(Path::new("bytes"), bytes).is_err());
    }
}

/// Segments with a few rows: blocks, then jobs.
fn whole_segments() -> (Vec<u8>, Vec<u8>) {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for number in 0..40 {
        writer.push_block(&block_at(number)).unwrap();
        writer.push_job(&job_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let files = segment_files(&directory);
    (std::fs::read(&files[0]).unwrap(), std::fs::read(&files[1]).unwrap())
}

#[test]
fn the_four_kinds_of_rows_lie_side_by_side_and_are_listed() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 10, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..25 {
        writer.push_block(&block_at(number)).unwrap();
        writer.push_job(&job_at(number)).unwrap();
        writer.push_gap(&gap_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let mut run = run();
    run.segments = writer.segments();
    assert!(survey(&directory, &run).unwrap().is_complete());
    assert_eq!(read_gaps(&directory).unwrap().count(), 25);
    let blocks: Vec<Block> = read_blocks(&directory).unwrap().map(Result::unwrap).collect();
    assert_eq!(blocks, (0..25).map(block_at).collect::<Vec<_>>());
    let jobs: Vec<StoredJob> = read_jobs(&directory).unwrap().map(Result::unwrap).collect();
    assert_eq!(jobs, (0..25).map(job_at).collect::<Vec<_>>());
    for kind in ["blocks", "jobs"] {
        let of_kind = run.segments.iter().filter(|segment| segment.file.starts_with(kind));
        assert_eq!(of_kind.map(|segment| segment.rows).sum::<u64>(), 25, "{kind}");
    }
    let first = run.segments.iter().find(|segment| segment.file == "blocks-0001.parquet").unwrap();
    assert_eq!(first.from, block_at(0).start);
}

#[test]
fn every_truncation_of_blocks_and_jobs_is_refused() {
    let (blocks, jobs) = whole_segments();
    let path = Path::new("segment");
    for length in 0..blocks.len() {
        assert!(decode_blocks(path, blocks[..length].to_vec()).is_err(), "{length} of blocks");
    }
    for length in 0..jobs.len() {
        assert!(decode_jobs(path, jobs[..length].to_vec()).is_err(), "{length} of jobs");
    }
    assert_eq!(decode_blocks(path, blocks.clone()).unwrap().len(), 40);
    assert_eq!(decode_jobs(path, jobs.clone()).unwrap().len(), 40);
    assert!(decode_jobs(path, blocks.clone()).is_err(), "blocks were taken for jobs");
    assert!(decode_blocks(path, jobs).is_err(), "jobs were taken for blocks");
    assert!(decode_gaps(path, blocks).is_err(), "blocks were taken for gaps");
}

#[test]
fn every_changed_byte_of_blocks_and_jobs_gives_rows_or_an_error() {
    let (blocks, jobs) = whole_segments();
    let path = Path::new("segment");
    for place in 0..blocks.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = blocks.clone();
            changed[place] ^= change;
            let _ = decode_blocks(path, changed);
        }
    }
    for place in 0..jobs.len() {
        let mut changed = jobs.clone();
        changed[place] ^= 0xff;
        let _ = decode_jobs(path, changed);
    }
}

#[test]
fn a_damaged_segment_of_blocks_is_one_error_and_the_others_are_read() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 10, event_rows: 10, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..30 {
        writer.push_block(&block_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let second = directory.path().join("blocks-0002.parquet");
    let content = std::fs::read(&second).unwrap();
    std::fs::write(&second, &content[..content.len() / 2]).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = read_blocks(&directory).unwrap().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (20, 1));
    let message = bad[0].as_ref().unwrap_err().to_string();
    assert!(message.contains("blocks-0002.parquet") && message.contains("truncated"), "{message}");
}
