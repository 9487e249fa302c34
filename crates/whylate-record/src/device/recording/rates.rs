//! The highest rate that a box carries without loss, trial by trial.

use std::path::Path;

use whylate_model::Nanos;

use super::super::outcome::DeviceError;
use super::super::place::Standing;
use super::super::plan::{Slot, Turn};
use super::super::question::Searching;
use super::super::seen;
use super::super::throughput::{MOST_SPOILT, Search, Tried};
use super::super::words::Client;
use super::{AROUND, Recording};
use crate::RecordError;
use crate::progress::{Progress, Step};

/// What the client is asked for to find out what it can send.
const MOST_PPS: f64 = 2e6;

/// What came of one rate.
struct OneTrial {
    tried: Tried,
    /// Somebody else changed what was in force meanwhile.
    is_changed: bool,
}

impl Recording<'_> {
    /// The highest rate without loss, of each configuration and size.
    pub(super) fn throughput(
        &mut self,
        searching: Searching,
        about: Nanos,
        progress: &mut dyn Progress,
    ) -> Result<(), RecordError> {
        for frame_bytes in self.sizes() {
            for number in 0..self.question.configurations.len().max(1) {
                let client = self.most(number, frame_bytes, searching)?;
                if client.as_ref().is_some_and(|of| of.is_changed) {
                    let what = format!("what the client can send with {frame_bytes} bytes");
                    self.read_back.leave_out(what);
                }
                let client = client.filter(|of| !of.is_changed).map(|of| of.tried);
                if self.is_stopped() {
                    return Ok(());
                }
                let turn = Turn { slot: Slot::Boxed(number), frame_bytes };
                let elapsed = self.elapsed();
                progress.step(&Step {
                    what: format!("highest rate without loss, {frame_bytes} bytes"),
                    elapsed,
                    duration: about.max(elapsed),
                    so_far: String::new(),
                });
                self.search(turn, searching, client)?;
            }
        }
        Ok(())
    }

    /// What the client itself can send under a configuration; none where there is no bare link.
    fn most(
        &mut self,
        number: usize,
        frame_bytes: u32,
        searching: Searching,
    ) -> Result<Option<OneTrial>, RecordError> {
        let slot = Slot::Link(number);
        if self.is_stopped() || !self.places.slots().contains(&slot) {
            return Ok(None);
        }
        let turn = Turn { slot, frame_bytes };
        let place = self.next_place(&format!("most-{frame_bytes}"))?;
        let standing = self.stand(slot, &place, searching.duration)?;
        let client = self.trial(turn, &standing, &place, MOST_PPS, searching.duration).ok();
        standing.end()?;
        Ok(client)
    }

    /// One search; a box that fails in it is told, and what was measured before stays.
    fn search(
        &mut self,
        turn: Turn,
        searching: Searching,
        client: Option<Tried>,
    ) -> Result<(), RecordError> {
        let most = client.map_or(MOST_PPS, |of| of.achieved_pps);
        let mut search = Search::new(most, searching.trials, searching.tolerated);
        let place = self.next_place(&format!("throughput-{}", turn.frame_bytes))?;
        let each = searching.duration.0 + AROUND.0;
        let most = u64::from(searching.trials) + u64::from(MOST_SPOILT);
        let took = Nanos(each.saturating_mul(most));
        let standing = self.stand(turn.slot, &place, took)?;
        while let Some(rate) = search.next() {
            if self.is_stopped() {
                break;
            }
            let trial = place.join(format!("trial-{}", self.made));
            match self.trial(turn, &standing, &trial, rate, searching.duration) {
                // Of no configuration that was asked for: it is told, counts for nothing, and is made again.
                Ok(OneTrial { is_changed: true, .. }) => {
                    search.leave_out();
                    let what = format!("{} with {} bytes", self.name(turn.slot), turn.frame_bytes);
                    self.read_back.leave_out(format!("the throughput of {what}"));
                }
                Ok(OneTrial { tried, .. }) => search.take(rate, tried),
                Err(error) => {
                    let what = format!("{} with {} bytes", self.name(turn.slot), turn.frame_bytes);
                    self.device.notes.push(format!("throughput of {what}: {error}"));
                    break;
                }
            }
        }
        standing.end()?;
        let configuration = match turn.slot {
            Slot::Boxed(number) => self.question.configurations.get(number),
            _ => None,
        };
        let configuration = configuration.map(|of| of.name().to_owned());
        self.device.throughput.push(search.found(configuration, turn.frame_bytes, client));
        Ok(())
    }

    fn trial(
        &mut self,
        turn: Turn,
        standing: &Standing,
        place: &Path,
        per_second: f64,
        duration: Nanos,
    ) -> Result<OneTrial, RecordError> {
        self.made += 1;
        let warmup = Nanos(self.question.warmup.0.min(duration.0));
        let client = Client {
            through: self.places.through(turn.slot)?,
            frame_bytes: turn.frame_bytes,
            per_second,
            duration,
            warmup,
            both_ways: false,
            logged: false,
            seed: self.question.seed,
        };
        let words = client.words(self.question);
        let into = place.join(format!("client-{}", self.made));
        let took = Nanos(duration.0 + warmup.0);
        let (directory, run, is_changed) =
            self.run_client(turn.slot, standing, &words, &into, took)?;
        let ways = seen::client(&directory, &run)?;
        let none =
            || DeviceError::NotMeasured { what: words.clone(), why: "it has no flow".to_owned() };
        let way = ways.into_iter().next().ok_or_else(none)?;
        let tried = Tried { achieved_pps: way.per_second, sent: way.sent, lost: way.lost };
        Ok(OneTrial { tried, is_changed })
    }
}
