//! Round trips beside those of sockperf and qperf, and departures beside those of trafgen.
//!
//! Both clients ask one and the same server from the same CPU, with messages of the same size at the
//! same rate and one under way, and neither sleeps; compared is a single packet's time from its send
//! to its reply. sockperf's `under-load` is no peer on a machine of two CPUs: it sends and receives
//! on two threads that never sleep, and the server has a CPU of its own. What trafgen calls a rate
//! (`-b`) is one of seconds: it sends what a second is to have at once, and waits for the next.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whylate_host::procfs::Steal;
use whylate_model::CpuId;
use whylate_model::flow::ProcessVerdict;

use crate::needs;
use crate::pairs::{Against, Claim, Promise, Round, say, wanted};
use crate::program::{self, said, until};
use crate::reflect;
use crate::requests::{Bed, logged, series};

/// Requests a second of both clients.
const RATE: u64 = 5_000;
/// What sockperf leaves out at either end of its time.
const LEFT_OUT_MS: u64 = 460;
/// Rounds are added so long, unless a number of them is asked for: that is one, and no claim.
const BUDGET: Duration = Duration::from_secs(5);
/// Sizes of messages: a small one, one that fills a frame, and one of several frames.
const SIZES: [usize; 3] = [64, 1_400, 9_000];
/// The address and the port of a server inside a bed.
const INSIDE: (&str, u16) = ("198.18.0.2", 11_111);

/// Where both sides are.
struct Site {
    bed: Option<Bed>,
    server: CpuId,
    client: CpuId,
}

/// Another's process, killed with the test.
struct Theirs(Child);

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Site {
    fn loopback() -> Option<Self> {
        let cpus = needs::cpus(2)?;
        Some(Self { bed: None, server: cpus[0], client: cpus[cpus.len() - 1] })
    }

    fn in_a_bed() -> Option<Self> {
        Some(Self { bed: Some(Bed::up("peers")?), ..Self::loopback()? })
    }

    /// A program on one side, on no other CPU than `cpu`, where one is given.
    fn command(&self, side: &str, cpu: Option<CpuId>, program: impl AsRef<OsStr>) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(Bed(name)) = &self.bed {
            words.extend(["ip", "netns", "exec"].map(str::to_owned));
            words.push(format!("whylate-{name}-{side}"));
        }
        if let Some(cpu) = cpu {
            words.extend(["taskset".to_owned(), "-c".to_owned(), cpu.to_string()]);
        }
        let mut command = match words.split_first() {
            None => return clean(Command::new(program)),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest);
                command
            }
        };
        command.arg(program);
        clean(command)
    }

    /// Where a server of this side is reached.
    fn free_place(&self) -> (String, u16) {
        let Some(_) = &self.bed else {
            let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            return (free.ip().to_string(), free.port());
        };
        (INSIDE.0.to_owned(), INSIDE.1)
    }

    /// sockperf as a server that never sleeps, once it has its port.
    fn sockperf(&self, (ip, port): &(String, u16)) -> Theirs {
        let mut command = self.command("server", Some(self.server), "sockperf");
        command.args(["server", "--nonblocked", "-i", ip, "-p", &port.to_string()]);
        let started = Theirs(command.stdout(Stdio::null()).spawn().unwrap());
        let sockets = format!("/proc/{}/net/udp", started.0.id());
        until("sockperf listens", || {
            let text = std::fs::read_to_string(&sockets).ok()?;
            text.contains(&format!(":{port:04X} ")).then_some(())
        });
        started
    }
}

fn clean(mut command: Command) -> Command {
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// The quantiles that are compared, and their names.
const NAMES: [&str; 3] = ["p50", "p99", "p99.9"];
const PER_MILLE: [usize; 3] = [500, 990, 999];

/// Seconds that sockperf runs: where a claim is wanted, a p99.9 has an interval (3 688 requests, here
/// 12 700 a round).
fn seconds() -> u64 {
    if wanted().is_some() { 3 } else { 1 }
}

/// Round trips by sockperf's client: rows of number, send, receipt, and microseconds between them.
fn theirs(site: &Site, (ip, port): &(String, u16), bytes: usize) -> [f64; 3] {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = site.command("client", Some(site.client), "sockperf");
    command.args(["ping-pong", "--full-rtt", "--nonblocked", "-i", ip, "-p"]);
    command.args([port.to_string(), "-t".to_owned(), seconds().to_string()]);
    command.args(["--mps".to_owned(), RATE.to_string(), "-m".to_owned()]);
    command.arg(bytes.to_string()).arg("--full-log").arg(log.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(log.path()).unwrap();
    let mut times: Vec<u64> = text.lines().filter_map(sample).collect();
    times.sort_unstable();
    PER_MILLE.map(|of| times.get(times.len() * of / 1_000).map_or(f64::NAN, |ns| *ns as f64))
}

/// Nanoseconds of a row of sockperf's log; none for what is none.
fn sample(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [number, _, _, us] = fields[..] else { return None };
    number.parse::<u64>().ok()?;
    Some((us.parse::<f64>().ok()? * 1e3).round() as u64)
}

/// What whylate's client finds, by `words` beside the usual ones.
fn asked(site: &Site, (ip, port): &(String, u16), words: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = site.command("client", None, program::path());
    command.args(["rtt", &format!("{ip}:{port}"), "--no-trace", "--cpus"]);
    command.arg(site.client.to_string()).args(words.split_whitespace());
    let output = command.arg("-o").arg(&directory).stderr(Stdio::piped()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {}", said(&output));
    (home, directory)
}

fn ours(site: &Site, at: &(String, u16), bytes: usize, seed: usize) -> [f64; 3] {
    let words = format!(
        "--protocol sockperf --wait spin --outstanding 1 --rate {RATE}pps --size {bytes} --warmup \
         400ms --duration {}ms --seed {seed}",
        seconds() * 1_000 - LEFT_OUT_MS
    );
    let (_home, directory) = asked(site, at, &words);
    let service = logged(&directory, "rtt-service");
    PER_MILLE.map(|of| service.value_at(of as f64 / 10.0).map_or(f64::NAN, |ns| ns as f64))
}

/// No claim, or that whylate's round trips are longer in none of the quantiles.
fn not_longer(site: &Site, at: &(String, u16), bytes: usize) {
    let cpus = [site.server, site.client];
    let of = Against { peer: "sockperf", names: NAMES, budget: BUDGET, least: 1, cpus: &cpus };
    let place = if site.bed.is_some() { "through a bed" } else { "over loopback" };
    say(&format!("{bytes} bytes {place}, {RATE} a second:"));
    let mut last: Option<Round<3>> = None;
    let claims = of.claims(|number| {
        let before = theirs(site, at, bytes);
        let round = [before, ours(site, at, bytes, number), theirs(site, at, bytes)];
        for quantiles in round {
            let ordered = quantiles.windows(2).all(|pair| pair[0] <= pair[1]);
            assert!(ordered || quantiles[0].is_nan(), "{quantiles:?}");
        }
        *last.insert(round)
    });
    say(&format!("the last round in ns, peer, whylate, peer: {last:?}"));
    let said = |said: &str| format!("{bytes} bytes {place}: {said}");
    for claim in claims.into_iter().flatten() {
        Claim { said: said(&claim.said), ..claim }.keeps(Promise::AtMost(1.0));
    }
}

fn sockperf_is_here() -> bool {
    needs::program("sockperf").is_some() && needs::program("taskset").is_some()
}

#[test]
#[ignore = "live figure: to accept"]
fn round_trips_of_any_size_are_no_longer_than_sockperfs_where_it_agrees_with_itself() {
    let _alone = program::alone();
    let Some(site) = Site::loopback().filter(|_| sockperf_is_here()) else { return };
    let at = site.free_place();
    let _server = site.sockperf(&at);
    for bytes in SIZES {
        not_longer(&site, &at, bytes);
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn round_trips_to_our_reflector_are_no_longer_than_sockperfs_where_it_agrees_with_itself() {
    let _alone = program::alone();
    let Some(site) = Site::loopback().filter(|_| sockperf_is_here()) else { return };
    let server = reflect::Started::new(&format!(
        "--listen 127.0.0.1:0 --protocol sockperf --wait spin --cpu {}",
        site.server
    ));
    let at = ("127.0.0.1".to_owned(), server.port().parse().unwrap());
    not_longer(&site, &at, 64);
    assert!(server.stop().answered > 0);
}

#[test]
#[ignore = "live figure: to accept"]
fn round_trips_through_a_bed_are_no_longer_than_sockperfs_where_it_agrees_with_itself() {
    let _alone = program::alone();
    if !sockperf_is_here() {
        return;
    }
    let Some(site) = Site::in_a_bed() else { return };
    let at = site.free_place();
    let _server = site.sockperf(&at);
    for bytes in SIZES {
        not_longer(&site, &at, bytes);
    }
}

/// A number of qperf's, in its smallest unit.
fn told(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(name));
    let value =
        line.and_then(|line| line.split('=').nth(1)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or_else(|| panic!("qperf does not tell {name}: {text}"))
}

#[test]
#[ignore = "live figure: to accept"]
fn qperf_tells_half_of_a_round_trip_and_its_mean_stands_beside_ours() {
    let _alone = program::alone();
    let Some(site) = Site::loopback().filter(|_| needs::program("taskset").is_some()) else {
        return;
    };
    if needs::program("qperf").is_none() {
        return;
    }
    let listen = site.free_place().1.to_string();
    let mut server = site.command("server", Some(site.server), "qperf");
    server.args(["--listen_port", &listen]).stdout(Stdio::null());
    let _server = Theirs(server.spawn().unwrap());
    let ask = || {
        let mut client = site.command("client", Some(site.client), "qperf");
        client.args(["127.0.0.1", "--listen_port", &listen, "-t", "1", "-m", "64", "-uu"]);
        let output = client.args(["-vvs", "-vvt", "udp_lat"]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let text = until("qperf answers", ask);
    let halves = round_trip_of_qperf(&text) / told(&text, "latency");
    assert!((1.9..2.1).contains(&halves), "{halves} times what it tells: {text}");
    let reflector =
        reflect::Started::new(&format!("--listen 127.0.0.1:0 --wait block --cpu {}", site.server));
    let at = ("127.0.0.1".to_owned(), reflector.port().parse().unwrap());
    // As it does: one after the other, asleep between, for the same time.
    let words = "--arrivals closed --wait block --size 64 --warmup 100ms --duration 1s";
    let ours = || {
        let (_home, directory) = asked(&site, &at, words);
        let run = program::read(&directory);
        let service = series(&run, "rtt-service").expect("something was answered");
        // None where a request was lost.
        service.mean_ns.unwrap_or(f64::NAN)
    };
    let theirs = || round_trip_of_qperf(&until("qperf answers", ask));
    let cpus = [site.server, site.client];
    let of = Against { peer: "qperf", names: ["mean"], budget: BUDGET, least: 1, cpus: &cpus };
    say("64 bytes over loopback, one after the other, both ends asleep between:");
    let mut last: Option<Round<1>> = None;
    // No claim depends on it: the two differ in what they do between a reply and the next request.
    let _ = of.claims(|_| *last.insert([[theirs()], [ours()], [theirs()]]));
    let [[before], [whylate], [after]] = last.expect("a round was made");
    say(&format!(
        "the last round: qperf's mean round trip {before:.0} ns, whylate's {whylate:.0} ns, qperf's \
         {after:.0} ns"
    ));
    assert!(reflector.stop().answered > 0 && before > 0.0 && after > 0.0);
}

/// Its mean round trip in nanoseconds: the time that it took by the messages that came.
fn round_trip_of_qperf(text: &str) -> f64 {
    told(text, "loc_real_time") / told(text, "loc_recv_msgs")
}

/// Packets a second of the comparison of departures.
const PACED: f64 = 100_000.0;

/// When packets were captured, in nanoseconds, from a file of pcap with nanoseconds.
fn captured(file: &Path) -> Vec<u64> {
    const HEADER: usize = 24;
    const RECORD: usize = 16;
    let bytes = std::fs::read(file).unwrap_or_default();
    let word = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
    };
    let (mut at, mut times) = (HEADER, Vec::new());
    while at + RECORD <= bytes.len() {
        times.push(word(at) * 1_000_000_000 + word(at + 4));
        at += RECORD + word(at + 8) as usize;
    }
    times
}

/// Captures what comes in at the server's end of a bed while `send` sends.
fn capturing(site: &Site, filter: &str, send: impl FnOnce()) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcap");
    let mut command = site.command("server", Some(site.server), "stdbuf");
    command.args(["-oL", "netsniff-ng", "--in", "server0", "--magic", "0xa1b23c4d", "--silent"]);
    // Whatever it would change of the host is left as it is.
    command.args(["--no-sock-mem", "--notouch-irq", "--no-hwtimestamp", "--ring-size", "32MiB"]);
    command.args(["--filter", filter, "--out"]).arg(&file).stdout(Stdio::piped());
    let mut sniffer = Theirs(command.spawn().unwrap());
    let mut lines = BufReader::new(sniffer.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("Running"))), "it does not run");
    send();
    std::thread::sleep(Duration::from_millis(200));
    let pid = whylate_model::Pid(sniffer.0.id() as i32);
    whylate_sys::signal::send_to_process(pid, 2).unwrap();
    assert!(sniffer.0.wait().unwrap().success());
    captured(&file)
}

/// How far neighbours are from the distance that they should have, and the rate.
fn paced(times: &[u64]) -> String {
    let mut off: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1].saturating_sub(pair[0]) as f64 - 1e9 / PACED).abs())
        .collect();
    off.sort_unstable_by(f64::total_cmp);
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return "nothing was captured".to_owned();
    };
    let at = |per_cent: usize| off.get(off.len() * per_cent / 100).copied().unwrap_or(f64::NAN);
    let rate = off.len() as f64 * 1e9 / (last.saturating_sub(*first).max(1)) as f64;
    format!(
        "{} packets, {rate:.0} a second, distances off by {:.0} ns (median), {:.0} ns (p99) and \
         {:.0} ns at most",
        times.len(),
        at(50),
        at(99),
        off.last().copied().unwrap_or(f64::NAN)
    )
}

/// Runs something, and says what the hypervisor took of the client's CPU meanwhile.
fn stolen<T>(site: &Site, run: impl FnOnce() -> T) -> (T, f64) {
    let read = || Steal::read(Path::new("/")).ok();
    let before = read();
    let found = run();
    let taken = before.zip(read()).and_then(|(a, b)| a.delta_ns(&b, &[site.client]));
    (found, taken.unwrap_or(0.0) / 1e6)
}

#[test]
#[ignore = "live figure: to accept"]
fn departures_of_a_constant_rate_stand_beside_trafgens_in_one_capture() {
    // Into the next second: the rate is that of seconds.
    const PACKETS: u64 = 150_000;
    let _alone = program::alone();
    let all = ["trafgen", "netsniff-ng", "stdbuf", "taskset"];
    if !all.into_iter().all(|name| needs::program(name).is_some()) {
        return;
    }
    let Some(site) = Site::in_a_bed() else { return };
    let (theirs, took) = stolen(&site, || {
        capturing(&site, "ether proto 0x88b5", || {
            let mut command = site.command("client", None, "trafgen");
            command.args(["-o", "client0", "-b", "100000pps", "-P", "1", "-n"]);
            // A type for experiments: nobody answers. It puts itself on the first CPU.
            let packet = "{ fill(0xff, 6), 0x02, fill(0, 5), c16(0x88b5), fill(0x5a, 50) }";
            let output = command.arg(PACKETS.to_string()).arg(packet).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
        })
    });
    say(&format!("trafgen: {}; the host took {took:.0} ms", paced(&theirs)));
    assert!(theirs.len() as u64 > PACKETS / 2, "{} packets captured", theirs.len());
    let bed = site.bed.as_ref().unwrap();
    // The capture has the server's CPU: what counts the messages sleeps meanwhile.
    let words = format!("--bed {} --wait block --cpu {}", bed.0, site.server);
    let reflector = reflect::Started::new(&words);
    let at = (INSIDE.0.to_owned(), INSIDE.1);
    let mut told = None;
    let (times, took) = stolen(&site, || {
        capturing(&site, "udp and dst port 11111", || {
            let words = "--one-way --rate 100kpps --warmup 50ms --duration 300ms";
            let (_home, directory) = asked(&site, &at, words);
            let run = program::read(&directory);
            let p99 = |name| logged(&directory, name).value_at(99.0);
            let lateness = ["rtt-lateness", "rtt-lateness-uninterrupted"].map(p99);
            let departures = &run.flows[0].departures;
            told = Some((lateness, departures.pacing.clone(), departures.process.verdict));
        })
    });
    let ([all, apart], pacing, verdict) = told.unwrap();
    let pacing = pacing.expect("a constant rate is intended");
    assert!(reflector.stop().one_way > 0 && !times.is_empty());
    say(&format!(
        "whylate: {}; the host took {took:.0} ms; p99 of its own lateness: {all:?} ns, and {apart:?} ns \
         without the {:.2}% that {} long turns of its sender explain, {}",
        paced(&times),
        100.0 * pacing.share().unwrap_or(0.0),
        pacing.long_turns,
        match verdict {
            ProcessVerdict::Held => "held",
            ProcessVerdict::Disturbed => "disturbed",
            ProcessVerdict::Saturated => "saturated",
            ProcessVerdict::TooFew => "too few to tell",
            ProcessVerdict::ClosedLoop => "closed loop",
        }
    ));
}

#[test]
fn rows_of_a_log_and_packets_of_a_file_are_read_and_what_is_none_is_not() {
    assert_eq!(sample("0, 2.411913353, 2.427951459, 16038.106"), Some(16_038_106));
    for line in ["packet, txTime(sec), rxTime(sec), rtt(usec)", "", "sockperf: x, y, z, 3", "1, 2"]
    {
        assert_eq!(sample(line), None, "{line}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = vec![0; 24];
    for (seconds, nanos) in [(1_u32, 5_u32), (1, 10_005), (1, 20_105)] {
        for word in [seconds, nanos, 4, 4, 0] {
            bytes.extend(word.to_le_bytes());
        }
    }
    // The last one is cut.
    bytes.extend([1, 0, 0, 0, 9]);
    std::fs::write(file.path(), bytes).unwrap();
    let times = captured(file.path());
    assert_eq!(times, [1_000_000_005, 1_000_010_005, 1_000_020_105]);
    assert!(paced(&times).contains("3 packets, 99502 a second"), "{}", paced(&times));
    assert_eq!(paced(&[]), "nothing was captured");
}
