//! `whylate rtt`.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use whylate_model::flow::Direction;
use whylate_model::{CpuId, Nanos};
use whylate_net::NetError;
use whylate_net::resolve::{LIMIT, Wanted, resolve};
use whylate_net::schedule::{Arrivals, Rate};
use whylate_port::open::{Target as Place, Transport};
use whylate_port::{Options, Wait};
use whylate_record::rtt::{
    Causes, FlowRequest, OuterPort, OuterPorts, Request, TakeApart, TapFile, Target, frame_of,
    measurements, record,
};
use whylate_sys::affinity;

use super::again::several;
use super::gaps::{housekeeping, must_be_here, one_cpu};
use super::{Beginning, Exit, Refused, bed, begin, conclude, lasting, quick};
use crate::arrivals::{AskedArrivals, Ready};
use crate::cli::{FlowWords, Rtt, refused_of_socket};
use crate::failure;
use crate::parse::SHORTEST;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// The rate of whoever asks for none.
const USUAL_RATE: Rate = Rate::Packets(1e3);
/// The warm-up of whoever asks for none.
const USUAL_WARMUP: Nanos = Nanos(2 * Nanos::SECOND.0);
/// Names of flows: there and back again, or to one port and from it to the other.
const RTT: &str = "rtt";
const THERE: &str = "there";
const BACK: &str = "back";
/// The longest frame of an Ethernet that nobody set up, with its check sequence.
const LONGEST_FRAME: usize = 1_518;
/// Why a rate in bits is none of a Unix socket.
const NO_FRAMES: &str = "a Unix socket sends no frames, so it has no rate in bit/s: use --rate 10kpps or \
     another rate in messages";

pub(super) fn run(options: &Rtt) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    if let Some(refusal) = refused(options) {
        failure::refuse(refusal);
        return Ok(Exit::Usage);
    }
    if let Some(list) = &options.backends.compare_backends {
        return super::rtt_backends::run(options, list, &stopping);
    }
    let request = request(options)?;
    if let Err(error) = request.check() {
        failure::refuse(error);
        return Ok(Exit::Usage);
    }
    if let Some(refusal) = too_short(&request) {
        failure::refuse(refusal);
        return Ok(Exit::Usage);
    }
    if options.runs > 1 {
        return several(options.runs, &options.common, &stopping);
    }
    let mut progress = Shown::usual();
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..request };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

pub(super) fn request(options: &Rtt) -> Result<Request> {
    let first = first(options)?;
    let duration = lasting(options.duration, &options.common)?;
    let how = match options.arrivals.why_no_rate() {
        None => format!("{} {}", options.rate.unwrap_or(USUAL_RATE), options.arrivals),
        Some(_) => options.arrivals.to_string(),
    };
    let (port, target) = (options.transport, &first.target);
    let question = if options.across.is_asked() {
        format!("How long does a message by {port} take, one way, through {target}, {how}?")
    } else if options.one_way {
        format!("How much comes of what is sent by {port} to {target}, {how}?")
    } else {
        format!("How long does a request by {port} take to {target} and back, {how}?")
    };
    let mut flows = vec![first];
    for words in &options.flows {
        let flow = beside(&flows, words, options)?;
        flows.push(flow);
    }
    if options.across.both_ways {
        let there = flows[0].clone();
        flows.push(FlowRequest { name: BACK.to_owned(), direction: Direction::Back, ..there });
    }
    Ok(Request {
        flows,
        options: Options { link: options.link.of_port(), ..options.socket.of_port() },
        from: options.from,
        log_packets: options.log_packets,
        checkpoint: options.checkpoint,
        plant: options.across.plant_late,
        timeout: options.timeout,
        warmup: options.warmup.unwrap_or_else(|| quick(USUAL_WARMUP, options.common.quick)),
        duration,
        tolerance: options.tolerance,
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        seed: options.common.seed.unwrap_or_default(),
        command_line: whylate_record::command_line(),
        question,
        causes: Causes { traced: !options.common.no_trace, slow_from: options.slow },
        take_apart: take_apart(options),
        program: std::env::current_exe().context("cannot tell which program this is")?,
    })
}

/// What is asked about where requests spend their time.
fn take_apart(options: &Rtt) -> Option<TakeApart> {
    let asked = &options.apart;
    let sources = asked.breakdown?;
    Some(TakeApart {
        stamps: sources.stamps,
        trace: sources.trace && !options.common.no_trace,
        told: sources.told,
        bed_tap: sources.tap,
        tap: asked.tap.tap.clone().map(|path| TapFile { path, clock: asked.tap.tap_clock.into() }),
        stamp_every: asked.stamp_every,
        cost_rounds: asked.breakdown_cost.then_some(options.backends.rounds),
    })
}

/// Why what looking costs cannot be measured in that time.
fn too_short(request: &Request) -> Option<String> {
    let asked = request.take_apart.as_ref()?;
    let rounds = asked.cost_rounds?;
    let parts = rounds * measurements(asked);
    let each = Nanos(request.duration.0 / u64::from(parts));
    (each < SHORTEST).then(|| {
        format!(
            "{} of {parts} measurements ({rounds} rounds) leave {each} to each, and the least is \
             {SHORTEST}: give a longer --duration or fewer --rounds",
            request.duration
        )
    })
}

/// What says nothing together.
fn refused(options: &Rtt) -> Option<String> {
    if let (Some(_), Some(why)) = (options.rate, options.arrivals.why_no_rate()) {
        return Some(format!("{why}: leave --rate out"));
    }
    for words in &options.flows {
        let why = words.arrivals.as_ref().and_then(AskedArrivals::why_no_rate);
        if let (Some(_), Some(why)) = (words.rate, why) {
            return Some(format!("{why}: leave rate= of the flow {} out", words.name));
        }
    }
    if let Some(refusal) = refused_across(options) {
        return Some(refusal);
    }
    if options.apart.breakdown.is_none() && options.apart.tap.tap.is_some() {
        return Some("--tap is one more point on the way: add --breakdown".to_owned());
    }
    if let Some(refusal) = bits_without_frames(options) {
        return Some(refusal);
    }
    if let (Some(_), AskedArrivals::Pattern(Arrivals::Closed)) =
        (options.outstanding, &options.arrivals)
    {
        return Some("a closed loop has 1 request in flight: leave --outstanding out".to_owned());
    }
    if let (true, AskedArrivals::Pattern(Arrivals::Closed)) = (options.one_way, &options.arrivals) {
        return Some("a closed loop waits for replies: leave --one-way out".to_owned());
    }
    let from = options.from.map(|_| "--from");
    let name = options.socket.of_ip().or(from).filter(|_| options.transport == Transport::Unix);
    if let Some(name) = name {
        return Some(format!("a Unix socket has no {name}: leave {name} out"));
    }
    if let Some(refusal) = bed_beside_the_way(options) {
        return Some(refusal);
    }
    let beside = options.flows.iter().map(|words| words.transport.unwrap_or(options.transport));
    let compared = options.backends.compare_backends.iter().flat_map(|list| &list.0);
    let compared = compared.map(|backend| backend.transport);
    let ports: Vec<Transport> =
        std::iter::once(options.transport).chain(beside).chain(compared).collect();
    let of_socket = || refused_of_socket(&options.socket, &ports);
    options.link.refused(&ports).or_else(of_socket)
}

/// Why two ports of one client cannot be found by these words.
fn refused_across(options: &Rtt) -> Option<String> {
    if !options.across.is_asked() {
        return None;
    }
    let addresses = [(options.from, "--from"), (options.across.to, "--to")];
    match (&options.bed, options.across.named()) {
        (Some(bed), Some(port)) => Some(format!(
            "{port} is a port of this machine, and those of the bed {bed} are its ends: write --across alone"
        )),
        (None, None) => Some(
            "--across needs the port that messages come back by: name it, such as --across eth1, or a \
             bed (--bed)"
                .to_owned(),
        ),
        (Some(_), None) => {
            let (_, name) = addresses.into_iter().find(|(given, _)| given.is_some())?;
            Some(format!("the ends of a bed have addresses of their own: leave {name} out"))
        }
        (None, Some(_)) if near_port(options).is_none() => Some(format!(
            "--across needs the port that messages leave by as well: name it with {}",
            if options.transport == Transport::Dpdk { "--vdev or --pci" } else { "--interface" }
        )),
        (None, Some(_)) => {
            let (_, name) = addresses.into_iter().find(|(given, _)| given.is_none())?;
            Some(format!(
                "each of two ports needs an address, which the kernel need not have: add {name}, such \
                 as {name} 198.18.0.1"
            ))
        }
    }
}

/// The port of this host that messages leave by.
fn near_port(options: &Rtt) -> Option<String> {
    if options.transport == Transport::Dpdk {
        let device = options.link.device.of_port();
        return device.name.map(|name| name.words().to_owned());
    }
    options.socket.interface.clone()
}

/// Both ports of a client that hears what it sent itself.
fn outer_ports(options: &Rtt) -> Result<OuterPorts> {
    if let Some(bed) = bed(options.bed.as_deref())? {
        return Ok(OuterPorts::Bed(bed));
    }
    let near = near_port(options).zip(options.from);
    let far = options.across.named().map(str::to_owned).zip(options.across.to);
    let port = |(name, address)| OuterPort { name, address };
    match near.map(port).zip(far.map(port)) {
        Some((near, far)) => Ok(OuterPorts::Host { near, far }),
        None => bail!("--across names two ports, each with an address, or a bed"),
    }
}

/// A Unix socket lies in the file system: whatever bed there is, nothing goes through it.
fn bed_beside_the_way(options: &Rtt) -> Option<String> {
    let bed = options.bed.as_ref()?;
    let why = format!("a Unix socket sends nothing over the test network {bed}");
    if options.transport == Transport::Unix {
        return Some(format!("{why}: leave --bed out"));
    }
    let beside =
        |words: &&FlowWords| words.to.is_none() && words.transport == Some(Transport::Unix);
    let flow = options.flows.iter().find(beside)?;
    Some(format!("{why}: leave --bed out, or remove the flow {}", flow.name))
}

/// Bits are counted of frames, and a Unix socket sends none.
fn bits_without_frames(options: &Rtt) -> Option<String> {
    let first = (options.rate, options.transport);
    let beside = options
        .flows
        .iter()
        .map(|words| (words.rate.or(options.rate), words.transport.unwrap_or(options.transport)));
    let refused = |(rate, port): (Option<Rate>, Transport)| {
        matches!(rate, Some(Rate::Bits(..))) && port == Transport::Unix
    };
    std::iter::once(first).chain(beside).any(refused).then(|| NO_FRAMES.to_owned())
}

/// Messages a second at this rate, in frames as that transport makes them.
fn per_second(rate: Rate, transport: Transport, target: &Target, bytes: usize) -> Result<f64> {
    match (rate, frame_of(transport, target, bytes)) {
        (Rate::Bits(..), None) => bail!(NO_FRAMES),
        (Rate::Bits(..), Some(frame)) if may_be_cut(transport, target, frame) => {
            let most = bytes.saturating_sub(frame - LONGEST_FRAME);
            Err(Refused::because(format!(
                "a rate in bit/s counts frames, and it is not known in how many of them a message of \
                 {bytes} bytes goes: one of {most} bytes is the longest that a link with an MTU of 1500 \
                 takes in one; write the rate in messages, such as 10kpps, or a --size up to {most}"
            )))
        }
        (rate, frame) => Ok(rate.per_second(frame.unwrap_or_default() as u32)),
    }
}

/// May a packet be too long for one frame on its way? A port that carries frames cuts none, and the loopback
/// interface takes the longest.
fn may_be_cut(transport: Transport, target: &Target, frame: usize) -> bool {
    let loopback = match target {
        Target::Own { bed, .. } => bed.is_none(),
        Target::At(Place::Address(address)) => address.ip().is_loopback(),
        Target::At(Place::Path(_)) | Target::Across(_) => false,
    };
    frame > LONGEST_FRAME && !loopback && !transport.carries_frames()
}

/// Bytes of VLAN tags in each frame.
fn tag_bytes(transport: Transport, options: &Rtt) -> usize {
    const TAG: usize = 4;
    let tags = options.link.vlan.filter(|_| transport.carries_frames());
    tags.map_or(0, |tags| TAG * tags.count())
}

/// The flow that the question is about.
fn first(options: &Rtt) -> Result<FlowRequest> {
    let cpu = one_cpu(options.cpus.as_deref(), "a client runs on one")?;
    let (target, resolved_in) = target(options, cpu)?;
    let Ready { arrivals, replayed } = options.arrivals.ready()?;
    let rate = options.rate.unwrap_or(USUAL_RATE);
    let tagged = options.size + tag_bytes(options.transport, options);
    let per_second = per_second(rate, options.transport, &target, tagged)?;
    Ok(FlowRequest {
        name: if options.across.is_asked() { THERE } else { RTT }.to_owned(),
        cpu,
        fifo: options.sched.fifo(),
        target,
        direction: Direction::There,
        transport: options.transport,
        protocol: options.protocol,
        wait: options.wait,
        bytes: options.size,
        arrivals,
        replayed,
        per_second,
        most_under_way: options.outstanding,
        one_way: options.one_way,
        resolved_in,
    })
}

/// One more flow beside those.
fn beside(flows: &[FlowRequest], words: &FlowWords, options: &Rtt) -> Result<FlowRequest> {
    for (asked, key) in [(words.cpus, "cpus"), (words.reflector_cpus, "reflector-cpus")] {
        must_be_here(asked, &format!("--flow '{}: {key}=CPU'", words.name))?;
    }
    let (cpu, shared) = seat(words.cpus, flows);
    let transport = words.transport.unwrap_or(options.transport);
    let (target, resolved_in) = match (&words.to, &options.target) {
        (Some(to), _) | (None, Some(to)) => {
            let (place, took) = place(transport, to)?;
            (Target::At(place), took)
        }
        (None, None) => {
            let (other, _) = match words.reflector_cpus {
                Some(cpu) => (cpu, false),
                // What reflects sleeps where nothing comes: the first flow's other end need not be
                // alone on its CPU for that.
                None => (flows[0].target.cpu().unwrap_or(cpu), true),
            };
            (Target::Own { cpu: other, bed: bed(options.bed.as_deref())? }, None)
        }
    };
    let bytes = words.size.unwrap_or(options.size);
    let Ready { arrivals, replayed } = pattern(words, &options.arrivals).ready()?;
    // Neither a closed loop nor what asks for no reply has requests in flight to count.
    let counts = !words.one_way && arrivals != Arrivals::Closed;
    let most_under_way = words.outstanding.or(options.outstanding.filter(|_| counts));
    let rate = words.rate.or(options.rate).unwrap_or(USUAL_RATE);
    let asleep = shared || words.reflector_cpus.is_none() && options.target.is_none();
    let usual = if asleep { Wait::Block } else { options.wait };
    let per_second = per_second(rate, transport, &target, bytes + tag_bytes(transport, options))?;
    Ok(FlowRequest {
        name: words.name.clone(),
        cpu,
        fifo: words.sched.fifo(),
        target,
        direction: if words.back { Direction::Back } else { Direction::There },
        transport,
        protocol: words.protocol.unwrap_or(options.protocol),
        wait: words.wait.unwrap_or(usual),
        bytes,
        arrivals,
        replayed,
        per_second,
        most_under_way,
        one_way: words.one_way,
        resolved_in,
    })
}

/// The pattern of a flow: its own, or that of the first flow, or, where that cannot be kept with what this one
/// says, constant.
fn pattern<'a>(words: &'a FlowWords, first: &'a AskedArrivals) -> Cow<'a, AskedArrivals> {
    let closed = *first == AskedArrivals::Pattern(Arrivals::Closed);
    let has_own_times = words.rate.is_some() && first.why_no_rate().is_some();
    match &words.arrivals {
        Some(own) => Cow::Borrowed(own),
        None if has_own_times || closed && words.one_way => {
            Cow::Owned(AskedArrivals::Pattern(Arrivals::Constant))
        }
        None => Cow::Borrowed(first),
    }
}

/// The CPU asked for, or one that no flow uses, or that of the first flow's other end; true when
/// others use it, too.
fn seat(asked: Option<CpuId>, flows: &[FlowRequest]) -> (CpuId, bool) {
    let taken =
        |cpu: CpuId| flows.iter().any(|flow| flow.cpu == cpu || flow.target.cpu() == Some(cpu));
    if let Some(cpu) = asked {
        return (cpu, taken(cpu));
    }
    match affinity::get().into_iter().rev().find(|cpu| !taken(*cpu)) {
        Some(cpu) => (cpu, false),
        None => (flows[0].target.cpu().unwrap_or(flows[0].cpu), true),
    }
}

fn target(options: &Rtt, client: CpuId) -> Result<(Target, Option<Nanos>)> {
    if options.across.is_asked() {
        return Ok((Target::Across(outer_ports(options)?), None));
    }
    if let Some(words) = &options.target {
        let (place, took) = place(options.transport, words)?;
        return Ok((Target::At(place), took));
    }
    must_be_here(options.reflector_cpus, "--reflector-cpus CPU")?;
    let another = || affinity::get().into_iter().find(|cpu| *cpu != client);
    let cpu = options.reflector_cpus.or_else(another).unwrap_or(client);
    Ok((Target::Own { cpu, bed: bed(options.bed.as_deref())? }, None))
}

fn place(transport: Transport, words: &str) -> Result<(Place, Option<Nanos>)> {
    if transport == Transport::Unix {
        return Ok((Place::Path(PathBuf::from(words)), None));
    }
    let resolved = resolve(words, Wanted::Any, LIMIT).map_err(|error| match error {
        NetError::NotAnAddress(_) => Refused::because(error),
        error => error.into(),
    })?;
    if resolved.address.port() == 0 {
        return Err(Refused::because(format!(
            "nobody listens at port 0 of `{words}`: write the port of the other end, 1 to 65535"
        )));
    }
    Ok((Place::Address(resolved.address), resolved.took))
}

#[cfg(test)]
mod tests {
    use super::super::tests::asked;
    use super::*;
    use crate::cli::Command;

    fn requested(line: &str) -> Request {
        match asked(line) {
            Command::Rtt(options) => request(&options).expect("it can be asked for"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flow_is_as_the_first_one_in_what_it_does_not_say() {
        let beside = |first: &str, words: &str| {
            let line = format!("rtt 127.0.0.1:9 {first} --flow 'x: {words}'");
            requested(&line).flows.remove(1)
        };
        let first = "--rate 2kpps --arrivals poisson --outstanding 4 --size 100 --wait block --sched fifo:9";
        let same = beside(first, "");
        assert_eq!((same.arrivals, same.most_under_way), (Arrivals::Poisson, Some(4)));
        assert_eq!((same.bytes, same.wait, same.fifo), (100, Wait::Block, None));
        assert!((same.per_second - 2e3).abs() < 1e-9 && !same.one_way);
        let own = beside(first, "arrivals=constant outstanding=7 sched=fifo:3");
        assert_eq!((own.arrivals, own.most_under_way), (Arrivals::Constant, Some(7)));
        assert_eq!(own.fifo, Some(3));
        // What cannot be counted is not: none is in flight that asks for no reply, and one of a closed loop.
        let one_way = beside(first, "one-way");
        assert_eq!((one_way.arrivals, one_way.most_under_way), (Arrivals::Poisson, None));
        assert_eq!(beside(first, "arrivals=closed").most_under_way, None);
        // A pattern with times of its own gives way to a rate, and a closed loop to what waits for no reply.
        for (pattern, words, kept) in [
            ("closed", "", true),
            ("closed", "rate=5kpps", false),
            ("closed", "one-way", false),
            ("sweep(2us,1ms,10)", "one-way", true),
            ("sweep(2us,1ms,10)", "rate=5kpps", false),
        ] {
            let flow = beside(&format!("--arrivals '{pattern}' --wait block"), words);
            let expected = if kept { pattern.parse().unwrap() } else { Arrivals::Constant };
            assert_eq!(flow.arrivals, expected, "{pattern} {words}");
        }
    }

    #[test]
    fn a_warm_up_that_is_asked_for_is_kept_by_quick_and_the_usual_one_is_a_tenth() {
        let warmup =
            |words: &str| requested(&format!("rtt 127.0.0.1:9 {words}")).warmup.0 / 1_000_000;
        assert_eq!([warmup(""), warmup("--quick")], [2_000, 200]);
        assert_eq!([warmup("--warmup 70ms"), warmup("--warmup 70ms --quick")], [70, 70]);
    }

    #[test]
    fn a_rate_in_bits_is_that_of_the_frames_that_are_sent() {
        let rate: Rate = "1Gbit/s".parse().unwrap();
        let of = |transport, at: &str, bytes| {
            let target = Target::At(Place::Address(at.parse().unwrap()));
            per_second(rate, transport, &target, bytes)
        };
        // What is sent, times what it takes on the wire, is what was asked for.
        for (transport, at, frame) in [
            (Transport::Udp, "127.0.0.1:9", 110.0),
            (Transport::Udp, "[::1]:9", 130.0),
            (Transport::Tcp, "127.0.0.1:9", 134.0),
            (Transport::Tcp, "[::1]:9", 154.0),
        ] {
            let bits = of(transport, at, 64).unwrap() * 8.0 * (frame + 20.0);
            assert!((bits / 1e9 - 1.0).abs() < 1e-9, "{transport:?} {at}: {bits}");
        }
        // The shortest frame: the figure that everybody knows.
        let shortest = of(Transport::Udp, "127.0.0.1:9", 14).unwrap();
        assert!((shortest - 1_488_095.0).abs() < 1.0, "{shortest}");
        assert!(of(Transport::Unix, "127.0.0.1:9", 64).unwrap_err().to_string().contains("frames"));
        let packets = per_second(
            Rate::Packets(1e4),
            Transport::Unix,
            &Target::At(Place::Path(PathBuf::from("/x"))),
            64,
        );
        assert!((packets.unwrap() - 1e4).abs() < 1e-9);
    }

    #[test]
    fn a_rate_in_bits_of_messages_that_one_frame_may_not_hold_is_refused_with_the_longest() {
        let rate: Rate = "1Gbit/s".parse().unwrap();
        let at = |address: &str| Target::At(Place::Address(address.parse().unwrap()));
        for (transport, address, most) in [
            (Transport::Udp, "198.51.100.7:9", 1_472),
            (Transport::Udp, "[2001:db8::7]:9", 1_452),
            (Transport::Tcp, "198.51.100.7:9", 1_448),
        ] {
            let of = |bytes| per_second(rate, transport, &at(address), bytes);
            assert!(of(most).is_ok(), "{transport:?} {address}");
            let said = of(most + 1).unwrap_err().to_string();
            assert!(said.contains(&format!("or a --size up to {most}")), "{said}");
            // Messages are counted, whatever carries them.
            assert!(per_second(Rate::Packets(1e4), transport, &at(address), 9_000).is_ok());
        }
        assert!(per_second(rate, Transport::Udp, &at("127.0.0.1:9"), 9_000).is_ok());
        assert!(per_second(rate, Transport::Packet, &at("198.51.100.7:9"), 8_000).is_ok());
    }
}
