//! What the logs of a client and of a delay line come to as rows to join.

use whylate_model::delay::Fate;
use whylate_model::directory::RunDir;
use whylate_model::packet::Outcome;
use whylate_model::{ModelError, segments};

use super::join::{Passed, Sent};

/// Requests of this flow that were handed over, in the order in which they were settled.
///
/// # Errors
/// The directory cannot be looked through; a row that cannot be read is an error of the iterator.
pub fn requests(
    directory: &RunDir,
    flow: u16,
) -> Result<impl Iterator<Item = Result<Sent, ModelError>> + use<>, ModelError> {
    let rows = segments::read_packets(directory)?;
    Ok(rows.filter_map(move |row| match row {
        Err(error) => Some(Err(error)),
        Ok(packet) if packet.flow == flow && packet.outcome != Outcome::Refused => {
            let received = (packet.outcome == Outcome::Answered).then_some(packet.at);
            let (number, sent) = (packet.number?, packet.sent?);
            Some(Ok(Sent { number, sent, received }))
        }
        Ok(_) => None,
    }))
}

/// Messages that came to the line by this direction, in the order in which they were settled.
///
/// # Errors
/// As [`requests`].
pub fn passed(
    directory: &RunDir,
    direction: u8,
) -> Result<impl Iterator<Item = Result<Passed, ModelError>> + use<>, ModelError> {
    let rows = segments::read_truths(directory)?;
    Ok(rows.filter_map(move |row| match row {
        Err(error) => Some(Err(error)),
        Ok(truth) if truth.direction == direction => Some(Ok(Passed {
            number: truth.number,
            arrival: truth.arrival,
            departure: truth.departure.filter(|_| truth.fate == Fate::Released),
            copy: truth.fate == Fate::Duplicate,
        })),
        Ok(_) => None,
    }))
}
