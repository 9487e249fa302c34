//! A reflector's run directory: while it goes on, when it is told to end, and after it was killed.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use whylate_clock::HardwareCounter;
use whylate_model::directory::RunDir;
use whylate_model::reflect::ReflectedEnd;
use whylate_model::run::{Run, RunState};
use whylate_model::{Hertz, Nanos, Pid};
use whylate_net::{ClosedLoop, Cookie, Ended, Protocol, Raw};
use whylate_port::{Client, Options, Setup, Target, Transport, Wait};
use whylate_sys::signal::send_to_process;

use crate::program::{self, said, until, whylate};
use crate::reflect::Started;
use crate::requests::{SIGKILL, logged, lowest, series};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SERIES: &str = "reflect-residence";
const SECOND: u64 = 1_000_000_000;

/// A reflector with a run directory.
fn started(home: &Path, words: &str) -> (Started, PathBuf) {
    let directory = home.join("run");
    let words = format!("--listen 127.0.0.1:0 {words} -o {}", directory.display());
    (Started::new(&words), directory)
}

/// Asks so many times, each request answered, by a client of its own.
fn ask(at: &str, cookie: u64, requests: u64) {
    let setup =
        Setup { counter: HardwareCounter::open().unwrap(), rate: Hertz(1e10), wait: Wait::Block };
    let target = Target::Address(at.parse().unwrap());
    let client =
        Client { transport: Transport::Udp, target, from: None, options: Options::default() };
    let mut port = client.open(setup, Raw::new(Cookie(cookie)).framing()).unwrap();
    let settings = ClosedLoop {
        requests,
        warmup_requests: 5,
        timeout: Nanos(20 * SECOND),
        duration: Nanos(60 * SECOND),
        ..ClosedLoop::new(Hertz(1e10))
    };
    let outcome = settings.run(&mut *port, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert!(matches!(outcome.why, Ended::Requests), "{:?}", outcome.why);
}

fn opened(directory: &Path) -> String {
    said(&program::reported(directory, &[]))
}

/// What holds of every run in which so many requests were answered.
fn check(run: &Run, directory: &Path, answered: u64) {
    let of = series(run, SERIES).expect("residence");
    assert_eq!((of.n, logged(directory, SERIES).len()), (answered, answered));
    let least = of.min.unwrap();
    assert!(least.0 > 0 && lowest(&of.quantiles).is_none_or(|median| median >= least), "{of:?}");
    let reflected = run.reflected.as_deref().expect("what it did");
    assert_eq!(reflected.answered, answered);
    assert!(reflected.socket.as_ref().is_some_and(|of| of.receive_buffer > Some(0)));
    assert!(
        !run.host.kernel.is_empty()
            && run.settings["listening at"].to_string().starts_with("127.0.0.1:")
    );
}

#[test]
fn a_server_that_is_told_to_end_leaves_a_run_that_a_report_opens() {
    let _alone = program::alone();
    for signal in [SIGTERM, SIGINT] {
        let home = tempfile::tempdir().unwrap();
        let (server, directory) = started(home.path(), "");
        ask(server.at(), 1, 300);
        ask(server.at(), 2, 100);
        let told = server.stop_by(signal);
        assert_eq!((told.answered, told.ended), (400, ReflectedEnd::Stopped));
        let run = program::read(&directory);
        assert_eq!(run.state, RunState::Complete);
        check(&run, &directory, 400);
        let reflected = run.reflected.as_deref().unwrap();
        assert_eq!(reflected.clients.iter().map(|of| of.answered).collect::<Vec<_>>(), [300, 100]);
        assert_eq!(reflected.residence.as_ref().map(|of| of.samples), Some(400));
        let text = opened(&directory);
        for words in ["Answered 400 requests", "What was reflected", "until it was stopped"] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        let first = program::as_used(["report"]).arg(&directory).output().unwrap();
        let first = said(&first);
        assert!(
            first.contains(
                "Answered 400 requests from 2 clients; none was refused; it listened for "
            ),
            "{first}"
        );
        assert!(first.contains(" whylate report ") && first.lines().count() < 24, "{first}");
        let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
        assert!(page.contains("What was reflected") && page.contains("residence"));
    }
}

#[test]
fn a_server_that_is_killed_leaves_what_it_did_up_to_its_last_checkpoint() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (server, directory) = started(home.path(), "--wait block");
    ask(server.at(), 1, 200);
    until("a checkpoint has all of them", || {
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        (run.reflected.as_deref()?.answered == 200).then_some(())
    });
    send_to_process(Pid(server.id() as i32), SIGKILL).unwrap();
    drop(server);
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Running);
    check(&run, &directory, 200);
    let reflected = run.reflected.as_deref().unwrap();
    assert_eq!(reflected.ended, ReflectedEnd::GoingOn);
    assert_eq!(reflected.clients.iter().map(|of| of.answered).collect::<Vec<_>>(), [200]);
    let text = opened(&directory);
    assert!(text.contains("its end is not known") && text.contains("did not end"), "{text}");
    assert!(RunDir::open(&directory).is_ok());
}

#[test]
fn a_server_that_cannot_listen_leaves_no_directory_and_one_that_is_there_is_not_written_over() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let attempt = |listen: &str| {
        let words = ["reflect", "--listen", listen, "--idle", "1s", "-o"];
        whylate(words).arg(&directory).output().unwrap()
    };
    let output = attempt("192.0.2.1:7000");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("no interface here has it") && !directory.exists());
    let output = attempt("127.0.0.1:0");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    program::ended(output.status.code(), &program::read(&directory));
    let before = std::fs::read(directory.join("run.json")).unwrap();
    assert!(said(&output).contains("No measured request was answered."), "{}", said(&output));
    assert_eq!(attempt("127.0.0.1:0").status.code(), Some(1));
    assert_eq!(std::fs::read(directory.join("run.json")).unwrap(), before);
}
