//! Programs on interfaces: whose they are, where they run, and how they go.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use whylate_port::bpf::{
    Attached, BpfError, HeldBy, Messages, Mode, Reflector, Steering, Take, Verdict, Wanted,
};
use whylate_suite::{absent, missing};
use whylate_sys::xdp::Interfaces;

use crate::frames::{PORT, message};
use crate::places::{Place, interface};
use crate::{form, ready};

/// Tells the helper below to hold a program on the interface of this name.
const HOLD: &str = "WHYLATE_TEST_HOLD";

fn attach(name: &str, wanted: Wanted) -> Result<Attached<Steering>, BpfError> {
    let take = Take::Messages(Messages::to_ports(&[PORT]));
    Steering::attach((&interface(name)).into(), &take, 1, wanted)
}

/// The program that is on an interface, by its number.
fn on(name: &str) -> Option<u32> {
    Interfaces::open().unwrap().attached(interface(name).index).unwrap()
}

/// May programs be loaded here?
fn may() -> bool {
    ready(Steering::load(&Take::Everything, 1)).is_some()
}

/// Waits, up to a bound, for what the kernel does in its own time.
fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..6_000 {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_program_is_in_the_driver_while_it_is_held_and_gone_when_it_is_dropped() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    place.inside(|| {
        let attached = attach("far", Wanted::Any).unwrap();
        let facts = attached.facts();
        assert_eq!((facts.interface.as_str(), facts.name.as_str()), ("far", "whylate_steer"));
        assert_eq!((facts.mode, facts.native_refused.as_ref()), (Mode::Native, None));
        assert_eq!(on("far"), Some(facts.id));
        assert!(attached.is_attached());
        drop(attached);
        assert!(soon(|| on("far").is_none()));
    });
}

#[test]
fn a_program_of_somebody_else_is_named_and_stays() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    place.inside(|| {
        let theirs = attach("far", Wanted::Any).unwrap();
        for wanted in [Wanted::Any, Wanted::Only(Mode::Native), Wanted::Only(Mode::Generic)] {
            let refusal = attach("far", wanted).unwrap_err();
            assert!(matches!(refusal, BpfError::Occupied { .. }), "{refusal}");
            let told = refusal.to_string();
            let number = format!("number {}", theirs.facts().id);
            assert!(told.contains("`whylate_steer`") && told.contains(&number), "{told}");
        }
        assert!(theirs.is_attached());
        drop(theirs);
        assert!(soon(|| on("far").is_none()));
        // One that no link holds, as other tools attach it.
        let take = Take::Everything;
        let theirs = Steering::load(&take, 1).unwrap();
        let interfaces = Interfaces::open().unwrap();
        let index = interface("far").index;
        interfaces.attach(index, &theirs, whylate_sys::xdp::GENERIC_MODE).unwrap();
        let id = on("far").unwrap();
        let refusal = attach("far", Wanted::Any).unwrap_err();
        assert!(
            matches!(refusal, BpfError::Occupied { id: found, .. } if found == id),
            "{refusal}"
        );
        assert_eq!(on("far"), Some(id), "it is still there");
        let ours = Steering::load(&take, 1).unwrap();
        let generic = whylate_sys::xdp::GENERIC_MODE;
        assert!(interfaces.attach(index, &ours, generic).is_err(), "no program takes its place");
        assert!(interfaces.detach(index, &ours, id + 1, generic).is_err(), "nor takes it away");
        assert_eq!(on("far"), Some(id));
        interfaces.detach(index, &theirs, id, generic).unwrap();
        assert_eq!(on("far"), None);
    });
}

#[test]
fn where_the_driver_cannot_the_network_stack_runs_it_and_the_reason_is_told() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    place.inside(|| {
        // Loopback has no driver that could.
        let attached = attach("lo", Wanted::Any).unwrap();
        assert_eq!(attached.facts().mode, Mode::Generic);
        let reason = attached.facts().native_refused.clone().unwrap();
        assert!(!reason.is_empty());
        assert!(attached.is_attached());
        drop(attached);
        assert!(soon(|| on("lo").is_none()));
        let refusal = attach("lo", Wanted::Only(Mode::Native)).unwrap_err();
        assert!(matches!(refusal, BpfError::Refused { mode: Mode::Native, .. }), "{refusal}");
        assert!(refusal.to_string().contains(&reason), "{refusal}");
        assert_eq!(on("lo"), None);
    });
}

#[test]
fn what_the_driver_says_is_passed_on() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    if !place.ip("link set near mtu 9000") {
        return absent("no long frames on virtual links here");
    }
    place.inside(|| {
        let attached = attach("far", Wanted::Any).unwrap();
        assert_eq!(attached.facts().mode, Mode::Generic);
        let reason = attached.facts().native_refused.as_ref().unwrap();
        assert!(reason.contains("MTU"), "{reason}");
    });
}

#[test]
fn an_interface_that_is_deleted_takes_the_program_along_and_nothing_panics() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    let attached = place.inside(|| attach("far", Wanted::Any).unwrap());
    let known = place.inside(|| interface("far"));
    assert!(attached.is_attached());
    assert!(place.ip("link del near"));
    assert!(!attached.is_attached());
    assert_eq!(attached.program().counts().unwrap().of(Verdict::Handed), 0);
    drop(attached);
    place.inside(|| {
        let take = Take::Everything;
        let refusal = Steering::attach((&known).into(), &take, 1, Wanted::Any).unwrap_err();
        assert!(matches!(refusal, BpfError::Gone { .. }), "{refusal}");
        assert!(refusal.to_string().contains("`far` is gone"), "{refusal}");
    });
}

/// No test by itself: what the next one kills.
#[test]
fn holds_a_program_where_it_is_asked_to() {
    let Ok(name) = std::env::var(HOLD) else { return };
    let attached = attach(&name, Wanted::Any).unwrap();
    println!("\nheld {}", attached.facts().held_by == HeldBy::Link);
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_process_that_is_killed_leaves_no_program_behind() {
    let Some(place) = Place::with_link().filter(|_| may()) else { return };
    place.inside(|| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "attaching::holds_a_program_where_it_is_asked_to", "--nocapture"])
            .env(HOLD, "far")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let held = lines.map_while(Result::ok).find(|line| line.starts_with("held "));
        let was_there = on("far").is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        match held.as_deref() {
            Some("held true") => assert!(was_there),
            Some(_) => return absent("this kernel has no links for XDP"),
            None => panic!("the process that was to hold a program held none"),
        }
        assert!(soon(|| on("far").is_none()));
    });
}

#[test]
fn requests_of_an_ordinary_socket_are_answered_in_the_kernel() {
    let Some(here) = Place::new().filter(|_| may()) else { return };
    let Some(there) = Place::new() else { return };
    let far = there.path.display();
    let made = here.ip(&format!("link add near type veth peer name far netns {far}"))
        && here.ip("addr add 198.18.0.1/24 dev near")
        && there.ip("addr add 198.18.0.2/24 dev far")
        // The far end first: the near one can send from when it is up.
        && there.ip("link set far up")
        && here.ip("link set near up");
    if !made {
        return missing("no `ip`, or it makes no virtual links here");
    }
    let reflector = there.inside(|| {
        let messages = Messages::to_ports(&[PORT]);
        let wanted = Wanted::Only(Mode::Native);
        Reflector::attach((&interface("far")).into(), &messages, &form(), wanted)
    });
    let reflector = match reflector {
        Ok(reflector) => reflector,
        Err(refusal @ BpfError::Refused { .. }) => return absent(&refusal),
        Err(refusal) => panic!("{refusal}"),
    };
    here.inside(|| {
        // A virtual link takes what is sent back by a program only where the other end runs one, too;
        // this one lets everything pass.
        let _passing = attach("near", Wanted::Only(Mode::Native)).unwrap();
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.connect(("198.18.0.2", PORT)).unwrap();
        let mut answered = 0;
        for number in 0..50_u8 {
            let mut request = message(5, 64);
            request[23] = number;
            socket.send(&request).unwrap();
            let mut room = [0; 100];
            let Ok(length) = socket.recv(&mut room) else { continue };
            request[5] = 6;
            assert_eq!(room[..length], request[..], "only the kind is another one");
            answered += 1;
        }
        socket.send(&message(10, 64)).unwrap();
        socket.send(b"something else").unwrap();
        let counted = || reflector.program().counts().unwrap();
        assert!(soon(|| counted().of(Verdict::OneWay) == 1 && counted().of(Verdict::Foreign) == 1));
        let counts = counted();
        assert_eq!(counts.of(Verdict::Answered), 50);
        assert_eq!(answered, 50, "{:?}", counts.occurred().collect::<Vec<_>>());
        assert_eq!(counts.of(Verdict::Foreign), 1);
    });
}
