//! The paper's command lines, and those that are none.

use proptest::prelude::*;

use super::*;
use crate::call::Call;
use crate::task_set::{Reservation, ReservationKind, ReservationScheduler};

/// A command line as the paper prints it: lines joined by backslashes.
fn read(line: &str) -> Result<Hourglass, HourglassError> {
    let words: Vec<String> =
        line.replace("\\\n", " ").split_whitespace().map(str::to_owned).collect();
    let Some(("hourglass", rest)) = words.split_first().map(|(a, b)| (a.as_str(), b)) else {
        panic!("{line}");
    };
    parse(rest)
}

fn thread(number: usize, priority: &str, workload: &str, timer: &str) -> Thread {
    Thread {
        priority: Call::bare(priority),
        workload: workload.parse().unwrap(),
        timer: Call::bare(timer),
        ..Thread::new(number.to_string())
    }
}

fn reserving(thread: Thread, kind: ReservationKind, amount: u64, period: u64) -> Thread {
    let scheduler = ReservationScheduler::Deadline;
    let (amount, period) = (Nanos(amount * 1_000), Nanos(period * 1_000));
    Thread { reservation: Some(Reservation { kind, amount, period, scheduler }), ..thread }
}

fn line(duration: u64, threads: Vec<Thread>) -> Hourglass {
    Hourglass {
        set: TaskSet { threads, resources: Vec::new() },
        duration: Nanos(duration * 1_000_000_000),
        raw_trace: false,
        records: 300_000,
        extra: Extra::default(),
    }
}

#[test]
fn command_line_of_figure_3() {
    let text = "hourglass -n 3 -d 5s \\\n-t 0 -p LOW \\\n-t 1 -p NORMAL \\\n-t 2 -p HIGH";
    let threads = ["LOW", "NORMAL", "HIGH"];
    let threads = threads.iter().enumerate().map(|(i, p)| thread(i, p, "CPU", "NATIVE")).collect();
    assert_eq!(read(text), Ok(line(5, threads)));
}

#[test]
fn command_lines_of_section_5_1() {
    let ten = |workload| (0..10).map(|i| thread(i, "NORMAL", workload, "NATIVE")).collect();
    let text = "hourglass -d 60s -n 10 -a -p NORMAL -w CPU";
    assert_eq!(read(text), Ok(line(60, ten("CPU"))));
    let text = "hourglass -d 60s -n 10 -a -p NORMAL \\\n-w CPU_YIELD 0.9ms";
    assert_eq!(read(text), Ok(line(60, ten("CPU_YIELD 0.9ms"))));
}

#[test]
fn command_line_of_section_5_3() {
    let expected = line(360, vec![thread(0, "RTHIGH", "LAT 5.3ms", "RTC")]);
    let text = "hourglass -d 6m -n 1 -t 0 -p RTHIGH \\\n-w LAT 5.3ms -i RTC";
    assert_eq!(read(text), Ok(expected));
}

#[test]
fn command_line_of_section_5_4() {
    let expected = line(20, vec![thread(0, "RTHIGH", "PERIODIC 4ms 5ms", "RTC")]);
    let text = "hourglass -d 20s -n 1 -t 0 -p RTHIGH \\\n-w PERIODIC 4ms 5ms -i RTC";
    assert_eq!(read(text), Ok(expected));
}

#[test]
fn command_lines_of_section_5_5() {
    for (amount, timer) in [("17ms", "NATIVE"), ("17ms", "HR"), ("12ms", "NATIVE")] {
        let text = format!(
            "hourglass -n 2 \\\n-t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR \\\n\
             -t 1 -p RTLOW -w PERIODIC {amount} 33ms -i {timer}"
        );
        let video = format!("PERIODIC {amount} 33ms");
        let threads =
            vec![thread(0, "RTMED", "PERIODIC 3ms 8ms", "HR"), thread(1, "RTLOW", &video, timer)];
        assert_eq!(read(&text), Ok(line(10, threads)));
    }
}

#[test]
fn command_lines_of_section_5_6() {
    for (audio, video) in [(3_000, 17_000), (3_100, 17_100)] {
        let (a, v) = (audio as f64 / 1e3, video as f64 / 1e3);
        let text = format!(
            "hourglass -n 2 \\\n-t 0 -w PERIODIC 3ms 8ms -rh {a}ms 8ms \\\n\
             -t 1 -w PERIODIC 17ms 33ms -rh {v}ms 33ms"
        );
        let threads = [("PERIODIC 3ms 8ms", audio, 8_000), ("PERIODIC 17ms 33ms", video, 33_000)];
        let threads = threads.iter().enumerate().map(|(i, &(workload, amount, period))| {
            let thread = thread(i, "NORMAL", workload, "NATIVE");
            reserving(thread, ReservationKind::Hard, amount, period)
        });
        assert_eq!(read(&text), Ok(line(10, threads.collect())));
    }
}

#[test]
fn every_option_of_the_appendix_is_known() {
    let text = "hourglass -c -e 5000 -a -i NATIVE -t 1 -rs 5ms 30ms -s 1.5s -f 1020ms -n 2 -d 3m";
    assert!(
        read(text).unwrap_err().to_string().contains("finishes at 1020ms and starts at 1500ms")
    );
    let text = "hourglass -c -e 5000 -a -i NATIVE -t 1 -rs 5ms 30ms -s 87.0us -f 1020ms -n 2 -d 3m";
    let got = read(text).unwrap();
    assert!(got.raw_trace);
    assert_eq!((got.records, got.duration), (5_000, Nanos(180_000_000_000)));
    let one = &got.set.threads[1];
    assert_eq!((one.start, one.finish), (Nanos(87_000), Some(Nanos(1_020_000_000))));
    assert_eq!(one.reservation.unwrap().kind, ReservationKind::Soft);
    assert_eq!(got.set.threads[0].reservation, None);
    for workload in
        ["CPU_SCAN 100", "CPU_SCAN 64KiB", "CPU_SCAN_YIELD 100 0.9ms", "CPU_PERIODIC 10ms 50ms"]
    {
        let got = read(&format!("hourglass -n 1 -a -w {workload} -p IDLE")).unwrap();
        assert_eq!(got.set.threads[0].workload.to_string(), workload);
    }
}

#[test]
fn all_threads_are_meant_until_the_next_thread_is_named() {
    let text = "hourglass -n 3 -a -p LOW -w CPU -t 1 -p HIGH -i HR -a -i RTC";
    let got = read(text).unwrap().set.threads;
    let priorities: Vec<String> = got.iter().map(|thread| thread.priority.to_string()).collect();
    assert_eq!(priorities, ["LOW", "HIGH", "LOW"]);
    // What stands later wins.
    assert!(got.iter().all(|thread| thread.timer == Call::bare("RTC")));
}

#[test]
fn what_is_ours_stands_anywhere_and_apart() {
    let extra = Extra {
        cpus: Some(vec![CpuId(1), CpuId(2)]),
        output: Some(PathBuf::from("run")),
        seed: Some(7),
        threshold: Some(Threshold::Paper),
        raw: true,
    };
    for text in [
        "hourglass --raw --cpus 1-2 -o run --seed 7 --threshold paper -n 1 -t 0 -w CPU",
        "hourglass --raw --cpus 1-2 --out run --seed 7 --threshold paper -n 1 -t 0 -w CPU",
        "hourglass -n 1 -t 0 --cpus 1-2 -w CPU --raw --seed 7 --output run --threshold paper",
    ] {
        assert_eq!(read(text).unwrap().extra, extra);
    }
    let threshold = |word| read(&format!("hourglass -n 1 --threshold {word}"));
    assert_eq!(threshold("auto").unwrap().extra.threshold, Some(Threshold::Auto));
    let exactly = Threshold::Exactly(Nanos(450));
    assert_eq!(threshold("450ns").unwrap().extra.threshold, Some(exactly));
}

#[test]
fn a_bad_command_line_is_refused_with_what_to_write() {
    for (text, word) in [
        ("", "-n is missing"),
        ("-d 5s", "-n is missing"),
        ("-n", "-n lacks its value: write -n THREADS"),
        ("-n 0", "-n 0 is not a number of threads"),
        ("-n -1", "-n -1 is not a number"),
        ("-n two", "-n two is not a number"),
        ("-n 10000", "locked in memory"),
        ("-n 99999999999999999999", "not a number of threads: use 1 to 1024"),
        ("-n 2 -n 3", "-n is given twice"),
        ("-n 2 -t 5 -p LOW", "there is no thread 5 for -t: with -n 2 they are 0 to 1"),
        ("-t 1 -p LOW -n 1", "there is no thread 1 for -t: with -n 1 they are 0 alone"),
        ("-n 2 -t -p LOW", "-t lacks its value"),
        ("-n 2 -p LOW -t 0", "write -t NUMBER or -a before it"),
        ("-n 2 -w CPU", "-w is for a thread"),
        ("-n 1 -t 0 -w", "such as -w PERIODIC 3ms 8ms"),
        ("-n 1 -t 0 -w -p LOW", "-w lacks its value"),
        ("-n 1 -t 0 -w a)b", "-w: `a)b`"),
        ("-n 1 -t 0 -rh 9ms 8ms", "asks for 9ms in each 8ms"),
        ("-n 1 -t 0 -rh 9ms", "-rh lacks its value: write -rh AMOUNT PERIOD"),
        ("-n 1 -t 0 -rh 0ms 8ms", "-rh: the time must be above zero"),
        ("-n 1 -t 0 -rh 3ms 8ms -rs 3ms 8ms", "both given for thread 0"),
        ("-n 1 -t 0 -rh 3ms 8ms 9ms", "`9ms` belongs to no option"),
        ("-n 1 -d 5", "no unit"),
        ("-n 1 -d 0s", "-d: the time must be above zero"),
        ("-n 1 -d 5s -d 6s", "-d is given twice"),
        ("-n 1 -d -5s", "-5s"),
        ("-n 1 -e 0", "not a number of records"),
        ("-n 1 -e 999999999", "kept in memory"),
        ("-n 1 -c -c", "-c is given twice"),
        ("-n 1 -t 0 -p LOW -p HIGH", "-p is given twice for thread 0"),
        ("-n 1 -t 0 -p LOW -t 0 -p HIGH", "-p is given twice for thread 0"),
        ("-n 1 -a -p LOW -a -p HIGH", "-p is given twice for all threads"),
        ("-n 1 -t 0 -p LOW HIGH", "`HIGH` belongs to no option: before it stands -p PRIORITY"),
        ("-n 1 -t 0 -s 5", "no unit"),
        ("-n 1 -t 0 -s 10s", "thread 0 starts at 10s, and the run ends at 10s"),
        ("-n 1 -t 0 -f 0s", "-f: the time must be above zero"),
        ("-n 1 -t 0 -s 2s -f 1s", "let it finish later"),
        ("-n 1 -x", "`-x` is not an option of hourglass"),
        ("-n 1 --color", "`--color` is not an option"),
        ("-n2", "`-n2` is not an option"),
        ("2", "begin with one, such as -n 2"),
        ("-n 1 --cpus 3-1", "--cpus: `3-1`"),
        ("-n 1 --seed x", "--seed: `x`"),
        ("-n 1 --threshold 5", "--threshold: `5` has no unit"),
        ("-n 1 -o", "-o lacks its value"),
    ] {
        let error = read(&format!("hourglass {text}")).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_words_panic(words in prop::collection::vec(
        prop_oneof![
            "-(n|d|c|t|a|e|p|rh|rs|w|i|s|f|o|-cpus|-seed|-threshold)",
            "[0-9]{1,3}(ms|s)?",
            "[A-Z(),]{0,6}",
            ".{0,8}",
        ],
        0..14,
    )) {
        let _ = parse(&words);
    }
}
