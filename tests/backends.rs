//! The same requests over several backends in turns: each has its row, rounds are interleaved, and what
//! cannot be measured is a row with the reason.

use whylate_model::backends::{BackendRole, BackendRow, Backends, Claim};
use whylate_model::run::Run;

use crate::needs;
use crate::program::{self, recorded, said, whylate};
use crate::requests::{Bed, logged, series};

fn found(run: &Run) -> &Backends {
    run.backends.as_deref().expect("a comparison")
}

fn row<'a>(of: &'a Backends, backend: &str) -> &'a BackendRow {
    let named = |row: &&BackendRow| row.backend == backend && row.role != BackendRole::Control;
    of.rows.iter().find(named).unwrap_or_else(|| panic!("no row of {backend}"))
}

/// Every round has each of these once, and not always in one order.
fn is_interleaved(of: &Backends, rows: &[u32]) {
    assert_eq!(of.order.len(), of.rounds as usize);
    for order in &of.order {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, rows, "{:?}", of.order);
    }
    // Of few rounds of few, all may have come to the same order.
    let varied = of.order.iter().any(|order| *order != of.order[0]);
    assert!(varied || rows.len() < 6, "{:?}", of.order);
}

/// All round trips of a row are in the log, round by round.
fn adds_up(recorded: &program::Recorded, row: &BackendRow) {
    let measured = row.measured.as_ref().unwrap();
    let n: u64 = measured.rounds.iter().map(|round| round.n).sum();
    let one = series(&recorded.run, &measured.service).expect("a series");
    assert!(n > 0 && one.n == n, "{}: {n} and {}", row.backend, one.n);
    assert_eq!(logged(&recorded.directory, &measured.service).len(), n, "{}", row.backend);
    assert!(measured.packets.add_up(), "{:?}", measured.packets);
}

#[test]
fn every_backend_that_this_machine_has_gets_a_row_with_samples_in_every_round() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("backends") else { return };
    let words = format!(
        "rtt --bed {} --compare-backends --rounds 3 --duration 900ms --warmup 100ms --rate 4kpps --seed 5",
        bed.0
    );
    let recorded = recorded(&words);
    let of = found(&recorded.run);
    let names: Vec<&str> = of.rows.iter().map(|row| row.backend.as_str()).collect();
    let all = ["udp spin", "udp spin", "udp block", "packet spin", "packet poll", "xdp spin"];
    assert_eq!(names, all);
    for row in &of.rows {
        assert_eq!(row.reason, None, "{}", row.backend);
        assert_eq!(row.measured.as_ref().unwrap().rounds.len(), 3, "{}", row.backend);
        adds_up(&recorded, row);
    }
    is_interleaved(of, &[0, 1, 2, 3, 4, 5]);
    assert!(!of.both_ends && of.other_end.contains("spins over udp for all"), "{}", of.other_end);
    let text = said(&recorded.output);
    assert!(text.contains("What each backend saves"), "{text}");
    // Where the load of others leaves one of two rows without a percentile, nothing is told of it.
    let supports = |row: &BackendRow, percent: f64| {
        let one = series(&recorded.run, &row.measured.as_ref().unwrap().service).unwrap();
        one.quantiles.iter().any(|of| (of.percent - percent).abs() < 1e-9 && of.value.is_some())
    };
    let is_told = |row: &BackendRow, of_saved: fn(f64) -> bool| {
        let mut percents = row.saved.iter().map(|saved| saved.percent).filter(|of| of_saved(*of));
        percents.any(|percent| supports(&of.rows[0], percent) && supports(row, percent))
    };
    let savings = of.rows.iter().any(|row| is_told(row, |_| true));
    assert_eq!(text.contains("Saved against udp spin"), savings, "{text}");
    let control = is_told(&of.rows[1], |percent| (percent - 50.0).abs() < 1e-9);
    assert_eq!(text.contains("control: p50"), control, "{text}");
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(page.contains("id=\"backends\""));
}

#[test]
fn over_loopback_frames_are_a_row_with_the_reason_and_sockets_are_compared() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --compare-backends udp,packet:spin,xdp:spin --rounds 3 --duration 900ms --warmup \
                 200ms --rate 2kpps";
    let recorded = recorded(words);
    let of = found(&recorded.run);
    for backend in ["packet spin", "xdp spin"] {
        let row = row(of, backend);
        assert!(row.measured.is_none() && row.saved.is_empty());
        let reason = row.reason.as_deref().unwrap();
        assert!(reason.contains("loopback carries no Ethernet frames"), "{reason}");
    }
    for row in &of.rows[..3] {
        adds_up(&recorded, row);
    }
    is_interleaved(of, &[0, 1, 2]);
    // Rounds of which no percentile is known count for none of them; so few are no claim in any case.
    if let Some(sleeps) = row(of, "udp block").saved_at(50.0) {
        assert!(matches!(sleeps.claim, Some(Claim::Nothing { .. })), "{sleeps:?}");
    }
    assert!(said(&recorded.output).contains("packet spin was not measured: loopback"));
}

#[test]
fn a_missing_right_is_the_reason_of_a_row_and_the_others_go_on() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() || needs::program("setpriv").is_none() {
        return;
    }
    let Some(bed) = Bed::up("rights") else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "--compare-backends udp:spin,xdp:spin,packet:spin --rounds 2 --duration 600ms --warmup \
                 100ms --no-trace";
    let mut command = std::process::Command::new("setpriv");
    let without = "-net_raw,-bpf";
    command.args(["--bounding-set", without, "--inh-caps", without]).arg(program::path());
    command.args(["rtt", "--bed", &bed.0]).args(words.split_whitespace()).arg("-o").arg(&directory);
    let output = command.env("NO_COLOR", "1").env("XDG_STATE_HOME", home.path()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    let of = found(&run);
    let reason = row(of, "packet spin").reason.clone().expect("a reason");
    assert!(reason.contains("CAP_NET_RAW"), "{reason}");
    let reason = row(of, "xdp spin").reason.clone().expect("a reason");
    assert!(["CAP_NET_RAW", "CAP_BPF"].iter().any(|named| reason.contains(named)), "{reason}");
    assert_eq!(row(of, "udp spin").measured.as_ref().unwrap().rounds.len(), 2);
    let is_told = |row: &str| row.starts_with("packet spin ") && row.ends_with(" not measured");
    assert!(said(&output).lines().any(is_told), "{}", said(&output));
}

#[test]
fn what_says_nothing_together_with_a_comparison_is_refused_and_nothing_is_left() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for (words, part) in [
        ("--compare-backends tcp", "`tcp` is not a backend to compare"),
        ("--compare-backends udp --wait spin", "cannot be used with"),
        ("--compare-backends udp --runs 3", "cannot be used with"),
        ("--rounds 3", "--compare-backends"),
        ("--both-ends", "--compare-backends"),
        ("127.0.0.1:9 --compare-backends udp --both-ends", "cannot be used with"),
        ("--compare-backends xdp:spin", "loopback carries none"),
        (
            "198.18.0.2:9 --compare-backends xdp:spin,dpdk:spin --interface lo --from 198.18.0.9 --vdev \
             net_af_xdp0,iface=lo",
            "keeps its interface's queue",
        ),
        ("127.0.0.1:9 --compare-backends udp --vdev net_null0", "--vdev is for --transport dpdk"),
        ("--compare-backends udp --rounds 1000 --duration 10s", "fewer --rounds"),
    ] {
        let directory = home.path().join("run");
        let mut command = whylate(["rtt"]);
        let output = command.args(words.split_whitespace()).arg("-o").arg(&directory).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {}", said(&output));
        assert!(said(&output).contains(part), "{words}: {}", said(&output));
        assert!(!directory.exists(), "{words}");
    }
}
