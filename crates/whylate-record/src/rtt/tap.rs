//! A tap between client and server: that of a bed, captured while the requests go by, or a file that a
//! real one has written.
//!
//! A bed's tap is read by a thread of its own, which writes what it sees into the run directory and
//! pairs requests with replies. It is passive: the kernel copies frames, and nothing waits for it. What the
//! copies cost the requests is not measured: rounds of what looking costs go without a tap.
//!
//! Instants are by the system's clock where the capture is this host's ([`TapClock::System`]). A tap
//! with a clock of its own gives distances from request to reply and no instants.
//!
//! Guarantees: what the ring had no room for, what the file had no room for, and what nobody fetched in
//! time are counted apart; a file that cannot be written costs the file alone.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use whylate_breakdown::tap::{Paired, Pairing, Settings, wire};
use whylate_model::Nanos;
use whylate_model::breakdown::Point;
use whylate_model::pcapng::Direction;
use whylate_model::pcapng::tap::TapWriter;
use whylate_model::tap::{TAP_FILE, TapClock, TapFacts, TapFrom};
use whylate_model::warning::Warning;
use whylate_net::NetError;
use whylate_net::capture::Cut;
use whylate_net::capture::seen::{CaptureFacts, packets};
use whylate_net::lab::{Bed, Role};
use whylate_net::message::Cookie;
use whylate_net::protocol::{Speaks, tap};
use whylate_port::packet::tap::{KEPT, TapRing, Tapped};
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::RecordError;

/// How long the thread sleeps for a frame before it looks whether it is to end.
const PERIOD: Nanos = Nanos(10_000_000);
/// Handfuls of instants that wait to be fetched.
const WAITING: usize = 256;
/// Instants that are kept for whoever does not fetch them: a second of a million requests.
const MOST_KEPT: usize = 2_000_000;
/// What has passed the tap when the thread is told to end is still taken, so many rings at most.
const LAST_RINGS: usize = 4;

const COMMENT: &str = "What passed the tap of a bed, both ways, stamped by the kernel with the system's \
    clock. Checksums are made after it, by cards that do not exist here.";

/// The messages of a flow, as a tap is to tell them.
#[derive(Debug, Clone, Copy)]
pub struct Followed {
    /// By numbers or by order, and whose.
    pub settings: Settings,
    /// The protocol of messages that have numbers.
    pub protocol: Speaks,
    /// The client's own, where it is known: other clients' messages are foreign then.
    pub cookie: Option<Cookie>,
}

/// A message that passed: the flow by its place among those followed, its request's number, where, and
/// when by the system's clock.
pub type Passed = (usize, u64, Point, Nanos);

/// What the tap saw of one flow.
#[derive(Debug)]
pub struct OfTap {
    /// What is stored; the name of the series is still to be given.
    pub facts: TapFacts,
    /// Distances from request to reply at the tap, in nanoseconds.
    pub distances: Histogram,
}

/// What the tap of a bed came to.
#[derive(Debug)]
pub struct Finished {
    /// By flow, in the order in which they were followed.
    pub flows: Vec<OfTap>,
    /// Instants that nobody fetched in time.
    pub untold: u64,
    /// Why there is no file in the run directory, where there is none.
    pub no_file: Option<String>,
}

/// The tap of a bed, while it is read.
#[derive(Debug)]
pub struct LiveTap {
    stop: Arc<AtomicBool>,
    coming: Receiver<Vec<Passed>>,
    thread: Option<JoinHandle<Result<Finished, RecordError>>>,
}

impl LiveTap {
    /// Begins to read the tap of a bed, and to write what it sees into `directory`, as
    /// [`TAP_FILE`]. When this returns nothing passes unseen.
    ///
    /// # Errors
    /// A bed without a tap, no right to capture, no memory for the ring.
    pub fn start(bed: &Bed, directory: &Path, flows: &[Followed]) -> Result<Self, RecordError> {
        let (bed, interface, path) = (bed.clone(), bed.tap()?, directory.join(TAP_FILE));
        let flows = pairings(flows);
        let stop = Arc::new(AtomicBool::new(false));
        let (to, coming) = sync_channel(WAITING);
        let (ready, is_ready) = sync_channel(1);
        let told_to_stop = Arc::clone(&stop);
        let work = move || {
            let opened = bed
                .enter(Role::Device)
                .map_err(RecordError::from)
                .and_then(|()| Ok(TapRing::open(&interface)?));
            let ring = match opened {
                Ok(ring) => ring,
                Err(error) => {
                    // The one who started it waits for this word.
                    let _ = ready.send(false);
                    return Err(error);
                }
            };
            let _ = ready.send(true);
            Reading::new(ring, flows, &interface, &path, to).run(&interface, &told_to_stop)
        };
        let thread = thread::Builder::new()
            .name("whylate-tap".to_owned())
            .spawn(work)
            .map_err(RecordError::NoThread)?;
        let mut live = Self { stop, coming, thread: Some(thread) };
        if is_ready.recv().unwrap_or(false) {
            return Ok(live);
        }
        live.join().and_then(|_| Err(NetError::Tap("its thread ended before it began").into()))
    }

    /// Gives what has passed since the last call to `each`. Never waits.
    pub fn drain(&mut self, each: &mut dyn FnMut(Passed)) {
        while let Ok(passed) = self.coming.try_recv() {
            passed.into_iter().for_each(&mut *each);
        }
    }

    /// Ends it; what has passed by now is still given to `each`.
    ///
    /// # Errors
    /// The interface went away while it was read.
    pub fn finish(mut self, each: &mut dyn FnMut(Passed)) -> Result<Finished, RecordError> {
        self.stop.store(true, Ordering::Relaxed);
        // Ends with the thread, which holds the other end.
        while let Ok(passed) = self.coming.recv() {
            passed.into_iter().for_each(&mut *each);
        }
        self.join()
    }

    fn join(&mut self) -> Result<Finished, RecordError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(finished)) => finished,
            _ => Err(NetError::Tap("its thread ended by itself").into()),
        }
    }
}

impl Drop for LiveTap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread whose words nobody takes ends all the same.
        while self.coming.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Reading {
    ring: TapRing,
    flows: Vec<Pairing>,
    file: Result<TapWriter<BufWriter<File>>, String>,
    to: SyncSender<Vec<Passed>>,
    pending: Vec<Passed>,
    untold: u64,
    packets: u64,
}

impl Reading {
    fn new(
        ring: TapRing,
        flows: Vec<Pairing>,
        interface: &str,
        path: &Path,
        to: SyncSender<Vec<Passed>>,
    ) -> Self {
        let file = File::create_new(path)
            .and_then(|file| TapWriter::new(BufWriter::new(file), COMMENT, interface, KEPT))
            .map_err(|why| unwritable(path, &why));
        Self { ring, flows, file, to, pending: Vec::new(), untold: 0, packets: 0 }
    }

    fn run(mut self, interface: &str, stop: &AtomicBool) -> Result<Finished, RecordError> {
        while !stop.load(Ordering::Relaxed) {
            self.take(PERIOD)?;
            self.tell();
        }
        for _ in 0..LAST_RINGS {
            if self.take(Nanos(0))? == 0 {
                break;
            }
        }
        let lost = self.ring.dropped()?;
        // Whoever ends the tap takes all that there is: this waits for no one else.
        if !self.pending.is_empty() {
            let _ = self.to.send(std::mem::take(&mut self.pending));
        }
        let (unwritten, no_file) = match self.file {
            Err(why) => (0, Some(why)),
            Ok(file) => {
                let unwritten = file.unwritten();
                let ended = file.finish(clock_ns(Clock::Realtime), lost);
                (unwritten, ended.err().map(|why| unwritable(Path::new(TAP_FILE), &why)))
            }
        };
        let facts = |counts, settings: Settings, resolution| TapFacts {
            from: TapFrom::Bed { interface: interface.to_owned(), kept: KEPT },
            clock: TapClock::System,
            pairing: settings.pairing(),
            resolution,
            packets: self.packets,
            lost,
            skipped: 0,
            unwritten,
            counts,
            between: None,
            series: None,
            file: no_file.is_none().then(|| TAP_FILE.to_owned()),
        };
        let resolution = Nanos(u64::from(self.packets > 0));
        let flows = self.flows.into_iter().map(|pairing| {
            let settings = *pairing.settings();
            let Paired { counts, distances } = pairing.finish();
            OfTap { facts: facts(counts, settings, resolution), distances }
        });
        Ok(Finished { flows: flows.collect(), untold: self.untold, no_file })
    }

    /// Takes what there is, and waits for something so long at most.
    fn take(&mut self, limit: Nanos) -> Result<usize, RecordError> {
        let Self { ring, flows, file, pending, packets, .. } = self;
        let mut each = |frame: &Tapped<'_>| {
            *packets += 1;
            if let Ok(open) = file {
                let direction =
                    if frame.outgoing { Direction::Outbound } else { Direction::Inbound };
                let written = open.frame(frame.at.0, direction, frame.bytes, frame.length);
                if let Err(why) = written {
                    *file = Err(unwritable(Path::new(TAP_FILE), &why));
                }
            }
            follow(flows, (frame.at, LINK_ETHERNET, frame.bytes), &mut |passed| {
                pending.push(passed);
            });
        };
        Ok(ring.take(limit, &mut each)?)
    }

    /// Hands over what has passed, where there is room for it; keeps it otherwise, and not for ever.
    fn tell(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) =
            self.to.try_send(std::mem::take(&mut self.pending))
        {
            self.pending = back;
        }
        if self.pending.len() > MOST_KEPT {
            self.untold += self.pending.len() as u64;
            self.pending.clear();
        }
    }
}

/// Frames of Ethernet, by the numbers of tcpdump.org.
const LINK_ETHERNET: u16 = 1;

/// Reads what a tap has written into a file, after the requests went by. `each` is called where the
/// capture is by this host's system clock; otherwise nothing is known of its instants, and distances
/// alone come back. A file that ends in the middle of a packet is taken up to there, and says so in the
/// second of what comes back, for [`cut`] to warn of.
///
/// # Errors
/// A file that cannot be read, or is no capture.
pub fn from_file(
    path: &Path,
    clock: TapClock,
    flows: &[Followed],
    each: &mut dyn FnMut(Passed),
) -> Result<(Vec<OfTap>, CaptureFacts), RecordError> {
    let mut flows = pairings(flows);
    let mut known = |passed| match clock {
        TapClock::System => each(passed),
        TapClock::Own => (),
    };
    let capture = packets(path, Cut::Taken, &mut |packet| {
        follow(&mut flows, (packet.at, packet.link, packet.bytes), &mut known);
    });
    let capture = capture.map_err(NetError::from)?;
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let of_tap = |pairing: Pairing| {
        let settings = *pairing.settings();
        let Paired { counts, distances } = pairing.finish();
        let facts = TapFacts {
            from: TapFrom::File { name: name.clone(), format: capture.format.to_owned() },
            clock,
            pairing: settings.pairing(),
            resolution: Nanos(capture.resolution_ps.div_ceil(1_000)),
            packets: capture.packets,
            lost: capture.lost,
            skipped: capture.skipped,
            unwritten: 0,
            counts,
            between: None,
            series: None,
            file: None,
        };
        OfTap { facts, distances }
    };
    let flows: Vec<OfTap> = flows.into_iter().map(of_tap).collect();
    Ok((flows, capture))
}

/// Says of a file that ends in the middle of a packet how much of it was taken; none of a whole one.
#[must_use]
pub fn cut(path: &Path, capture: &CaptureFacts) -> Option<Warning> {
    capture.was_cut.then(|| Warning::PartEndedEarly {
        part: format!("what the tap wrote into {}", path.display()),
        reason: format!(
            "the file ends in the middle of a packet, or of its own header: its {} whole packets were \
             taken, and its last {} bytes were not",
            capture.packets, capture.cut_bytes
        ),
    })
}

/// A file of a tap that is to be read after the run: where nothing can ever be, it is said before.
///
/// # Errors
/// Its directory is not there.
pub fn checked(path: &Path) -> Result<PathBuf, RecordError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if directory.is_dir() {
        return Ok(path.to_owned());
    }
    let why = io::Error::from(io::ErrorKind::NotFound);
    Err(NetError::Bed { what: format!("find {}", directory.display()), source: why }.into())
}

fn pairings(flows: &[Followed]) -> Vec<Pairing> {
    let pairing =
        |flow: &Followed| Pairing::new(flow.settings, tap::reader(flow.protocol, flow.cookie));
    flows.iter().map(pairing).collect()
}

/// Shows a packet to all flows.
fn follow(
    flows: &mut [Pairing],
    (at, link, bytes): (Nanos, u16, &[u8]),
    each: &mut dyn FnMut(Passed),
) {
    let crossing = wire::crossing(at, link, bytes);
    for (flow, pairing) in flows.iter_mut().enumerate() {
        match &crossing {
            Ok(crossing) => {
                pairing
                    .crossing(crossing, &mut |number, point, at| each((flow, number, point, at)));
            }
            Err(why) => pairing.unread(*why),
        }
    }
}

fn unwritable(path: &Path, why: &io::Error) -> String {
    format!("cannot write what the tap saw into {}: {why}", path.display())
}
