//! Patterns of arrivals as they are asked for: one that is made, or a capture file to replay.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use whylate_net::capture::{Capture, CaptureError, Cut};
use whylate_net::schedule::{Arrivals, ArrivalsError};
use whylate_record::rtt::Replayed;

/// What stands behind the name of a file that may end in the middle of a packet.
const CUT: &str = ",cut";

/// A pattern, or where it is to be read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AskedArrivals {
    /// A pattern.
    Pattern(Arrivals),
    /// The times of the packets in a capture file.
    Capture(PathBuf, Cut),
}

/// A pattern that can be begun.
pub(crate) struct Ready {
    pub(crate) arrivals: Arrivals,
    /// What is replayed, where it is a capture.
    pub(crate) replayed: Option<Replayed>,
}

impl AskedArrivals {
    /// Reads the capture, where there is one.
    pub(crate) fn ready(&self) -> Result<Ready, CaptureError> {
        match self {
            Self::Pattern(arrivals) => Ok(Ready { arrivals: arrivals.clone(), replayed: None }),
            Self::Capture(path, cut) => {
                let capture = Capture::read(path, *cut)?;
                let replayed = Some(Replayed {
                    path: path.clone(),
                    packets: capture.instants.len(),
                    lasts: capture.lasts(),
                    was_cut: capture.was_cut,
                });
                Ok(Ready { arrivals: capture.arrivals(), replayed })
            }
        }
    }

    /// Why a rate beside it says nothing; none where it says something.
    pub(crate) fn why_no_rate(&self) -> Option<&'static str> {
        match self {
            Self::Capture(..) => Some("a capture is replayed at its own times"),
            Self::Pattern(Arrivals::Closed) => Some("a closed loop sends when the reply has come"),
            Self::Pattern(Arrivals::Sweep { .. }) => Some("a sweep has its own intervals"),
            Self::Pattern(_) => None,
        }
    }
}

impl fmt::Display for AskedArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(arrivals) => arrivals.fmt(f),
            Self::Capture(path, _) => write!(f, "at the times of {}", path.display()),
        }
    }
}

impl FromStr for AskedArrivals {
    type Err = ArrivalsError;

    fn from_str(text: &str) -> Result<Self, ArrivalsError> {
        let inside = text.trim().strip_prefix("capture(").and_then(|rest| rest.strip_suffix(')'));
        match inside {
            Some(inside) if !inside.trim().is_empty() => {
                let (path, cut) = match inside.strip_suffix(CUT) {
                    Some(path) => (path, Cut::Taken),
                    None => (inside, Cut::Refused),
                };
                Ok(Self::Capture(PathBuf::from(path.trim()), cut))
            }
            _ => text.parse().map(Self::Pattern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_named_by_its_file_whatever_stands_in_the_name() {
        let asked = |text: &str| text.parse::<AskedArrivals>();
        let capture = |path: &str, cut| Ok(AskedArrivals::Capture(PathBuf::from(path), cut));
        assert_eq!(asked("capture(a.pcap)"), capture("a.pcap", Cut::Refused));
        assert_eq!(asked("capture(a b,(c).pcap,cut)"), capture("a b,(c).pcap", Cut::Taken));
        assert_eq!(asked("closed"), Ok(AskedArrivals::Pattern(Arrivals::Closed)));
        for text in ["capture()", "capture", "capture(a.pcap", "replay(a.pcap)"] {
            assert!(asked(text).unwrap_err().to_string().contains("capture"), "{text}");
        }
        assert!(asked("capture(a.pcap)").unwrap().why_no_rate().is_some());
        assert!(asked("closed").unwrap().why_no_rate().is_some());
        assert!(asked("sweep(2us,1ms,10)").unwrap().why_no_rate().is_some());
        assert!(asked("poisson").unwrap().why_no_rate().is_none());
    }
}
