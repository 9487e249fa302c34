//! Private beds: set up, looked at, loaded, killed halfway, and gone without a trace.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use whylate_load::{Program, Wanted, parse, start_by};
use whylate_model::flow::Queues;
use whylate_model::lab::{BedKind, LabStatus};
use whylate_net::lab::Bed;

use crate::needs;
use crate::program::{self, as_used, said, until, whylate};

/// Kills of a bed that is being set up.
const KILLS: u64 = 10;

/// A bed of a test, taken down with it whatever happens.
struct Named(String);

impl Named {
    fn new(what: &str) -> Self {
        Self(format!("t{}-{what}", std::process::id()))
    }

    fn run(&self, words: &str) -> Output {
        whylate(words.split_whitespace()).args(["--name", &self.0]).output().unwrap()
    }

    fn up(&self, kind: &str) {
        let output = self.run(&format!("lab up --kind {kind}"));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }

    /// Everything there is of it: names of namespaces, notes, and processes that name them.
    fn traces(&self) -> Vec<String> {
        let names = |directory: &str| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
        };
        let notes = format!("/run/whylate/lab/{}", self.0);
        let mut found = naming(&format!("{notes}/"));
        found.extend(names("/run/netns").into_iter().filter(|path| path.contains(&self.0)));
        found.extend(Path::new(&notes).exists().then_some(notes));
        found
    }

    /// Everything there is of it now, in an order of its own.
    fn parts(&self) -> Vec<String> {
        let notes = std::fs::read_dir(format!("/run/whylate/lab/{}", self.0));
        let files = notes.into_iter().flatten().flatten().map(|of| of.path().display().to_string());
        let mut parts: Vec<String> =
            self.traces().into_iter().chain(naming(&self.0)).chain(files).collect();
        parts.sort_unstable();
        parts
    }

    /// Processes that name it and end by themselves: all but what serves it.
    fn passing(&self) -> Vec<String> {
        let serves =
            |of: &String| ["ovsdb-server", "ovs-vswitchd"].iter().any(|name| of.contains(name));
        naming(&self.0).into_iter().filter(|of| !serves(of)).collect()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.run("lab down");
    }
}

/// Directories of processes whose command lines hold these words, with their command lines.
fn naming(what: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = processes.filter_map(|process| {
        let process = process.path();
        let words = std::fs::read(process.join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains(what).then(|| format!("{}: {words}", process.display()))
    });
    named.collect()
}

/// Links that a bed has, whatever its kind; those of the switch's own process are its own.
const LINKS: [&str; 6] = ["client0", "server0", "to-client", "to-server", "bridge0", "switch0"];

/// The links outside that are called as those of a bed. Of all others this machine's own programs may make
/// and rename some meanwhile.
fn links_outside() -> Vec<String> {
    let output = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `4: client0@if5: <..`
    let name = |line: &str| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned());
    let mut links: Vec<String> = text.lines().filter_map(name).collect();
    let names = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    links.extend(names.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    links.retain(|link| LINKS.contains(&link.as_str()));
    links.sort_unstable();
    links
}

/// May this machine have beds?
fn beds() -> bool {
    needs::root() && needs::program("ip").is_some()
}

fn a_bed_comes_and_goes(kind: &str, expected: BedKind) {
    let bed = Named::new(kind);
    let outside = links_outside();
    bed.up(kind);
    assert_eq!(links_outside(), outside, "a link is seen outside");
    let status = bed.run("lab status --format json");
    let status: LabStatus = serde_json::from_slice(&status.stdout).unwrap();
    let [found] = &status.beds[..] else { panic!("{status:?}") };
    let notes = found.notes.as_ref().unwrap();
    assert_eq!((found.name.as_str(), notes.kind), (bed.0.as_str(), expected));
    let roles: Vec<&str> = found.namespaces.iter().map(|one| one.role.as_str()).collect();
    assert_eq!(roles, ["client", "device", "server"]);
    for (index, link, address) in [(0, "client0", "198.18.0.1/24"), (2, "server0", "198.18.0.2/24")]
    {
        let links = found.namespaces[index].links.as_ref().unwrap();
        let link = links.iter().find(|one| one.name == link).unwrap();
        assert_eq!((link.state.as_str(), &link.addresses[0][..]), ("up", address));
    }
    // Some kernels put links for tunnels into each new namespace.
    let all = found.namespaces[1].links.as_ref().unwrap();
    let device = all.iter().filter(|one| LINKS.contains(&one.name.as_str())).count();
    let inside: usize = found.namespaces.iter().map(|one| one.processes.len()).sum();
    match expected {
        BedKind::Direct => assert_eq!((device, inside), (0, 0), "{found:?}"),
        BedKind::Bridge => assert_eq!((device, inside), (3, 0), "{found:?}"),
        BedKind::Ovs => assert!(device >= 3 && inside == 2, "{found:?}"),
        BedKind::Open => assert_eq!((device, inside), (2, 0), "{found:?}"),
    }
    let again = bed.run("lab up");
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains(&format!("already ({kind}, up)")), "{}", said(&again));
    let text = said(&bed.run("lab status"));
    assert!(text.contains(&format!("Bed {}: {kind}, up since 20", bed.0)), "{text}");
    let first = as_used(["lab", "status", "--name", &bed.0]).output().unwrap();
    let first = said(&first);
    assert!(first.starts_with(&format!("1 test network is up: {} (", bed.0)), "{first}");
    assert!(first.contains("198.18.0.2/24") && !first.contains("127.0.0.1"), "{first}");
    let down = bed.run("lab down");
    assert_eq!(down.status.code(), Some(0), "{}", said(&down));
    assert_eq!(bed.traces(), Vec::<String>::new());
    assert_eq!(links_outside(), outside);
    let nothing = bed.run("lab down");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(said(&nothing).contains("there is no test network"), "{}", said(&nothing));
}

#[test]
fn a_bed_back_to_back_comes_up_and_goes_without_a_trace() {
    let _alone = program::alone();
    if beds() {
        a_bed_comes_and_goes("direct", BedKind::Direct);
    }
}

#[test]
fn a_bed_back_to_back_with_a_tap_hands_everything_on_and_goes_without_a_trace() {
    let _alone = program::alone();
    if !beds() || needs::program("tc").is_none() {
        return;
    }
    let (bed, outside) = (Named::new("tapped"), links_outside());
    let without = Named::new("untapped");
    without.up("direct");
    assert!(Bed::open(&without.0).unwrap().tap().is_err());
    // That it comes up says that datagrams went through and back.
    bed.up("direct --tap");
    assert_eq!(Bed::open(&bed.0).unwrap().tap().unwrap(), "to-client");
    assert_eq!(links_outside(), outside, "a link is seen outside");
    let text = said(&bed.run("lab status"));
    assert!(text.contains("Tap: to-client"), "{text}");
    assert_eq!(bed.run("lab down").status.code(), Some(0));
    assert_eq!(bed.traces(), Vec::<String>::new());
}

#[test]
fn a_bed_with_a_bridge_comes_up_and_goes_without_a_trace() {
    let _alone = program::alone();
    if beds() {
        a_bed_comes_and_goes("bridge", BedKind::Bridge);
    }
}

#[test]
fn an_open_bed_comes_up_and_goes_without_a_trace() {
    let _alone = program::alone();
    if beds() {
        a_bed_comes_and_goes("open", BedKind::Open);
    }
}

#[test]
fn a_bed_with_a_switch_comes_up_and_goes_without_a_trace() {
    let _alone = program::alone();
    if beds() && needs::program("ovs-vswitchd").is_some() {
        a_bed_comes_and_goes("ovs", BedKind::Ovs);
    }
}

#[test]
fn a_switch_that_is_not_installed_is_refused_by_name_and_nothing_is_made() {
    let _alone = program::alone();
    if !beds() {
        return;
    }
    let only_ip = tempfile::tempdir().unwrap();
    let ip = needs::program("ip").unwrap();
    std::os::unix::fs::symlink(ip, only_ip.path().join("ip")).unwrap();
    let bed = Named::new("none");
    for (path, kind, program) in
        [(only_ip.path(), "ovs", "ovsdb-tool"), (Path::new("/nowhere"), "direct", "ip")]
    {
        let mut command = whylate(["lab", "up", "--kind", kind, "--name", &bed.0]);
        let output = command.env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = said(&output);
        assert!(text.contains(&format!("the program {program}, which is not in PATH")), "{text}");
        assert_eq!(bed.traces(), Vec::<String>::new());
    }
}

#[test]
fn without_root_a_bed_is_refused_by_the_name_of_the_capability() {
    let _alone = program::alone();
    if !beds() || needs::program("setpriv").is_none() {
        return;
    }
    let bed = Named::new("user");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    let words = ["lab", "up", "--name", &bed.0];
    let output = command.arg(program::path()).args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("CAP_SYS_ADMIN"), "{}", said(&output));
    assert_eq!(bed.traces(), Vec::<String>::new());
}

#[test]
fn a_bed_killed_halfway_is_cleaned_up_by_the_next_start() {
    let _alone = program::alone();
    if !beds() {
        return;
    }
    let outside = links_outside();
    let bed = Named::new("killed");
    let kind = match needs::program("ovs-vswitchd") {
        Some(_) => "ovs",
        None => "bridge",
    };
    let mut killed = 0;
    for kill in 0..KILLS {
        let words = ["lab", "up", "--kind", kind, "--name", &bed.0];
        let mut child = whylate(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // By how far it is: the first is killed before there is anything, and each later one once another
        // thing, process or program of its own has come or gone.
        let (mut seen, mut changes) = (bed.parts(), 0);
        while changes < kill && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
            let now = bed.parts();
            changes += u64::from(now != seen);
            seen = now;
        }
        child.kill().unwrap();
        killed += u64::from(child.wait().unwrap().code().is_none());
        until("what it had started has ended", || bed.passing().is_empty().then_some(()));
        let down = bed.run("lab down");
        assert!(matches!(down.status.code(), Some(0 | 1)), "{}", said(&down));
        assert_eq!(bed.traces(), Vec::<String>::new(), "kill {kill}: {}", said(&down));
    }
    // The first at least: it has not begun.
    assert!(killed > 0, "each was up before it was killed");
    assert_eq!(links_outside(), outside);
}

#[test]
fn network_load_goes_through_a_bed_and_not_beside_it() {
    let _alone = program::alone();
    if !beds() {
        return;
    }
    let Some(cpus) = needs::cpus(2) else { return };
    let bed = Named::new("load");
    bed.up("bridge");
    let inside = |words: &[&str]| {
        let mut ip = Command::new("ip");
        let namespace = format!("whylate-{}-client", bed.0);
        let output = ip.args(["netns", "exec", &namespace]).args(words).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let sent = || {
        let text = inside(&["ip", "-j", "-s", "link", "show", "client0"]);
        let links: serde_json::Value = serde_json::from_slice(&text).unwrap();
        links[0]["stats64"]["tx"]["bytes"].as_u64().unwrap()
    };
    // What left by this protocol, as the client's end counts it.
    let left = |protocol: &str, what: &str| {
        let text = String::from_utf8(inside(&["cat", "/proc/net/snmp"])).unwrap();
        let mut rows = text.lines().filter(|line| line.starts_with(protocol));
        let (names, numbers) = (rows.next()?.split(' '), rows.next()?.split(' '));
        names.zip(numbers).find(|(name, _)| *name == what)?.1.parse::<u64>().ok()
    };
    let before = sent();
    let wanted = Wanted {
        kinds: parse("net,net:udp=2000pps,bytes=500").unwrap(),
        disturbed: vec![cpus[1]],
        elsewhere: vec![cpus[0]],
        bed: Some(Bed::open(&bed.0).unwrap()),
        at_most: Duration::from_secs(120),
        ..Wanted::default()
    };
    let tool =
        Program { exe: program::path().to_owned(), arguments: vec![Program::COMMAND.to_owned()] };
    let mut load = start_by(&tool, &wanted).unwrap();
    for (protocol, what) in [("Tcp:", "OutSegs"), ("Udp:", "OutDatagrams")] {
        let before = left(protocol, what).unwrap();
        until("both loads move", || (left(protocol, what)? > before + 100).then_some(()));
    }
    assert_eq!(load.poll(), []);
    let status = said(&bed.run("lab status"));
    let facts = load.stop();
    assert_eq!(status.matches("(whylate)").count(), 4, "{status}");
    let (bulk, datagrams) = (&facts[0], &facts[1]);
    assert!(bulk.amount > 0 && datagrams.amount > 0, "{facts:?}");
    assert!(bulk.what.contains(&format!("through the bed {}", bed.0)), "{}", bulk.what);
    assert!(sent() - before >= bulk.amount + 500 * datagrams.amount, "it went elsewhere");
    assert_eq!(bed.run("lab down").status.code(), Some(0));
    let error = start_by(&tool, &wanted).unwrap_err().to_string();
    assert!(error.contains("there is no test network"), "{error}");
}

#[test]
fn of_two_that_want_one_name_at_the_same_instant_one_has_it_and_the_other_is_told() {
    let _alone = program::alone();
    if !beds() {
        return;
    }
    for _ in 0..3 {
        let bed = Named::new("race");
        let begin = || {
            let mut command = whylate(["lab", "up", "--kind", "direct", "--name", &bed.0]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let ended = [begin(), begin()].map(|child| child.wait_with_output().unwrap());
        let mut codes = ended.each_ref().map(|output| output.status.code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(1)], "{} {}", said(&ended[0]), said(&ended[1]));
        assert!(ended.iter().any(|output| said(output).contains("already (direct, up)")));
        let status = bed.run("lab status --format json");
        let status: LabStatus = serde_json::from_slice(&status.stdout).unwrap();
        let [found] = &status.beds[..] else { panic!("{status:?}") };
        assert!(found.notes.is_some() && found.namespaces.len() == 3, "it is whole: {found:?}");
        assert_eq!(bed.run("lab down").status.code(), Some(0));
        assert_eq!(bed.traces(), Vec::<String>::new());
    }
}

#[test]
fn flows_of_a_bed_with_two_queues_send_by_that_of_their_cpu_and_the_report_says_which_share_one() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2).filter(|_| beds()) else { return };
    let bed = Named::new("queues");
    let up = bed.run("lab up --queues 2");
    assert_eq!(up.status.code(), Some(0), "{}", said(&up));
    let told = said(&up).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("has 2 queues at each end of a link"), "{told}");
    let too_many = Named::new("many");
    let refused = too_many.run("lab up --queues 100000");
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("ask for fewer (--queues)"), "{}", said(&refused));
    assert_eq!(too_many.traces(), Vec::<String>::new());
    // The first CPUs have the queues in their order.
    for (load, expected) in [
        (0, "each flow sends by a transmit queue of its own of client0: load 0, rtt 1"),
        (1, "rtt and load share transmit queue 1 of client0"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let words = format!(
            "rtt --bed {} --rate 500pps --duration 300ms --warmup 50ms --wait block --no-trace --cpus {} \
             --other-cpu {}",
            bed.0, cpus[1], cpus[0]
        );
        let flow = format!(
            "load: rate=500pps one-way wait=block cpu={} other-cpu={}",
            cpus[load],
            cpus[1 - load]
        );
        let mut command = whylate(words.split_whitespace());
        let output = command.args(["--flow", &flow, "-o"]).arg(&directory).output().unwrap();
        let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
        let run = program::read(&directory);
        program::ended(output.status.code(), &run);
        for (flow, queue) in run.flows.iter().zip([1, load as u32]) {
            let socket = flow.way.socket.as_ref().expect("a socket");
            let by = Queues { transmit: 2, receive: 2, sent_by: Some(vec![queue]) };
            assert_eq!(socket.queues.as_ref(), Some(&by), "{}", flow.name);
            assert!(socket.incoming_cpu.is_some(), "{socket:?}");
        }
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
}
