//! The same requests over several backends in turns: each has its row, rounds are interleaved, and what
//! one saves is claimed only where the first agrees with itself.

use whylate_model::backends::{BackendRole, BackendRow, Backends, Claim};
use whylate_model::run::Run;

use crate::needs;
use crate::pairs::{Promise, say, unclaimed, wanted};
use crate::program::{self, record_ending, said, whylate};
use crate::requests::{Bed, logged, series};

/// Half of the round trip of spinning sockets, at most: what AF_XDP is to take.
const HALF: f64 = 0.5;
/// Rounds of that, unless a number of them is asked for, and what all of a round is measured for and
/// discarded before that.
const ROUNDS: usize = 8;
const ROUND_MS: usize = 500;
const WARMUP_MS: usize = 50;
/// So many times the rounds at most, where a number of them is asked for.
const MOST_TIMES: usize = 4;
/// Half of the control's interval at most, for a claim, as the program has it.
const CLOSE: f64 = 0.03;
/// Rounds are not alike where a hundredth of the requests was not sent: that much of the CPU must have been
/// taken from 2.7 s of a backend.
const UNLIKE_NS: f64 = 27e6;

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
#[ignore = "live figure: to accept"]
fn every_backend_that_this_machine_has_gets_a_row_with_samples_in_every_round() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("backends") else { return };
    let words = format!(
        "rtt --bed {} --compare-backends --rounds 3 --duration 2s --warmup 300ms --rate 4kpps --seed 5",
        bed.0
    );
    let recorded = record_ending(&words, &[0, 4]);
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
    for part in ["What each backend saves", "Saved against udp spin", "control: p50"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(page.contains("id=\"backends\""));
}

#[test]
#[ignore = "live figure: to accept"]
fn xdp_at_both_ends_takes_no_more_than_half_of_the_round_trip_of_sockets_where_that_can_be_claimed()
{
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("half") else { return };
    // Where a claim is wanted, a recording whose control is wide is made anew, all of it, with more rounds. What
    // decides is the control alone.
    let most = if wanted().is_some() { MOST_TIMES } else { 1 };
    let mut times = 1;
    loop {
        let recorded = at_both_ends(&bed, times * wanted().unwrap_or(ROUNDS));
        let of = found(&recorded.run);
        let xdp = row(of, "xdp spin");
        assert_eq!((&xdp.reason, of.both_ends), (&None, true));
        let median = xdp.saved_at(50.0).expect("rounds of both");
        let (low, high) = median.ratio_interval.expect("rounds enough");
        let control = of.control().and_then(|row| row.saved_at(50.0)).expect("a control");
        let width = control.half_width().unwrap_or(f64::INFINITY);
        let figure = format!(
            "xdp spin over udp spin at both ends of a veth: p50 {:.3} ({low:.3} .. {high:.3}), udp over \
             itself {:.3} +-{width:.3}, {} rounds",
            median.ratio, control.ratio, median.rounds
        );
        if width > CLOSE && times < most {
            say(&format!("once more with twice the rounds: {figure}"));
            times *= 2;
            continue;
        }
        if let Some(Claim::Nothing { why }) = &median.claim {
            return unclaimed(&format!("{why}; {figure}"));
        }
        // What is promised is of a build that is optimised.
        if cfg!(debug_assertions) {
            return say(&format!("no claim of this build: {figure}"));
        }
        if !Promise::AtMost(HALF).hold((low, high), median.rounds as usize, &figure) {
            unclaimed("it is neither shown nor refuted");
        }
        return;
    }
}

/// Both ways with the reflector of the same, in so many rounds.
fn at_both_ends(bed: &Bed, rounds: usize) -> program::Recorded {
    let words = format!(
        "rtt --bed {} --compare-backends udp:spin,xdp:spin --both-ends --rounds {rounds} --duration {}ms \
         --warmup {}ms --rate 5kpps",
        bed.0,
        rounds * ROUND_MS,
        rounds * WARMUP_MS
    );
    record_ending(&words, &[0, 4])
}

#[test]
#[ignore = "live figure: to accept"]
fn over_loopback_frames_are_a_row_with_the_reason_and_sockets_are_compared() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --compare-backends udp,packet:spin,xdp:spin --rounds 3 --duration 900ms --warmup \
                 200ms --rate 2kpps";
    let measured = || {
        let recorded = record_ending(words, &[0, 4]);
        let of = found(&recorded.run);
        for backend in ["packet spin", "xdp spin"] {
            let row = row(of, backend);
            assert!(row.measured.is_none() && row.saved.is_empty());
            let reason = row.reason.as_deref().unwrap();
            assert!(reason.contains("loopback has no frames"), "{reason}");
        }
        for row in &of.rows[..3] {
            adds_up(&recorded, row);
        }
        is_interleaved(of, &[0, 1, 2]);
        let sleeps = row(of, "udp block").saved_at(50.0).ok_or("no rounds of both")?;
        // A round that the host kept from ending well counts for none of them.
        match &sleeps.claim {
            Some(Claim::Nothing { why }) if why.contains("rounds of both, and it takes") => {}
            _ => return Err(format!("{sleeps:?}")),
        }
        Ok(recorded)
    };
    let cpus = whylate_sys::affinity::get();
    let Some(recorded) = needs::unless_taken(&cpus, UNLIKE_NS, measured) else { return };
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
    let of = found(&run);
    let reason = row(of, "packet spin").reason.clone().expect("a reason");
    assert!(reason.contains("CAP_NET_RAW"), "{reason}");
    let reason = row(of, "xdp spin").reason.clone().expect("a reason");
    assert!(["CAP_NET_RAW", "CAP_BPF"].iter().any(|named| reason.contains(named)), "{reason}");
    assert_eq!(row(of, "udp spin").measured.as_ref().unwrap().rounds.len(), 2);
    assert!(said(&output).contains("packet spin was not measured"), "{}", said(&output));
}

#[test]
fn what_says_nothing_together_with_a_comparison_is_refused_and_nothing_is_left() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for (words, part) in [
        ("--compare-backends tcp", "`tcp` is no backend to compare"),
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
        ("127.0.0.1:9 --compare-backends udp --vdev net_null0", "it is for --port dpdk"),
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
