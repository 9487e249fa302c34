//! Records of single requests on their way from the measuring thread: the one place that takes them
//! out of their ring, for whoever wants them.

use std::sync::mpsc::{Receiver, Sender, channel};

use whylate_model::packet::{Outcome, StoredPacket};
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_net::OpenLoop;
use whylate_net::open_loop::settled::{self, Settled, Settlements, Settling};

use super::request::Request;
use crate::storage::Storage;

/// The measuring thread's end, until it begins.
pub(super) struct Giver {
    to: Sender<Settlements>,
    wanted: bool,
}

/// The recording thread's end.
pub(super) struct Packets {
    coming: Receiver<Settlements>,
    settlements: Option<Settlements>,
    log: Option<Log>,
}

/// How a request is written down.
#[derive(Debug, Clone, Copy)]
struct Log {
    flow: u16,
    rate: Hertz,
    /// Nothing is intended.
    closed: bool,
    /// Nothing asks for a reply.
    one_way: bool,
}

/// Both ends, for the flow with this number; `looked_at` where somebody else wants the records.
pub(super) fn between(
    request: &Request,
    flow: u16,
    settings: &OpenLoop,
    looked_at: bool,
) -> (Packets, Giver) {
    let (to, coming) = channel();
    let (closed, one_way) = (settings.plan.is_closed(), settings.one_way);
    let log = Log { flow, rate: settings.rate, closed, one_way };
    let log = request.log_packets.then_some(log);
    let wanted = looked_at || log.is_some();
    (Packets { coming, settlements: None, log }, Giver { to, wanted })
}

impl Giver {
    /// What the measuring thread tells its requests to, made on that thread; none where nobody wants
    /// them.
    pub(super) fn begin(&self) -> Option<Settling> {
        if !self.wanted {
            return None;
        }
        let (settling, settlements) = settled::between();
        // The recording thread waits for the end of this one.
        let _ = self.to.send(settlements);
        Some(settling)
    }
}

impl Packets {
    /// Takes everything that has been settled, and writes it into the log, where one is wanted.
    pub(super) fn take(&mut self, storage: &mut Storage, each: &mut dyn FnMut(&Settled)) {
        if let Ok(settlements) = self.coming.try_recv() {
            self.settlements = Some(settlements);
        }
        let Some(settlements) = &mut self.settlements else { return };
        settlements.drain(|settled| {
            if let Some(log) = self.log {
                storage.packet(&log.row(&settled));
            }
            each(&settled);
        });
    }
}

impl Log {
    fn row(self, settled: &Settled) -> StoredPacket {
        let Settled { number, sent, at, .. } = *settled;
        let intended = (!self.closed).then_some(settled.intended);
        let outcome = match (settled.answered, number, sent) {
            (true, ..) => Outcome::Answered,
            (_, None, _) => Outcome::NeverSent,
            (_, _, None) => Outcome::Refused,
            _ if self.one_way => Outcome::OneWay,
            _ => Outcome::Unanswered,
        };
        let replied = settled.answered.then_some(at);
        StoredPacket {
            flow: self.flow,
            number,
            intended,
            sent,
            at,
            outcome,
            service: self.between(sent, replied),
            response: self.between(intended, replied),
            lateness: self.between(intended, sent),
        }
    }

    fn between(self, from: Option<Ticks>, to: Option<Ticks>) -> Option<Nanos> {
        let (from, to) = from.zip(to)?;
        Some(Ticks(to.0.max(from.0)).since(from).to_nanos(self.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_times_that_are_known_and_no_others() {
        let log = Log { flow: 0, rate: Hertz(2e9), closed: false, one_way: false };
        let (number, intended, sent, at) = (Some(7), Ticks(100), Some(Ticks(120)), Ticks(320));
        let answered = Settled { number, intended, sent, at, answered: true };
        let row = log.row(&answered);
        let times = [row.service, row.response, row.lateness];
        assert_eq!(times, [Some(Nanos(100)), Some(Nanos(110)), Some(Nanos(10))]);
        let given_up = log.row(&Settled { answered: false, ..answered });
        assert_eq!((given_up.outcome, given_up.service), (Outcome::Unanswered, None));
        assert_eq!((given_up.response, given_up.lateness), (None, Some(Nanos(10))));
        let refused = log.row(&Settled { answered: false, sent: None, ..answered });
        assert_eq!((refused.outcome, refused.lateness), (Outcome::Refused, None));
        let never = Settled { number: None, sent: None, answered: false, ..answered };
        assert_eq!(log.row(&never).outcome, Outcome::NeverSent);
        let closed = Log { closed: true, ..log }.row(&answered);
        assert_eq!((closed.intended, closed.response, closed.lateness), (None, None, None));
        assert_eq!(closed.service, Some(Nanos(100)));
        let one_way = Log { one_way: true, ..log };
        let left = one_way.row(&Settled { answered: false, ..answered });
        assert_eq!((left.outcome, left.lateness), (Outcome::OneWay, Some(Nanos(10))));
    }
}
