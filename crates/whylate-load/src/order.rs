//! What a child is told to do: one line of JSON on its standard input, which then stays open until
//! the child is to stop.

use std::io::BufRead;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use whylate_model::{CpuId, Nanos, Pid};

use crate::error::LoadError;

/// An order is not longer than this: the CPUs of the largest machines have room in it.
const MOST_BYTES: u64 = 64 << 10;

/// What one child does, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Who started it.
    pub(crate) parent: Pid,
    /// It ends after so long whatever happens,
    pub(crate) at_most: Nanos,
    /// which is then, on the monotonic clock: the same instant for all children of a load.
    pub(crate) end: Nanos,
    /// CPUs on which the work is done.
    pub(crate) cpus: Vec<CpuId>,
    /// CPUs for its own housekeeping.
    pub(crate) housekeeping: Vec<CpuId>,
    /// Bed and role of the namespace in which it works.
    pub(crate) inside: Option<(String, Side)>,
    /// The work.
    pub(crate) job: Job,
}

/// An end of a path through a bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A child's work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Job {
    TcpReceive { at: SocketAddr },
    TcpSend { to: SocketAddr },
    UdpReceive { at: SocketAddr },
    UdpSend { to: SocketAddr, pps: u32, bytes: u32 },
    Walk { tree: PathBuf },
    Interrupt { targets: Vec<CpuId>, per_second: u32 },
    Hog { share: f64 },
    Stream { bytes: u64 },
}

impl Order {
    /// As it is sent.
    pub(crate) fn line(&self) -> Result<String, LoadError> {
        let mut line =
            serde_json::to_string(self).map_err(|error| LoadError::NoOrder(error.to_string()))?;
        line.push('\n');
        Ok(line)
    }

    /// Reads one.
    pub(crate) fn read(from: &mut impl BufRead) -> Result<Self, LoadError> {
        let no_order = |why: &dyn std::fmt::Display| LoadError::NoOrder(why.to_string());
        let mut line = Vec::new();
        let mut bounded = std::io::Read::take(from, MOST_BYTES);
        bounded.read_until(b'\n', &mut line).map_err(|error| no_order(&error))?;
        serde_json::from_slice(&line).map_err(|error| no_order(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_given_and_what_is_none_is_refused() {
        let order = Order {
            parent: Pid(7),
            at_most: Nanos(9),
            end: Nanos(10),
            cpus: vec![CpuId(1)],
            housekeeping: vec![CpuId(0)],
            inside: Some(("lab".to_owned(), Side::Client)),
            job: Job::Hog { share: 0.5 },
        };
        let line = order.line().unwrap();
        let mut input = std::io::Cursor::new(format!("{line}more"));
        let read = Order::read(&mut input).unwrap();
        assert_eq!(format!("{read:?}"), format!("{order:?}"));
        for text in ["", "\n", "{}", "[[[", "\u{0}", &"x".repeat(100_000)] {
            let mut input = std::io::Cursor::new(text);
            assert!(matches!(Order::read(&mut input), Err(LoadError::NoOrder(_))), "{text:.20}");
        }
    }
}
