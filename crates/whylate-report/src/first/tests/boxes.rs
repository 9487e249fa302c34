//! First screens of boxes between two ports, and of calibrations.

use whylate_model::calibration::{Calibration, NotCalibrated};
use whylate_model::device::{Device, Throughput, TwoCaptures};
use whylate_model::run::Run;

use super::{assert_fits, assert_small, made_by, shown, style};
use crate::calibration::tests::{calibration, halving};
use crate::device::tests::{at_size, device};
use crate::kept::kept;

fn emptied(command: &str) -> Run {
    Run { series: Vec::new(), ..made_by(command, kept("gaps").1) }
}

fn of_device(of: Device) -> String {
    let notes = of.notes.iter().map(|_| "remote was refused: one NUMA node".to_owned()).collect();
    let command = "whylate device --box bridge";
    let run = Run { device: Some(Box::new(Device { notes, ..of })), ..emptied(command) };
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert_small(screen.split_once('\n').unwrap().1);
    screen
}

fn of_calibration(of: Calibration) -> String {
    let run = Run { calibration: Some(Box::new(of)), ..emptied("whylate calibrate") };
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert_small(screen.split_once('\n').unwrap().1);
    screen
}

#[test]
fn a_box_is_told_with_its_latency_its_own_part_of_it_and_the_shares_of_its_ports() {
    insta::assert_snapshot!("device", of_device(device()));
}

#[test]
fn of_many_sizes_and_ports_the_first_are_shown_and_the_others_counted() {
    let mut of = device();
    of.sizes = (1..30)
        .map(|at| whylate_model::device::DeviceAtSize { frame_bytes: 64 * at, ..at_size() })
        .collect();
    of.sizes[3].no_bounds = Some("rates lie more than 1 % apart".to_owned());
    of.fan_in[0].sources = vec![of.fan_in[0].sources[0].clone(); 16];
    of.throughput = vec![Throughput {
        configuration: None,
        frame_bytes: 64,
        client_pps: Some(500_000.0),
        client_lost: 0,
        highest_pps: Some(500_000.0),
        lowest_lossy_pps: None,
        tolerated: 0.0,
        trials: Vec::new(),
    }];
    let screen = of_device(of);
    assert_eq!(screen.matches(" more: --full").count(), 2, "{screen}");
    assert!(
        screen.contains("It is store-and-forward and carries at least 500,000 frames of 64 bytes"),
        "{screen}"
    );
    assert!(screen.contains("No bounds for 256 B outbound, local: rates lie"), "{screen}");
}

#[test]
fn a_box_by_captures_or_of_which_nothing_came_has_its_own_answer() {
    let captures = TwoCaptures {
        before: "in.pcap".to_owned(),
        behind: "out.pcap".to_owned(),
        matched: 1_700,
        only_before: 100,
        only_behind: 208,
        ambiguous: 100,
        unjudged: 0,
        left_out: Vec::new(),
        ways: Vec::new(),
        resolution_ns: 1.0,
        clocks: "one".to_owned(),
    };
    let screen = of_device(Device { captures: Some(captures), ..device() });
    assert!(screen.contains("\n1,800 frames are in both captures; 0 went in"), "{screen}");
    let screen = of_device(Device { sizes: Vec::new(), ..device() });
    assert!(
        screen.contains("\n2 ports that sent to one shared it with a fairness of 0.80"),
        "{screen}"
    );
    let none = Device { sizes: Vec::new(), fan_in: Vec::new(), forwarding: Vec::new(), ..device() };
    assert!(of_device(none).contains("\nNothing came through bridge.\n"));
}

#[test]
fn a_calibration_tells_how_far_each_way_to_send_may_be_trusted() {
    let of = calibration();
    let missing =
        vec![NotCalibrated { backend: "dpdk".to_owned(), why: "no huge pages".to_owned() }];
    insta::assert_snapshot!("calibrate", of_calibration(Calibration { missing, ..of }));
}

#[test]
fn of_many_backends_the_best_is_named_and_the_rows_that_do_not_fit_are_counted() {
    let mut of = calibration();
    of.missing = vec![of.missing[0].clone(); 9];
    of.backends = vec![of.backends[0].clone(); 30];
    for (at, backend) in of.backends.iter_mut().enumerate() {
        backend.backend = format!("backend {at} {}", "x".repeat(at * 20));
    }
    let screen = of_calibration(of.clone());
    assert!(screen.contains("No other of the 30 backends is accurate"), "{screen}");
    assert!(screen.contains(" more: --full"), "{screen}");
    for backend in &mut of.backends {
        (backend.limit_raw.percent, backend.limit_compensated.percent) = (None, None);
    }
    let screen = of_calibration(of.clone());
    assert!(screen.contains("No percentile of any of 30 backends is accurate to 1 µs"), "{screen}");
    of.backends.truncate(1);
    of.backends[0].foreign = Some(halving());
    of.backends[0].errors_raw.clear();
    assert!(of_calibration(of.clone()).contains("prints no percentile"));
    of.backends.clear();
    assert!(of_calibration(of).contains("No backend could be calibrated."));
}
