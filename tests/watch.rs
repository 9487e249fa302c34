//! Watching servers that know nothing of it: over UDP and TCP, with one thread and with several, that end
//! in the middle; who is meant by a number, and who may not watch.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use whylate_model::Nanos;
use whylate_model::breakdown::{Point, Station};
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState};
use whylate_model::segments::read_journeys;
use whylate_model::trust::NO_REQUEST;
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, Beside, said, until, whylate};
use crate::requests::SIGKILL;
use crate::watching::{
    ALONE, Foreign, SHORT, SIGINT, TCP, UDP, WORK, Watch, ask_by, ask_datagrams,
    asked_by_short_connections, behind_queued_bytes, behind_queued_datagrams, connected, watched,
};

/// Root and the kernel's tracing.
fn may_watch() -> bool {
    needs::root() && needs::tracefs().is_some()
}

/// Waits for a checkpoint of a watch that is as is wanted: the first is written with the first request, and
/// others now and then.
fn checkpoint(of: &Watch, what: &str, wanted: impl Fn(&Run) -> bool) {
    until(what, || {
        let there = of.directory.join("run.json").exists();
        (there && wanted(&program::read(&of.directory))).then_some(())
    });
}

/// Requests were seen, their parts sum to the whole, and the server's work is in the part between reading
/// and answering: no less than it worked.
fn check(run: &Run, asked: u32) {
    let of = &watched(run).breakdown;
    assert!(of.requests > 0, "{:?}", of.left_out);
    assert!(of.requests <= u64::from(asked) + 2, "{of:?}");
    // How each got its reply, in an account that closes: all by the server's own socket.
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    assert!(pairs.adds_up(), "{pairs:#?}");
    assert!(pairs.by_socket + pairs.by_order >= of.requests, "{pairs:#?}");
    assert!(pairs.by_socket > 0, "{pairs:#?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
    let work = of.all.parts.iter().find(|part| {
        part.part.from == Point::there(Station::Read) && part.part.to == Point::back(Station::Sent)
    });
    let work = work.unwrap_or_else(|| panic!("{:#?}", of.all));
    let planted: f64 = WORK.parse::<f64>().unwrap() * 1e9;
    assert!(work.mean_ns >= planted * 0.9, "{work:?}");
}

/// Every request of the log has its points in their order.
fn in_order(directory: &Path, least: u64) {
    let directory = RunDir::open(directory).unwrap();
    let mut requests = 0;
    for journey in read_journeys(&directory).unwrap().map(Result::unwrap) {
        let known: Vec<_> = journey.passed.iter().flatten().map(|(at, _)| *at).collect();
        assert!(known.is_sorted(), "{journey:?}");
        requests += 1;
    }
    assert!(requests >= least, "{requests} of {least}");
}

#[test]
fn a_foreign_server_of_datagrams_is_taken_apart_by_its_port_with_one_thread_and_with_several() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    for threads in ["1", "3"] {
        let Some(server) = Foreign::start(UDP, threads) else { return };
        let watch = Watch::start(&format!("udp:{} --log-requests", server.port));
        ask_datagrams(server.port, 200);
        watch.signal(SIGINT);
        let (run, text, watch) = watch.end();
        assert_eq!(run.state, RunState::Complete, "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("were followed by their socket"), "{text}");
        check(&run, 200);
        in_order(&watch.directory, watched(&run).breakdown.requests);
        let process = &watched(&run).process;
        assert_eq!((process.pid.0 as u32, process.port), (server.child.id(), Some(server.port)));
        assert!(!process.threads.is_empty(), "{process:?}");
        program::reported(&watch.directory, &[]);
        assert!(watch.directory.join("report.html").exists());
    }
}

#[test]
fn a_foreign_server_of_streams_is_taken_apart_by_its_number_threads_that_it_starts_meanwhile_too() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(TCP, "1") else { return };
    let watch = Watch::start(&format!("pid:{} --log-requests", server.child.id()));
    // Each connection has a thread that was not there when watching began. Each is asked until it was seen.
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
        tasks.count()
    };
    let clients = [0, 1].map(|_| {
        let port = server.port;
        Beside::begin(move |stop| {
            let mut stream = connected(port);
            while !stop.load(Ordering::Relaxed) {
                ask_by(&mut stream, 1);
            }
        })
    });
    until("both have their threads", || (threads() > 2).then_some(()));
    checkpoint(&watch, "both are seen", |run| watched(run).process.threads.len() >= 2);
    for client in clients {
        client.end();
    }
    watch.signal(SIGINT);
    let (run, _, watch) = watch.end();
    let of = &watched(&run).breakdown;
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    assert!(pairs.adds_up() && pairs.by_socket > 0, "{pairs:#?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
    assert!(watched(&run).process.threads.len() >= 2, "{:?}", watched(&run).process);
    in_order(&watch.directory, of.requests);
}

#[test]
fn a_server_that_ends_in_the_middle_is_said_to_and_what_it_did_is_kept() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(mut server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{} --log-requests --duration 60s", server.port));
    ask_datagrams(server.port, 100);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    // The test ended it.
    let (run, text, watch) = watch.end_but_for(&["the process ended"]);
    check(&run, 100);
    in_order(&watch.directory, watched(&run).breakdown.requests);
    let ended = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { reason, .. } if reason.contains("ended"));
    assert!(run.warnings.iter().any(ended), "{:?}", run.warnings);
    assert!(text.contains("the process ended"), "{text}");
}

#[test]
fn a_watch_that_is_killed_leaves_a_run_up_to_its_last_checkpoint_and_no_trace() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{}", server.port));
    ask_datagrams(server.port, 100);
    checkpoint(&watch, "there is a checkpoint", |_| true);
    watch.signal(SIGKILL);
    let directory = watch.directory.clone();
    let id = watch.child.as_ref().unwrap().id();
    until("it is gone", || {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        (status.is_empty() || status.contains(") Z")).then_some(())
    });
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Running);
    assert!(watched(&run).breakdown.requests > 0);
    // The next start puts back what it left.
    let other = Watch::start(&format!("{}", server.port));
    other.signal(SIGINT);
    let (_, _, _other) = other.end();
    let left = needs::tracefs().unwrap().instances().unwrap();
    assert!(!left.contains(&format!("whylate-{id}-way")), "{left:?}");
}

#[test]
fn that_requests_of_threads_that_end_before_they_are_found_are_missed_is_said() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some((run, text)) = asked_by_short_connections() else { return };
    let of = &watched(&run).breakdown;
    assert!(of.requests <= u64::from(SHORT), "{} of {SHORT}: {text}", of.requests);
    let looking = watched(&run).looking.expect("they were looked for");
    assert_eq!(looking.every, Nanos(200_000_000));
    // The list holds none that was never found.
    let told = watched(&run).process.threads.len() as u64;
    assert!(told <= looking.threads, "{:?}", watched(&run).process);
}

#[test]
fn datagrams_that_were_queued_before_the_watch_are_taken_for_none_of_the_requests_that_it_sees() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some((run, text)) = behind_queued_datagrams() else { return };
    let of = &watched(&run).breakdown;
    // Those that came behind what nobody saw are left out, unless the kernel told of the buffers, and so
    // are a few until the queue is known to be empty: no request has the reading of another.
    assert!(of.requests <= u64::from(ALONE), "{}: {text}", of.requests);
}

#[test]
fn bytes_that_were_queued_before_the_watch_are_taken_for_none_of_the_requests_that_it_sees() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some((run, text)) = behind_queued_bytes() else { return };
    let of = &watched(&run).breakdown;
    // As of datagrams: those that came behind what nobody saw are left out, and a few until the queue is
    // known to be empty; were they read by the calls of before, they would be more than these.
    assert!(of.requests <= u64::from(ALONE), "{}: {text}", of.requests);
}

#[test]
fn a_quiet_server_is_told_to_have_been_quiet() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{}", server.port));
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end();
    assert_eq!(watched(&run).breakdown.requests, 0);
    assert!(run.verdict.reasons().iter().any(|reason| reason == NO_REQUEST), "{:?}", run.verdict);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("one of its threads read a message"), "{text}");
}

#[test]
fn who_is_not_there_is_refused_with_who_listens_and_who_may_not_watch_with_the_remedy() {
    let _alone = program::alone();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stream = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = std::process::id();
    let refused = |words: &str, status: i32, part: &str| {
        let output = whylate(["watch", words, "--duration", "100ms"]).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {text}");
        assert!(text.contains(part), "{words}: {text}");
    };
    refused("nginx", 2, "pid:812");
    refused("2147483647", 1, "there is no process 2147483647");
    // A socket that is not the other kind.
    let port = socket.local_addr().unwrap().port();
    refused(&format!("tcp:{port}"), 1, &format!("nobody listens at port {port}"));
    let port = stream.local_addr().unwrap().port();
    refused(&format!("udp:{port}"), 1, &format!("nobody listens at port {port}"));
    if let Some(setpriv) = needs::program("setpriv").filter(|_| needs::root()) {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
        let output = Command::new(setpriv)
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(program::path())
            .args(["watch", &format!("pid:{own}"), "--duration", "100ms", "-o"])
            .arg(home.path().join("run"))
            .env("XDG_STATE_HOME", home.path())
            .current_dir(home.path())
            .output()
            .unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("cannot watch") && text.contains("run as root"), "{text}");
        assert!(!home.path().join("run").exists(), "nothing is left behind: {text}");
    }
}
