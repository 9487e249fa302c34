//! What an open loop leaves behind, and how it is put together once its ends have come to rest.

use whylate_model::Ticks;
use whylate_port::{FrameCounts, Port, PortFacts, StampCounts};

use super::anomalies::Anomalies;
use super::departures::Departures;
use super::ledger::{GivenUp, Latencies};
use super::pacing::Interrupted;
use super::receiver::Receiver;
use super::sender::Sender;
use super::stamps::Untold;
use super::{Ended, OpenLoop};
use crate::message::ReflectorReport;
use crate::protocol::Protocol;
use crate::sequence::Accounting;

/// What an open loop leaves behind.
#[derive(Debug)]
pub struct OpenOutcome {
    /// Latencies of all intended requests.
    pub latencies: Latencies,
    /// The same by parts of the pattern, labelled by the plan's [`parts`].
    ///
    /// [`parts`]: crate::schedule::Arrivals::parts
    pub parts: Vec<Latencies>,
    /// Values of which only a lower bound is known.
    pub given_up: GivenUp,
    /// Requests under way when the port failed: in no histogram.
    pub abandoned: u64,
    /// What left, and when.
    pub departures: Departures,
    /// Did the next request wait for the reply? Then nothing was intended, and response and lateness
    /// are empty.
    pub closed: bool,
    /// Did nothing ask for a reply? Then service and response are empty.
    pub one_way: bool,
    /// What became of every request and every message, as far as this end can tell: of what asks
    /// for no reply the other end's account says it.
    pub accounting: Accounting,
    /// The beginning of the measured schedule; none when it was not reached.
    pub began: Option<Ticks>,
    /// When sending ended.
    pub ended: Option<Ticks>,
    /// Why the measurement ended.
    pub why: Ended,
    /// The port.
    pub port: PortFacts,
    /// The protocol.
    pub protocol: &'static str,
    /// The other end's own account, where its protocol has one and it arrived.
    pub account: Option<ReflectorReport>,
    /// The first odd messages of each kind.
    pub anomalies: Anomalies,
    /// Long turns of the sending side's loop; of a closed loop nothing is known.
    pub interrupted: Interrupted,
    /// Of a port of whole frames: what became of those that came.
    pub frames: Option<FrameCounts>,
    /// Of a stamped port: what became of its stamps, those of the warm-up among them.
    pub stamps: Option<StampCounts>,
    /// Stamps of measured requests, and of their replies, that no record tells of.
    pub stamps_untold: Untold,
}

impl OpenOutcome {
    /// Does every intended request have its place, in the histograms and in the account?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let (all, left) = (&self.latencies, self.departures.sent);
        let (tried, intended) = (left + self.departures.refused, self.departures.intended);
        let settled = tried + self.given_up.never_sent;
        if self.closed {
            return self.accounting.adds_up()
                && self.accounting.sent == tried
                && all.service.len() + self.abandoned == left;
        }
        let excluded = self.interrupted.excluded;
        if all.uninterrupted.len() + excluded != all.lateness.len() {
            return false;
        }
        if self.one_way {
            return self.accounting.sent == tried
                && settled == intended
                && all.lateness.len() + self.abandoned == intended;
        }
        self.accounting.adds_up()
            && self.accounting.sent == tried
            && all.service.len() + self.abandoned == left
            && all.response.len() + self.abandoned == intended
            && all.lateness.len() == all.response.len()
            && settled == intended
    }
}

/// How far a flow came.
pub(super) struct Course {
    /// The beginning of the measured schedule; none when it was not reached.
    pub(super) began: Option<Ticks>,
    /// When sending ended.
    pub(super) ended: Option<Ticks>,
    pub(super) why: Ended,
    /// Requests under way when the port failed.
    pub(super) abandoned: u64,
}

/// What a port says of itself in the end.
pub(super) struct OfPort {
    facts: PortFacts,
    frames: Option<FrameCounts>,
    stamps: Option<StampCounts>,
}

impl OfPort {
    /// A port that had these facts before it was used. Asked of one that failed as well: its rings may
    /// still be there.
    pub(super) fn of<P: Port + ?Sized>(port: &mut P, mut facts: PortFacts) -> Self {
        if let Some(socket) = &mut facts.socket {
            socket.incoming = port.incoming();
        }
        let frames = port.frame_counts().ok().flatten();
        Self { facts, frames, stamps: port.stamp_counts() }
    }
}

impl OpenLoop {
    /// What a flow leaves behind of which nothing is under way any more.
    pub(super) fn conclude(
        &self,
        protocol: &dyn Protocol,
        (mut sender, mut receiver): (Sender<'_>, Receiver<'_>),
        course: Course,
        of_port: OfPort,
    ) -> OpenOutcome {
        let Course { began, ended, why, abandoned } = course;
        if let (Ended::Duration, Some(ended)) = (&why, ended) {
            sender.rest(&self.plan, ended, &mut receiver.ledger);
        }
        receiver.ledger.close();
        receiver.anomalies.restore(protocol, self.bytes);
        let OfPort { facts, frames, stamps } = of_port;
        let of_stamps = receiver.ledger.tell.stamps.as_ref();
        let stamps_untold = of_stamps.map_or_else(Untold::default, |of| of.untold);
        OpenOutcome {
            interrupted: sender.pacing.told(receiver.ledger.interrupted),
            frames,
            stamps,
            stamps_untold,
            latencies: receiver.ledger.all,
            parts: receiver.ledger.parts,
            given_up: receiver.ledger.given_up,
            abandoned,
            departures: sender.departures,
            closed: self.plan.is_closed(),
            one_way: self.one_way,
            accounting: receiver.set.counts(),
            began,
            ended,
            why,
            port: facts,
            protocol: protocol.name(),
            account: receiver.account,
            anomalies: receiver.anomalies,
        }
    }
}
