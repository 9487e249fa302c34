//! `whylate reflect -o` as a sink: at which distances messages came that ask for no answer, kept as a
//! series with intervals, also where the sink is killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use whylate_model::Pid;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState};
use whylate_model::series::{Definition, Series};
use whylate_sys::signal::send_to_process;

use crate::program::{self, recorded, said, until, whylate};
use crate::reflect::Started;
use crate::requests::{SIGKILL, flow, logged, lowest, series};

const SERIES: &str = "reflect-gaps";

fn started(home: &Path) -> (Started, PathBuf) {
    let directory = home.join("sink");
    let words = format!("--listen 127.0.0.1:0 --wait block -o {}", directory.display());
    (Started::new(&words), directory)
}

/// The series, which is the log's and has what a series has.
fn checked<'a>(run: &'a Run, directory: &Path) -> &'a Series {
    let gaps = series(run, SERIES).expect("distances of receptions");
    assert_eq!(gaps.definition, Definition::Receptions);
    assert_eq!(logged(directory, SERIES).len(), gaps.n);
    let median = gaps.quantiles[0];
    if let Some(value) = lowest(&gaps.quantiles) {
        assert!(median.low.is_none_or(|low| low <= value), "{median:?}");
        assert!(median.high.is_none_or(|high| value <= high), "{median:?}");
    }
    assert!(median.n_eff > 0.0 && median.n_eff <= gaps.n as f64, "{median:?}");
    assert_eq!((gaps.class, gaps.lost), (None, 0), "a distance is no latency");
    gaps
}

#[test]
fn messages_of_a_constant_flow_have_every_distance_in_the_series() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (sink, directory) = started(home.path());
    let words = format!(
        "rtt {} --one-way --rate 1kpps --duration 200ms --warmup 10ms --no-trace",
        sink.at()
    );
    let recorded = recorded(&words);
    let told = sink.stop();
    let packets = &flow(&recorded.run).packets;
    let run = program::read(&directory);
    let gaps = checked(&run, &directory);
    // Each message but the first came after another one: those of the warm-up are none of them.
    let [client] = &told.clients[..] else { panic!("{:?}", told.clients) };
    let of = client.one_way.as_ref().expect("messages that ask for no answer");
    let came = of.received + of.duplicates;
    assert_eq!((gaps.n, told.one_way), (came - 1, came), "{of:?}");
    let intended = packets.sent + packets.never_sent + packets.refused;
    assert_eq!(intended, 200, "{packets:?}");
    // The account that the client got is the sink's own, where its farewell arrived.
    let lost = packets.sent - of.received;
    assert!(packets.unaccounted > 0 || packets.lost == lost, "{packets:?} {of:?}");
    // All of them together are the time from the first to the last.
    let (mean, rate) = (gaps.mean_ns.unwrap(), of.receptions.per_second.unwrap());
    assert!((mean * rate / 1e9 - 1.0).abs() < 0.005, "{mean} {rate}");
    let report = whylate(["report", &directory.display().to_string()]).output().unwrap();
    let text = said(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = format!("{came} messages that ask for no reply came");
    assert!(text.contains(&answer), "no `{answer}` in {text}");
}

/// A client that is ended with the test.
struct Sending(Child);

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_sink_that_is_killed_leaves_the_distances_up_to_its_last_checkpoint() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (sink, directory) = started(home.path());
    let words =
        format!("rtt {} --one-way --rate 500pps --duration 4m --warmup 10ms --no-trace", sink.at());
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(home.path().join("client")).stdout(Stdio::null()).stderr(Stdio::null());
    let _sending = Sending(command.spawn().unwrap());
    let kept = || {
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        (series(&run, SERIES)?.n > 50).then_some(())
    };
    until("a checkpoint has distances", kept);
    send_to_process(Pid(sink.id() as i32), SIGKILL).unwrap();
    drop(sink);
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Running);
    let gaps = checked(&run, &directory);
    let reflected = run.reflected.as_deref().expect("what it did");
    // The counts are those of the first interval's end, or of the tenth after it.
    assert!(gaps.n + 1 >= reflected.one_way && gaps.n > 0, "{} {}", gaps.n, reflected.one_way);
}
