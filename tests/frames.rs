//! Past the socket: round trips over packet and xdp, and reflectors by every port and in the kernel, in
//! beds of the test's own; ordinary hosts as the other end; and what goes wrong with interfaces.

use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};

use whylate_model::frames::{Copies, Taken};
use whylate_model::reflect::{Reflected, ReflectedEnd};
use whylate_model::run::Run;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};
use whylate_sys::signal::send_to_process;

use crate::between::SIGINT;
use crate::needs;
use crate::program::{self, said, until};
use crate::reflect::Started;
use crate::requests::{Bed, SIGKILL, SIGSTOP, flow};

/// Enough to see that everything comes, in a fraction of a second: fewer than any ring, link or socket on
/// the way has room for, so that none is lost however long a host keeps one end from running.
const SHORT: &str =
    "--rate 500pps --duration 200ms --warmup 20ms --timeout 30s --no-trace --wait spin";
/// Goes on until it is ended.
const LONG: &str = "--rate 200pps --duration 60s --warmup 50ms --no-trace --wait spin";
/// What it sends when nothing ends it early.
const ALL_OF_IT: u64 = 60 * 200;
/// Frames that come to the client of such a run before something happens to it.
const BEFORE: u64 = 60;
/// Where reflectors listen.
const PORT: u16 = 4100;

/// How a reflector in the other part waits, and where.
fn blocking() -> String {
    let cpu = whylate_sys::affinity::get().first().copied().unwrap_or(CpuId(0));
    format!("--wait block --cpu {cpu}")
}

/// A version of IP: the kernel's addresses at both ends, and ones that it has not.
struct Ip {
    there: &'static str,
    other_there: &'static str,
    other_here: &'static str,
}

const V4: Ip = Ip { there: "198.18.0.2", other_there: "198.18.0.12", other_here: "198.18.0.11" };
const V6: Ip = Ip { there: "[fd00::2]", other_there: "[fd00::12]", other_here: "fd00::11" };

/// A bed with addresses of the versions that this machine has.
fn bed(what: &str) -> Option<Bed> {
    needs::cpus(2)?;
    let bed = Bed::up(what)?;
    if has_v6() {
        ip(&bed, "client", "addr add fd00::1/64 dev client0 nodad");
        ip(&bed, "server", "addr add fd00::2/64 dev server0 nodad");
    }
    Some(bed)
}

/// Does this machine have IPv6?
fn has_v6() -> bool {
    UdpSocket::bind("[::1]:0").is_ok()
}

/// The versions of IP that this machine has.
fn versions() -> Vec<&'static Ip> {
    if has_v6() {
        return vec![&V4, &V6];
    }
    needs::absent("this machine has no IPv6");
    vec![&V4]
}

/// Something that runs in a part of the bed.
fn inside(bed: &Bed, part: &str, words: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{part}", bed.0)]);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}

fn ip(bed: &Bed, part: &str, words: &str) {
    let output = inside(bed, part, &format!("ip {words}")).output().unwrap();
    assert!(output.status.success(), "{words}: {}", said(&output));
}

/// Everything that was said, on one line.
fn words_of(output: &Output) -> String {
    said(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Our program in the client's part.
fn here(bed: &Bed, words: &str) -> Command {
    let mut command = inside(bed, "client", "");
    command.arg(program::path()).args(words.split_whitespace());
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    command
}

/// A reflector in the server's part.
fn there(bed: &Bed, words: &str) -> Started {
    Started::new(&format!("--bed {} {words}", bed.0))
}

/// Measures from the client's part, to a good end or to a doubt of the machine.
fn measured(bed: &Bed, words: &str) -> Run {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = here(bed, words).arg("-o").arg(&directory).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    run
}

/// Everything came back, and the account says so.
fn whole(run: &Run, what: &str) {
    let packets = flow(run).packets;
    assert!(packets.add_up(), "{what}: {packets:?}");
    assert!(packets.sent > 0, "{what}: {packets:?}");
    assert_eq!((packets.received, packets.lost), (packets.sent, 0), "{what}: {packets:?}");
}

/// What a client's port of frames says of itself.
fn told(run: &Run, port: &str, what: &str) {
    let frames = flow(run).way.frames.as_ref().expect("a port of frames");
    let seen = frames.seen.expect("counted at the end");
    assert!(seen.messages >= flow(run).packets.received, "{what}: {seen:?}");
    assert_eq!((frames.interface.as_str(), frames.copies), ("client0", Copies::Copy), "{what}");
    match port {
        "xdp" => assert!(frames.taken.is_some() && frames.need_wakeup, "{what}: {frames:?}"),
        _ => assert!(frames.taken.is_none(), "{what}: {frames:?}"),
    }
    let copied = |warning: &Warning| matches!(warning, Warning::NotToBeHad { .. });
    assert_eq!(run.warnings.iter().any(copied), !frames.instead.is_empty(), "{what}");
}

/// What a reflector says of itself.
fn answered(reflected: &Reflected, port: &str, run: &Run, what: &str) {
    assert_eq!(reflected.answered, flow(run).packets.sent, "{what}: {reflected:?}");
    assert_eq!(reflected.frames.is_some(), matches!(port, "packet" | "xdp"), "{what}");
    assert_eq!(reflected.program.is_some(), port == "xdp-tx", "{what}");
    assert_eq!(reflected.residence.is_none(), port == "xdp-tx", "{what}");
    if let Some(program) = &reflected.program {
        let of = |wanted: &str| program.frames.iter().find(|one| one.what == wanted);
        assert_eq!(of("answered").map(|of| of.frames), Some(reflected.answered), "{what}");
        assert!(program.held_by_process, "{what}: this kernel has no links for programs");
    }
}

fn pairs(client: &str, of: &Ip) {
    let _alone = program::alone();
    if needs::lacks(client) {
        return;
    }
    if !versions().iter().any(|one| one.there == of.there) {
        return;
    }
    let Some(bed) = bed("pairs") else { return };
    for server in needs::offered(["udp", "packet", "xdp", "xdp-tx"]) {
        let what = format!("{client} to {server} at {}", of.there);
        // A virtual link takes what a program in the driver sends back only where the other end runs
        // one, too.
        let behind = if client == "packet" { "--attach generic" } else { "" };
        let how = if server == "xdp-tx" { behind.to_owned() } else { blocking() };
        let reflector = there(&bed, &format!("--listen {}:{PORT} --port {server} {how}", of.there));
        let words = format!("rtt {} --port {client} --interface client0 {SHORT}", reflector.at());
        let run = measured(&bed, &words);
        whole(&run, &what);
        told(&run, client, &what);
        answered(&reflector.stop(), server, &run, &what);
    }
}

#[test]
fn a_packet_client_is_answered_by_every_reflector_over_ipv4() {
    pairs("packet", &V4);
}

#[test]
fn a_packet_client_is_answered_by_every_reflector_over_ipv6() {
    pairs("packet", &V6);
}

#[test]
fn an_xdp_client_is_answered_by_every_reflector_over_ipv4() {
    pairs("xdp", &V4);
}

#[test]
fn an_xdp_client_is_answered_by_every_reflector_over_ipv6() {
    pairs("xdp", &V6);
}

/// Requests in the shortest frames of Ethernet, to reflectors of each kind: in this program, in the kernel.
#[test]
fn requests_in_frames_of_64_bytes_are_answered_by_every_reflector_and_accounted_for() {
    let _alone = program::alone();
    let Some(bed) = bed("shortest") else { return };
    for client in needs::offered(["packet", "xdp"]) {
        for server in needs::offered(["udp", "packet", "xdp", "xdp-tx"]) {
            let what = format!("{client} to {server} with 18 bytes");
            let behind = if client == "packet" { "--attach generic" } else { "" };
            let how = if server == "xdp-tx" { behind.to_owned() } else { blocking() };
            let listen = format!("--listen {}:{PORT} --port {server} {how}", V4.there);
            let reflector = there(&bed, &listen);
            let words = format!(
                "rtt {} --size 18 --port {client} --interface client0 {SHORT}",
                reflector.at()
            );
            let run = measured(&bed, &words);
            whole(&run, &what);
            told(&run, client, &what);
            let asked = &flow(&run).asked;
            assert_eq!((asked.bytes, asked.frame_bytes), (18, Some(64)), "{what}");
            answered(&reflector.stop(), server, &run, &what);
            if server != "xdp-tx" {
                // Its farewell, which is longer, is of the same client, where it came in time.
                let other = flow(&run).other_end.as_ref();
                let same = other.is_none_or(|of| of.answered == flow(&run).packets.sent);
                assert!(same, "{what}: {other:?}");
            }
        }
    }
}

#[test]
fn frames_by_xdp_leave_also_where_the_kernel_is_called_without_being_asked_whether_it_has_to_be() {
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = bed("waking") else { return };
    for (words, asks) in [("", true), ("--no-need-wakeup", false)] {
        let listen = format!("--listen 198.18.0.2:{PORT} --port xdp {} {words}", blocking());
        let reflector = there(&bed, &listen);
        let words =
            format!("rtt {} --port xdp --interface client0 {SHORT} {words}", reflector.at());
        let run = measured(&bed, &words);
        whole(&run, &words);
        let frames = flow(&run).way.frames.as_ref().expect("a port of frames");
        assert_eq!((frames.need_wakeup, frames.copies), (asks, Copies::Copy), "{words}");
        answered(&reflector.stop(), "xdp", &run, &words);
    }
}

#[test]
fn both_ends_in_a_network_of_their_own_hear_each_other_and_account_for_all() {
    let _alone = program::alone();
    let Some(bed) = bed("vlan") else { return };
    for (client, server) in
        [("packet", "packet"), ("packet", "xdp"), ("xdp", "packet"), ("xdp", "xdp")]
    {
        if needs::lacks(client) || needs::lacks(server) {
            continue;
        }
        for of in versions() {
            let what = format!("{client} to {server} at {}", of.other_there);
            let reflector = there(
                &bed,
                &format!(
                    "--listen {}:{PORT} --interface server0 --port {server} --vlan 7 {}",
                    of.other_there,
                    blocking()
                ),
            );
            let words = format!(
                "rtt {} --port {client} --interface client0 --from {} --vlan 7 {SHORT}",
                reflector.at(),
                of.other_here
            );
            let run = measured(&bed, &words);
            whole(&run, &what);
            let frame = flow(&run).asked.frame_bytes;
            let ip = if of.there.starts_with('[') { 40 } else { 20 };
            assert_eq!(frame, Some(64 + 8 + ip + 18 + 4), "{what}");
            answered(&reflector.stop(), server, &run, &what);
        }
    }
    // Another network is another one.
    let at = format!("--listen {}:{PORT} --interface server0", V4.other_there);
    let reflector = there(&bed, &format!("{at} --port packet --vlan 8"));
    let to = format!("rtt {} --port packet --interface client0", reflector.at());
    refused(here(&bed, &format!("{to} --vlan 7 {SHORT}")), 1, &["nobody at `client0`"]);
    assert_eq!(reflector.stop().answered, 0);
}

#[test]
fn our_own_reflector_through_a_bed_is_of_the_same_kind_as_the_client() {
    let _alone = program::alone();
    let Some(bed) = bed("own") else { return };
    for port in needs::offered(["packet", "xdp"]) {
        let words = format!("rtt --bed {} --port {port} --ring 256 {SHORT}", bed.0);
        let recorded = program::recorded(&words);
        whole(&recorded.run, port);
        told(&recorded.run, port, port);
        let frames = flow(&recorded.run).way.frames.as_ref().unwrap();
        assert_eq!((frames.receive_ring, frames.send_ring), (256, 256), "{port}");
        // Its farewell may have been too late to be told.
        assert!(flow(&recorded.run).other_end.is_none_or(|end| end.foreign == 0), "{port}");
        let costs = flow(&recorded.run).way.costs.expect("a loop that spins and takes in");
        assert!(costs.send.ticks > 0 && costs.receive.ticks > 0, "{costs:?}");
        let text = words_of(&recorded.output);
        for words in
            ["frames of interface client0", "rings", "frames came", "a packet costs the client"]
        {
            assert!(text.contains(words), "{port}: no `{words}` in {text}");
        }
        let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
        assert!(page.contains("frames of interface client0"), "{port}");
    }
}

#[test]
fn ordinary_hosts_find_a_port_of_frames_and_are_answered_by_it() {
    let _alone = program::alone();
    let Some(bed) = bed("hosts") else { return };
    for server in needs::offered(["packet", "xdp"]) {
        for of in versions() {
            let what = format!("{server} at {}", of.other_there);
            // What it heard of the last one, who had the same address.
            ip(&bed, "client", "neigh flush dev client0");
            let at = format!("--listen {}:{PORT} --interface server0", of.other_there);
            let reflector = there(&bed, &format!("{at} --port {server} {}", blocking()));
            let run = measured(&bed, &format!("rtt {} --port udp {SHORT}", reflector.at()));
            whole(&run, &what);
            // The kernel of the other host knows who has the address: it asked, and was told.
            let address = of.other_there.trim_matches(['[', ']']);
            let mut asked = inside(&bed, "client", &format!("ip neigh show {address}"));
            let text = said(&asked.output().unwrap());
            assert!(text.contains("lladdr"), "{what}: {text}");
            let reflected = reflector.stop();
            answered(&reflected, server, &run, &what);
            let seen = reflected.frames.unwrap().seen.unwrap();
            assert!(seen.answered > 0, "{what}: {seen:?}");
        }
    }
}

/// What cannot be measured, why, and with nothing left behind.
fn refused(mut command: Command, status: i32, why: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = command.arg("-o").arg(&directory).output().unwrap();
    let text = words_of(&output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in why {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    assert!(!directory.exists(), "{text}");
}

#[test]
fn rights_copies_and_rings_that_there_are_not_are_named_before_anything_is_measured() {
    let _alone = program::alone();
    let Some(bed) = bed("refused") else { return };
    let to = |port: &str, more: &str| {
        format!("rtt 198.18.0.2:{PORT} --port {port} --interface client0 {SHORT} {more}")
    };
    refused(here(&bed, &to("xdp", "--copying zero-copy")), 1, &["cannot do without copies"]);
    refused(here(&bed, &to("packet", "--frame-buffer 1024")), 1, &["MTU of 1500", "1024"]);
    refused(here(&bed, &to("xdp", "--ring 100")), 1, &["a ring of 100", "power of two"]);
    refused(here(&bed, &to("xdp", "--queues 63")), 1, &["queue 63", "no such queue"]);
    ip(&bed, "client", "link set client0 mtu 9000");
    refused(here(&bed, &to("xdp", "")), 1, &["MTU of 9000", "9278", "4096"]);
    ip(&bed, "client", "link set client0 mtu 1500");
    let Some(_) = needs::program("setpriv") else { return };
    for (port, lost, named) in [
        ("packet", "-net_raw", "CAP_NET_RAW"),
        ("xdp", "-net_raw", "CAP_NET_RAW"),
        ("xdp", "-bpf,-sys_admin", "CAP_BPF"),
    ] {
        let mut command = inside(&bed, "client", "setpriv --inh-caps -all");
        command.args(["--bounding-set", lost]).arg(program::path());
        command.args(to(port, "").split_whitespace());
        refused(command, 1, &[named]);
    }
}

#[test]
fn a_program_in_the_kernel_goes_behind_a_driver_that_cannot_or_is_refused_where_that_was_demanded()
{
    let _alone = program::alone();
    let Some(bed) = bed("driver") else { return };
    // A driver without programs.
    ip(&bed, "server", "link add quiet type bridge");
    ip(&bed, "server", "addr add 198.18.1.1/24 dev quiet");
    ip(&bed, "server", "link set quiet up");
    let reflected = there(&bed, &format!("--listen 198.18.1.1:{PORT} --port xdp-tx")).stop();
    let program = reflected.program.as_ref().unwrap();
    assert_eq!((program.taken, program.interface.as_str()), (Taken::Generic, "quiet"));
    assert!(program.native_refused.is_some(), "{program:?}");
    let said_so = |warning: &Warning| warning.to_string().contains("(generic)");
    assert!(reflected.warnings.iter().any(said_so), "{:?}", reflected.warnings);
    let native = format!("reflect --bed {} --listen 198.18.1.1:{PORT} --port xdp-tx", bed.0);
    let command = |words: &str| program::whylate(words.split_whitespace());
    refused(command(&format!("{native} --attach native")), 1, &["in native mode"]);
    // Somebody else's program is named and left alone.
    let first = there(&bed, &format!("--listen 198.18.0.2:{PORT} --port xdp-tx --attach generic"));
    let second = format!("reflect --bed {} --listen 198.18.0.2:{} --port xdp-tx", bed.0, PORT + 1);
    refused(command(&second), 1, &["runs a program already", "`whylate_reflect`"]);
    let run =
        measured(&bed, &format!("rtt 198.18.0.2:{PORT} --port packet --interface client0 {SHORT}"));
    whole(&run, "the first goes on");
    // Killed, it leaves none: another one takes the place.
    let on_it = || {
        let output = inside(&bed, "server", "ip -d link show dev server0").output().unwrap();
        said(&output).contains("prog/xdp")
    };
    assert!(on_it());
    send_to_process(Pid(first.id() as i32), SIGKILL).unwrap();
    drop(first);
    until("the kernel takes the program away", || (!on_it()).then_some(()));
    let again = there(&bed, &format!("--listen 198.18.0.2:{PORT} --port xdp-tx")).stop();
    assert_eq!(again.ended, ReflectedEnd::Stopped);
    assert!(!on_it(), "it is detached at its end");
}

#[test]
fn a_reflector_by_xdp_is_behind_a_driver_without_programs_or_refused_where_the_driver_was_demanded()
{
    let _alone = program::alone();
    if needs::lacks("xdp") {
        return;
    }
    let Some(bed) = bed("behind") else { return };
    ip(&bed, "server", "link add quiet type bridge");
    ip(&bed, "server", "addr add 198.18.1.1/24 dev quiet");
    ip(&bed, "server", "link set quiet up");
    let words = format!("--listen 198.18.1.1:{PORT} --port xdp {}", blocking());
    let reflected = there(&bed, &words).stop();
    let frames = reflected.frames.as_ref().unwrap();
    assert_eq!((frames.taken, frames.interface.as_str()), (Some(Taken::Generic), "quiet"));
    let because = |said: &String| said.contains("behind the driver of `quiet` (generic): ");
    assert!(frames.instead.iter().any(because), "{frames:?}");
    let native = format!("reflect --bed {} {words} --attach native", bed.0);
    refused(program::whylate(native.split_whitespace()), 1, &["in native mode"]);
}

#[test]
fn a_program_in_the_kernel_has_a_run_directory_and_ends_when_nothing_comes() {
    let _alone = program::alone();
    let Some(bed) = bed("kept") else { return };
    let words = format!(
        "reflect --bed {} --listen 198.18.0.2:{PORT} --port xdp-tx --idle 1s --attach generic",
        bed.0
    );
    let recorded = program::recorded(&words);
    let reflected = recorded.run.reflected.as_deref().unwrap();
    assert_eq!((reflected.ended, reflected.answered), (ReflectedEnd::Idle, 0));
    assert_eq!(reflected.program.as_ref().unwrap().interface, "server0");
    assert!(words_of(&recorded.output).contains("A program of the kernel answered"));
}

/// Frames that the interface of the client's part has sent so far (`tx`), or that came to it (`rx`).
fn counted(bed: &Bed, interface: &str, way: &str) -> u64 {
    let words = format!("ip -j -s link show dev {interface}");
    let output = inside(bed, "client", &words).output().unwrap();
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    links[0]["stats64"][way]["packets"].as_u64().unwrap()
}

/// Waits until so many frames more have passed an interface in this way.
fn passed(bed: &Bed, (interface, way): (&str, &str), more: u64) {
    let before = counted(bed, interface, way);
    until("frames pass", || (counted(bed, interface, way) > before + more).then_some(()));
}

/// Begins a long run, does something to it once it measures, and gives what it left, which has to end
/// with `status`.
fn disturbed(bed: &Bed, words: &str, status: &[i32], disturb: impl FnOnce(Pid)) -> (Run, String) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = here(bed, words);
    command.arg("-o").arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = counted(bed, "client0", "rx");
    let child = command.spawn().unwrap();
    let pid = Pid(child.id() as i32);
    // Those of the greeting and of the warm-up are fewer.
    until("it measures", || (counted(bed, "client0", "rx") > before + BEFORE).then_some(()));
    disturb(pid);
    let output = child.wait_with_output().unwrap();
    assert!(status.contains(&output.status.code().unwrap_or(-1)), "{words}: {}", said(&output));
    let run = program::read(&directory);
    // Only what is done to it in its midst ends it before its time.
    let planted: &[&str] = if status == [4] { &[" ended before its time: "] } else { &[] };
    program::ended_but_for(output.status.code(), &run, planted);
    (run, words_of(&output))
}

/// The reason why a run ended before its time.
fn ended_early(warnings: &[Warning]) -> Option<&str> {
    warnings.iter().find_map(|warning| match warning {
        Warning::PartEndedEarly { reason, .. } => Some(reason.as_str()),
        _ => None,
    })
}

#[test]
fn a_link_that_goes_away_in_the_run_ends_it_by_name_and_what_was_measured_is_kept() {
    let _alone = program::alone();
    for port in needs::offered(["packet", "xdp"]) {
        for (words, named) in
            [("link set client0 down", "went down"), ("link delete client0", "was deleted")]
        {
            let Some(bed) = bed("gone") else { return };
            let _reflector = there(&bed, &format!("--listen 198.18.0.2:{PORT} --port udp"));
            let rtt = format!("rtt 198.18.0.2:{PORT} --port {port} --interface client0 {LONG}");
            let (run, text) = disturbed(&bed, &rtt, &[4], |_| ip(&bed, "client", words));
            let reason = ended_early(&run.warnings).expect("a warning");
            assert!(reason.contains("client0") && reason.contains(named), "{port}: {reason}");
            let packets = flow(&run).packets;
            assert!(packets.received > 0 && packets.add_up(), "{port}: {packets:?}");
            assert!(text.contains(named), "{port}: {text}");
        }
    }
}

#[test]
fn a_reflector_whose_link_goes_away_tells_what_it_did_and_that_it_is_not_whole() {
    let _alone = program::alone();
    for (port, words) in [
        ("packet", "link set server0 down"),
        ("xdp", "link set server0 down"),
        ("xdp-tx", "link set server0 down"),
        ("packet", "link delete server0"),
        ("xdp", "link delete server0"),
        ("xdp-tx", "link delete server0"),
    ] {
        if needs::lacks(port) {
            continue;
        }
        let Some(bed) = bed("lost") else { return };
        let how = if port == "xdp-tx" { "--attach generic" } else { "--wait block" };
        let at = format!("--listen 198.18.0.2:{PORT} --port {port} {how}");
        let reflector = there(&bed, &at);
        let to = format!("rtt 198.18.0.2:{PORT} --port packet --interface client0 {SHORT}");
        let run = measured(&bed, &to);
        ip(&bed, "server", words);
        let reflected = reflector.ended(4);
        assert_eq!(reflected.ended, ReflectedEnd::Lost, "{port}: {reflected:?}");
        // What the load of others dropped on its way was answered or not.
        let packets = flow(&run).packets;
        let answered = packets.received..=packets.sent;
        assert!(answered.contains(&reflected.answered), "{port}: {reflected:?} {packets:?}");
        let reason = ended_early(&reflected.warnings).expect("a warning");
        assert!(reason.contains("server0"), "{port}: {reason}");
    }
}

#[test]
fn an_interface_that_is_renamed_in_the_run_costs_a_run_nothing() {
    let _alone = program::alone();
    for port in needs::offered(["packet", "xdp"]) {
        let Some(bed) = bed("name") else { return };
        let _reflector = there(&bed, &format!("--listen 198.18.0.2:{PORT} --port udp"));
        let rtt = format!("rtt 198.18.0.2:{PORT} --port {port} --interface client0");
        let mut renamed = false;
        let (run, _) = disturbed(&bed, &format!("{rtt} {LONG} --timeout 30s"), &[0, 4], |client| {
            // Kernels from 6.3 on rename an interface that is up.
            let output =
                inside(&bed, "client", "ip link set client0 name other0").output().unwrap();
            renamed = output.status.success();
            let name = if renamed { "other0" } else { "client0" };
            passed(&bed, (name, "rx"), BEFORE);
            send_to_process(client, SIGINT).unwrap();
        });
        if !renamed {
            return needs::absent("an interface that is up is not renamed here");
        }
        whole(&run, port);
        assert_eq!(ended_early(&run.warnings), None, "{port}");
    }
}

#[test]
fn a_reflector_of_frames_that_is_killed_ends_the_run_with_doubt_and_its_account_adds_up() {
    let _alone = program::alone();
    let Some(bed) = bed("killed") else { return };
    for port in needs::offered(["packet", "xdp"]) {
        let words = format!("rtt --bed {} --port {port} {LONG} --timeout 100ms", bed.0);
        let (run, _) = disturbed(&bed, &words, &[4], |client| {
            // The program itself has taken the place of what started it.
            let reflector = program::reflector_of(client.0 as u32);
            // What is sent while it stands still is never answered.
            send_to_process(reflector, SIGSTOP).unwrap();
            passed(&bed, ("client0", "tx"), 20);
            send_to_process(reflector, SIGKILL).unwrap();
        });
        let reason = ended_early(&run.warnings).expect("a warning");
        assert!(reason.contains("the reflector's process ended"), "{port}: {reason}");
        let packets = flow(&run).packets;
        assert!(packets.received > 0 && packets.lost > 0 && packets.add_up(), "{packets:?}");
        // Frames that are not answered tell a client nothing: that its reflector has gone ends it.
        assert!(packets.sent < ALL_OF_IT, "{port}: it went on to its end: {packets:?}");
    }
}
