//! The section of a forwarder: what became of frames, where some were lost, what they cost.

use whylate_model::Nanos;
use whylate_model::forward::{
    Forward, ForwardDirection, ForwardEnd, ForwardPort, ForwardThread, TicksPerFrame,
};
use whylate_model::reflect::Residence;
use whylate_model::run::Run;

use crate::doc::{Block, Document, Section, Table, Warning};
use crate::first;
use crate::html::utc;
use crate::numbers::{Value, bit_rate, count, number, percent, time};
use crate::residence;
use crate::terminal::Percentiles;

/// Columns of the tables of losses.
pub(crate) const PLACES: [&str; 3] = ["place", "counter", "frames"];
/// What is to be known of the counters of interfaces.
const COUNTED: &str = "Received = forwarded + waiting at the end + dropped here. What a ring or an interface \
     dropped before or behind is counted by the kernel; what was refused, the sending ring counts as \
     well, and what one place drops, an interface may.";
/// The same of sockets.
const COUNTED_BY_SOCKETS: &str = "Frames are datagrams here, and bits those that they carry. Received = \
     forwarded + waiting at the end + dropped here. What found no room in a socket before (sk_drops), and \
     what of clients for whom there was no place, is not among the received.";
/// How ticks are to be read.
const READ_TICKS: &str = "Receive counts from the end of what was done before, or of a \
     look that found nothing, to when the burst was seen; work to when it was about to be handed \
     over, copying and --work among it; transmit to when the kernel had been called. Ticks are no \
     cycles of the CPU: those are not counted here.";
/// How the residences are to be read.
const READ_RESIDENCE: &str = "A frame stayed from when its burst was seen in the receiving \
     ring to when it was put on the sending one and that was handed over. What it waited in the receiving \
     ring before is not in it; where the ring has the kernel's stamps, the times from those have it.";
/// The same of datagrams.
const READ_SOCKETS: &str = "A datagram stayed from when its burst had been taken from the receiving socket to \
     when it was about to be handed over to the sending one. What it waited in the receiving socket before, \
     and what the kernel's stacks took on both sides, is not in it.";
/// Heading of the table of residences.
const STAYED: &str = "Residence: from seen in one ring to handed over to the other";
const STAYED_BETWEEN_SOCKETS: &str =
    "Residence: from taken from one socket to handed over to the other";

const GIGA: f64 = 1e9;

/// The section of a forwarder; none for a run of something else.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let of = run.forward.as_deref()?;
    let stayed = (!residences(of).is_empty()).then(|| Block::How(read_residence(of).to_owned()));
    let blocks = blocks(of).into_iter().chain(stayed).collect();
    Some(Section::new("forwarded", "What was forwarded", blocks).headed())
}

/// The account of one of which no run is kept.
pub(crate) fn document(of: &Forward, columns: Percentiles) -> Document {
    let ports: Vec<&str> = of.ports.iter().map(|port| port.interface.as_str()).collect();
    let all = residences(of);
    let resolution = all.first().map(|(_, first)| residence::resolution(first));
    let table = residence::table(stayed(of), "direction", &all, columns);
    let read = resolution.is_some().then(|| Block::How(read_residence(of).to_owned()));
    Document::new(format!("Forwarded between {} by {}", ports.join(" and "), of.backend))
        .naming(of)
        .with([Block::Text(first::of_account(of))])
        .with(blocks(of))
        .with([Block::Table(table)].into_iter().chain(read).chain(resolution))
        .with([Warning::of_account(&of.warnings)])
}

/// Where and when, what became of frames, what they cost.
pub(crate) fn blocks(of: &Forward) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        Block::texts(std::iter::once(circumstances(of)).chain(remarks(of))).collect();
    blocks.push(Block::Table(directions(of)));
    let losses = losses(of);
    let counted = (!losses.is_empty()).then(|| Block::How(counted(of).to_owned()));
    let table = Table::new("Frames lost, by place", &PLACES).words(&[1]).with(losses);
    blocks.push(Block::Table(table));
    // Also where no frame was lost: what was short says that little room was left.
    blocks.extend(Block::texts(occasions(&of.ports)));
    blocks.extend(counted);
    let ticks = ticks(of);
    if !ticks.is_empty() {
        blocks.extend(ticks.into_iter().map(Block::Table));
        blocks.push(Block::How(READ_TICKS.to_owned()));
    }
    blocks
}

/// What one and several of what it carried are called.
pub(crate) fn carried(of: &Forward) -> (&'static str, &'static str) {
    if is_of_sockets(of) { ("datagram", "datagrams") } else { ("frame", "frames") }
}

/// Were its ports sockets?
fn is_of_sockets(of: &Forward) -> bool {
    of.ports.iter().any(ForwardPort::is_socket)
}

/// How the residences are to be read, of frames or of datagrams.
fn read_residence(of: &Forward) -> &'static str {
    if is_of_sockets(of) { READ_SOCKETS } else { READ_RESIDENCE }
}

/// Heading of the table of residences.
fn stayed(of: &Forward) -> &'static str {
    if is_of_sockets(of) { STAYED_BETWEEN_SOCKETS } else { STAYED }
}

/// What is to be known of the counters, of interfaces or of sockets.
fn counted(of: &Forward) -> &'static str {
    if is_of_sockets(of) { COUNTED_BY_SOCKETS } else { COUNTED }
}

/// Since when, for how long and where.
fn circumstances(of: &Forward) -> String {
    let ended = match of.ended {
        ForwardEnd::Stopped => "until it was stopped",
        ForwardEnd::Duration => "until --duration ended",
        ForwardEnd::PortLost => "until a port was lost",
        ForwardEnd::ThreadFailed => "until a thread of it failed",
        ForwardEnd::GoingOn => "and its end is not known",
    };
    format!("Since {} for {}, {ended}; with --wait {}.", utc(of.since_ns), of.lasted, of.wait)
}

/// What else is to be said of it.
fn remarks(of: &Forward) -> Vec<String> {
    let mut said: Vec<String> = of.threads.iter().map(thread).collect();
    let polling = of.busy_polling.as_ref();
    said.extend(polling.map(|outcome| format!("Busy polling: {outcome}.")));
    if of.work > Nanos(0) {
        said.push(format!("Busy work of {} for each frame, on purpose.", of.work));
    }
    said.push(match &of.stamping {
        Some(cost) => format!(
            "Stamps ({}) cost {} a burst and {} for each of its frames.",
            of.stamps,
            time(cost.per_burst_ns),
            time(cost.per_frame_ns)
        ),
        None => "Nothing was stamped: only counts are known.".to_owned(),
    });
    if of.ticks_hz > 0.0 && of.directions.iter().any(|direction| direction.ticks.is_some()) {
        said.push(format!(
            "Ticks are those of the counter, {} in a nanosecond, whatever clock the CPU ran at: they \
             are no cycles.",
            number(of.ticks_hz / GIGA)
        ));
    }
    said.extend(of.ports.iter().map(port));
    let instead = of.ports.iter().flat_map(|port| &port.instead);
    said.extend(instead.map(|what| format!("{}.", capital(what))));
    let refused = of.directions.iter().filter_map(|direction| {
        let why = direction.first_refusal.as_ref()?;
        let (name, times) = (name(direction), count(direction.refusals));
        Some(format!("{name}: the kernel refused to send {times} times, first: {why}."))
    });
    said.extend(refused);
    let waited = of.directions.iter().filter(|direction| direction.waiting > 0);
    said.extend(waited.map(|direction| {
        let n = count(direction.waiting);
        format!("{}: {n} frames still waited in the sending ring at the end.", name(direction))
    }));
    let unfit = of.directions.iter().filter(|direction| direction.kernel_stamps_unfit > 0);
    said.extend(unfit.map(|direction| {
        let n = count(direction.kernel_stamps_unfit);
        format!("{}: {n} stamps of the kernel cannot be right.", name(direction))
    }));
    said
}

fn thread(of: &ForwardThread) -> String {
    let cpu = of.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let vain = if of.looks == 0 { 0.0 } else { of.in_vain as f64 / of.looks as f64 };
    let busy = match of.busy {
        Some(busy) => format!("; {} of its time in bursts", percent(busy)),
        None => String::new(),
    };
    format!("On {cpu}: {} polls, {} of them empty{busy}.", count(of.looks), percent(vain))
}

/// What a port is, in a sentence.
pub(crate) fn port(of: &ForwardPort) -> String {
    if of.is_socket() {
        let name = &of.interface;
        return format!(
            "{name}: by ordinary sockets of the kernel, which keep no frames and have no MTU."
        );
    }
    let taken = match &of.attachment {
        Some(place) => format!("taken from the kernel ({place})"),
        None if of.copies != "copy" => "never the kernel's".to_owned(),
        None => "the kernel sees its frames, too".to_owned(),
    };
    let queues: Vec<String> = of.queues.iter().map(ToString::to_string).collect();
    let queues = match &queues[..] {
        [] => "all queues by one ring".to_owned(),
        [one] => format!("queue {one}"),
        several => format!("queues {}", several.join(", ")),
    };
    format!(
        "{}: MTU {}, {queues}, {} frames in a ring, {}, {taken}.",
        of.interface,
        count(of.mtu.into()),
        count(of.ring.into()),
        of.copies
    )
}

/// `eth1 -> eth2`.
pub(crate) fn name(of: &ForwardDirection) -> String {
    format!("{} -> {}", of.from, of.to)
}

/// Counts and rates.
fn directions(of: &Forward) -> Table {
    let seconds = of.lasted.0 as f64 / 1e9;
    let per_second = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let head = ["direction", "received", "forwarded", "dropped", "frames", "bits", "a burst"];
    let mut table = Table::new("Frames by outcome", &head);
    for direction in &of.directions {
        let bits = per_second(direction.forwarded_bytes as f64 * 8.0);
        let burst = (direction.bursts > 0)
            .then(|| Value::Ratio(direction.received as f64 / direction.bursts as f64));
        table.row([
            name(direction).into(),
            Value::Count(direction.received),
            Value::Count(direction.forwarded),
            Value::Count(dropped(direction)),
            Value::Rate(per_second(direction.forwarded as f64)),
            bit_rate(bits).into(),
            burst.into(),
        ]);
    }
    if of.directions.len() > 1 {
        let forwarded = sum(of, |direction| direction.forwarded);
        table.row([
            "both".into(),
            Value::Count(sum(of, |direction| direction.received)),
            Value::Count(forwarded),
            Value::Count(sum(of, dropped)),
            Value::Rate(per_second(forwarded as f64)),
            "".into(),
            "".into(),
        ]);
    }
    table
}

/// One of the counts of both directions together.
pub(crate) fn sum(of: &Forward, what: fn(&ForwardDirection) -> u64) -> u64 {
    of.directions.iter().map(what).fold(0, u64::saturating_add)
}

/// What was dropped by the forwarder itself.
pub(crate) fn dropped(of: &ForwardDirection) -> u64 {
    of.received.saturating_sub(of.forwarded.saturating_add(of.waiting))
}

/// What was lost where: here, in rings, at interfaces. Places that lost nothing are left out.
fn losses(of: &Forward) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |place: String, counter: &str, n: u64| {
        if n > 0 {
            rows.push(vec![place, counter.to_string(), count(n)]);
        }
    };
    for direction in &of.directions {
        let name = name(direction);
        row(name.clone(), "sending ring full", direction.ring_full);
        row(name.clone(), "too long", direction.too_long);
        row(name.clone(), "runts", direction.runts);
        row(name, "refused", direction.refused);
    }
    rows.extend(port_losses(&of.ports));
    rows
}

/// What rings and interfaces lost. Those that lost nothing are left out.
pub(crate) fn port_losses(ports: &[ForwardPort]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |place: String, counter: &str, n: u64| {
        if n > 0 {
            rows.push(vec![place, counter.to_string(), count(n)]);
        }
    };
    for port in ports {
        let interface = &port.interface;
        for drops in port.drops.iter().filter(|drops| drops.frames) {
            let ring = &drops.ring;
            let place = if port.is_socket() {
                format!("{interface}, {ring} queue")
            } else {
                format!("{interface}, {ring} ring {}", drops.queue)
            };
            row(place, &drops.counter, drops.count);
        }
        if let Some(counts) = &port.interface_counts {
            let place = || format!("{interface}, interface");
            row(place(), "receive drop", counts.receive_dropped);
            row(place(), "receive errs", counts.receive_errors);
            row(place(), "send drop", counts.send_dropped);
            row(place(), "send errs", counts.send_errors);
        }
    }
    rows
}

/// Why frames were lost that another counter has: occasions.
pub(crate) fn occasions(of: &[ForwardPort]) -> Vec<String> {
    let mut said = Vec::new();
    for port in of {
        for drops in port.drops.iter().filter(|drops| !drops.frames && drops.count > 0) {
            if port.is_socket() {
                let (name, counter) = (&port.interface, &drops.counter);
                said.push(format!("{name}: {counter}, {} times.", count(drops.count)));
                continue;
            }
            said.push(format!(
                "{}, queue {}: {} {} times ({} ring).",
                port.interface,
                drops.queue,
                drops.counter,
                count(drops.count),
                drops.ring
            ));
        }
    }
    said
}

/// Ticks for a frame of each direction: all bursts, then by size.
fn ticks(of: &Forward) -> Vec<Table> {
    let row = |ticks: &TicksPerFrame, size: String| {
        let shown = |mean: f64| Value::Count(mean.round() as u64);
        [
            size.into(),
            Value::Count(ticks.bursts),
            Value::Count(ticks.frames),
            shown(ticks.receive),
            shown(ticks.work),
            shown(ticks.transmit),
        ]
    };
    let table = |direction: &ForwardDirection| {
        let ticks = direction.ticks.as_ref()?;
        let caption = format!("Ticks of the counter for a frame, {}", name(direction));
        let head = ["bursts of", "n", "frames", "receive", "work", "transmit"];
        let mut table = Table::new(caption, &head);
        table.row(row(&ticks.all, "any".to_owned()));
        for of in &ticks.by_burst {
            let size = if of.from == of.to {
                of.from.to_string()
            } else {
                format!("{} to {}", of.from, of.to)
            };
            table.row(row(of, size));
        }
        Some(table)
    };
    of.directions.iter().filter_map(table).collect()
}

/// Residences of both directions, those from the kernel's stamps apart.
pub(crate) fn residences(of: &Forward) -> Vec<(String, &Residence)> {
    let of_direction = |direction: &'_ ForwardDirection| name(direction);
    of.directions
        .iter()
        .flat_map(|direction| {
            let own = direction.residence.as_ref().map(|found| (of_direction(direction), found));
            let kernel = direction.kernel_residence.as_ref();
            let kernel = kernel.map(|found| (format!("{}, kernel", name(direction)), found));
            own.into_iter().chain(kernel)
        })
        .collect()
}

/// The sentence with a capital at its beginning.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
pub(crate) mod tests;
