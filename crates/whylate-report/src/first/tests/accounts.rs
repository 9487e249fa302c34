//! First screens of what a server, a forwarder and a delay line account for, with a run directory and without.

use whylate_model::Nanos;
use whylate_model::delay::{DelayCounts, DelayEnd};
use whylate_model::forward::ForwardEnd;
use whylate_model::reflect::{
    Reflected, ReflectedClient, ReflectedConnections, ReflectedEnd, Residence, ResidencePercentile,
};
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use super::super::first_of_account;
use super::{assert_fits, assert_small, made_by, shown, style};
use crate::delay::tests::line;
use crate::forward::tests::forwarded;
use crate::kept::kept;
use crate::reflected::tests::reflected;

/// A server of so many clients without trouble.
fn served(clients: u64) -> Reflected {
    let of = reflected();
    let client = |at: u64| ReflectedClient {
        from: Some(format!("192.0.2.{}:40460", at + 1)),
        answered: 50_000 - at,
        max: Some(Nanos(95_700 - at)),
        finished: at > 0,
        ..of.clients[0].clone()
    };
    let clients: Vec<ReflectedClient> = (0..clients).map(client).collect();
    let answered = clients.iter().map(|of| of.answered).sum();
    let value = |percent, ns| ResidencePercentile { percent, value: Some(Nanos(ns)), low: None };
    let residence = of.residence.clone().map(|of| Residence {
        samples: answered,
        percentiles: vec![value(50.0, 900), value(99.0, 1_600), value(99.9, 3_230)],
        max: Nanos(95_700),
        ..of
    });
    Reflected {
        answered,
        residence,
        warm_ups: 9_994,
        foreign: 0,
        unsent: 0,
        first_unsent: None,
        connections: None,
        without_account: 0,
        clients,
        ..of.clone()
    }
}

fn screen(of: &Reflected) -> String {
    let screen = first_of_account(of, style());
    assert_small(&screen);
    screen
}

/// A run of this command.
fn run_of(command: &str, account: impl FnOnce(&mut Run)) -> Run {
    let mut run = made_by(command, kept("gaps").1);
    run.series.clear();
    account(&mut run);
    run
}

#[test]
fn a_server_tells_how_many_it_answered_how_long_they_stayed_and_whose_they_were() {
    insta::assert_snapshot!("reflect", screen(&served(1)));
    assert!(screen(&served(1)).starts_with(
        "Answered 50,000 requests from 1 client; none was refused; it listened for 2 s."
    ));
    for clients in [12, 64, 256] {
        let screen = screen(&served(clients));
        let rows = screen.lines().filter(|line| line.starts_with("192.0.2.")).count() as u64;
        assert!(rows >= 6, "{screen}");
        assert!(screen.contains(&format!("and {} more: --full", clients - rows)), "{screen}");
    }
    insta::assert_snapshot!("reflect-12", screen(&served(12)));
}

#[test]
fn what_got_no_reply_is_told_with_the_reason_and_so_are_connections() {
    let of = Reflected { other_version: 1_200, ..reflected() };
    let screen = screen(&of);
    let flat = screen.replace('\n', " ");
    assert!(flat.contains("; 1,204 messages got no reply;"), "{screen}");
    assert!(
        screen.contains("Without a reply: 3 of another protocol, 1,200 of another version"),
        "{screen}"
    );
    assert!(screen.contains("Connections: 1 closed without a message."), "{screen}");
    assert!(screen.contains("5 requests are in no client's account"), "{screen}");
    // Of a percentile that the sample does not support the one below it is the least.
    assert!(screen.contains(" ≥0.9"), "{screen}");
}

#[test]
fn a_server_that_nobody_asked_or_that_lost_its_interface_says_so() {
    let of = Reflected { answered: 0, residence: None, clients: Vec::new(), ..served(1) };
    assert!(screen(&of).starts_with("No measured request was answered; it listened for 2 s.\n"));
    let lost = Reflected { ended: ReflectedEnd::Lost, ..of };
    assert!(screen(&lost).contains("It ended early: its interface went away."));
    let stuck = ReflectedConnections { accepted: 9, turned_away: 1, broken: 2, cut: 3, stuck: 4 };
    let all = Reflected { connections: Some(stuck), ..lost };
    assert!(screen(&all).contains("1 turned away, 2 closed without a message, 3 cut in a message"));
    for (turned_away, told) in
        [(0, "; none was refused;"), (1, "; 1 connection was turned"), (2, "; 2 connections were ")]
    {
        let connections = Some(ReflectedConnections { turned_away, ..stuck });
        let screen = screen(&Reflected { connections, ..served(1) }).replace('\n', " ");
        assert!(screen.contains(told), "{screen}");
        assert_eq!(screen.contains("none was refused"), turned_away == 0, "{screen}");
    }
}

#[test]
fn an_account_has_a_trust_only_where_something_limits_it_and_a_run_always() {
    let mut of = served(1);
    assert!(!screen(&of).contains("Trust:"), "{}", screen(&of));
    of.warnings.push(Warning::AnotherRun { pid: 7, same_cpu: true });
    assert!(screen(&of).contains("\nTrust: poor. Another whylate"), "{}", screen(&of));
    of.warnings.clear();
    let run = run_of("whylate reflect --idle 2s -o RUN", |run| run.reflected = Some(Box::new(of)));
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("\nAnswered 50,000 requests from 1 client"), "{screen}");
}

#[test]
fn a_forwarder_tells_what_it_carried_dropped_and_held() {
    let of = forwarded();
    let screen = first_of_account(&of, style());
    assert_small(&screen);
    insta::assert_snapshot!("forward", screen);
    let mut lost = of.clone();
    lost.ended = ForwardEnd::PortLost;
    let screen = first_of_account(&lost, style());
    assert!(screen.contains("It ended early: a port was lost."), "{screen}");
    let mut many = of.clone();
    many.directions = vec![of.directions[0].clone(); 24];
    many.ports = vec![of.ports[0].clone(); 24];
    for direction in &mut many.directions {
        "x".repeat(300).clone_into(&mut direction.from);
        direction.received = u64::MAX;
        direction.forwarded = u64::MAX / 2;
    }
    assert_small(&first_of_account(&many, style()));
    let run = run_of("whylate forward eth1 eth2 --transport xdp -o RUN", |run| {
        run.forward = Some(Box::new(many));
    });
    assert_fits(&shown(&run, style()));
    let mut none = of;
    for of in &mut none.directions {
        (of.received, of.forwarded, of.waiting, of.residence) = (0, 0, 0, None);
    }
    let screen = first_of_account(&none, style());
    assert_small(&screen);
    assert!(screen.starts_with("No frame came in 2 s.\n"), "{screen}");
    assert!(screen.contains("how long they stayed is not known"), "{screen}");
}

#[test]
fn a_delay_line_tells_what_it_passed_on_how_late_and_what_it_dropped() {
    let of = line();
    let screen = first_of_account(&of, style());
    assert_small(&screen);
    insta::assert_snapshot!("delay", screen);
    let mut many = of.clone();
    many.ended = DelayEnd::PortLost;
    many.directions = vec![of.directions[0].clone(); 30];
    many.directions.iter_mut().for_each(|of| of.law = "schedule:".to_owned() + &"x".repeat(300));
    let screen = first_of_account(&many, style());
    assert_small(&screen);
    assert!(screen.contains("It ended early: a port was lost."), "{screen}");
    let run = run_of("whylate delay eth1 eth2 --transport xdp --delay 20us -o RUN", |run| {
        run.delay = Some(Box::new(many));
    });
    assert_fits(&shown(&run, style()));
    let mut none = of;
    for of in &mut none.directions {
        of.counts = DelayCounts::default();
        (of.residence, of.lateness) = (None, None);
    }
    let screen = first_of_account(&none, style());
    assert_small(&screen);
    assert!(screen.starts_with("Nothing came between eth1 and eth2 in 2 s.\n"), "{screen}");
}
