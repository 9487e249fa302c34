//! Rates as people write them: `100kpps`, `1.5Mpps`, `200us`, `1Gbit/s`, `800Mbit/s@L2`.

use std::fmt;
use std::str::FromStr;

use whylate_model::Nanos;

/// What an Ethernet frame has on the wire and not in memory: preamble 7, delimiter 1, gap 12.
const WIRE_BYTES: u32 = 20;
/// The shortest frame, with its check sequence.
const SHORTEST_FRAME: u32 = 64;

/// How a rate by its period is written.
const ONE_EVERY: &str = "one every";

/// Which bytes a bit rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Frames with preamble, delimiter and gap: what a link's speed means.
    L1,
    /// Frames, with their check sequence.
    L2,
}

/// How often, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Packets per second.
    Packets(f64),
    /// One after every so long.
    Every(Nanos),
    /// Bits per second of frames of the size sent.
    Bits(f64, Layer),
}

/// Why a text is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a rate: write it as 100kpps, 1.5Mpps, one every 200us, 1Gbit/s (on the wire) or \
     1Gbit/s@L2 (frames alone), from one in ten minutes to 100Mpps"
)]
pub struct RateError(String);

impl Rate {
    /// Packets per second when frames have so many bytes at layer 2, check sequence included.
    #[must_use]
    pub fn per_second(self, frame_bytes: u32) -> f64 {
        match self {
            Self::Packets(pps) => pps,
            Self::Every(period) => 1e9 / period.0 as f64,
            Self::Bits(bits, layer) => bits / bits_of(frame_bytes, layer),
        }
    }

    /// Bits per second at this layer when frames have so many bytes at layer 2.
    #[must_use]
    pub fn bits_per_second(per_second: f64, frame_bytes: u32, layer: Layer) -> f64 {
        per_second * bits_of(frame_bytes, layer)
    }
}

fn bits_of(frame_bytes: u32, layer: Layer) -> f64 {
    let frame = frame_bytes.max(SHORTEST_FRAME);
    f64::from(8 * (frame + if layer == Layer::L1 { WIRE_BYTES } else { 0 }))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = |value: f64| match value {
            value if value >= 1e12 => (value / 1e12, "T"),
            value if value >= 1e9 => (value / 1e9, "G"),
            value if value >= 1e6 => (value / 1e6, "M"),
            value if value >= 1e3 => (value / 1e3, "k"),
            value => (value, ""),
        };
        match *self {
            Self::Packets(pps) => {
                let (value, prefix) = scaled(pps);
                write!(f, "{value} {prefix}pps")
            }
            Self::Every(period) => write!(f, "{ONE_EVERY} {period}"),
            Self::Bits(bits, layer) => {
                let (value, prefix) = scaled(bits);
                write!(f, "{value} {prefix}bit/s at {layer:?}")
            }
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let refused = || RateError(text.to_owned());
        if let Some(period) = text.strip_prefix(ONE_EVERY) {
            let period = period.trim().parse::<Nanos>().ok().filter(|period| period.0 > 0);
            return period.map(Self::Every).ok_or_else(refused);
        }
        let (body, layer) = match text.rsplit_once('@') {
            None => (text, None),
            Some((body, layer)) if layer.eq_ignore_ascii_case("l1") => (body, Some(Layer::L1)),
            Some((body, layer)) if layer.eq_ignore_ascii_case("l2") => (body, Some(Layer::L2)),
            Some(_) => return Err(refused()),
        };
        let split = body.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(body.len());
        let (number, unit) = body.split_at(split);
        let value: f64 = number.parse().map_err(|_| refused())?;
        if !(value.is_finite() && value > 0.0) {
            return Err(refused());
        }
        let (scale, unit) = match unit.as_bytes().first() {
            Some(b'k' | b'K') => (1e3, &unit[1..]),
            Some(b'M') => (1e6, &unit[1..]),
            Some(b'G') => (1e9, &unit[1..]),
            Some(b'T') => (1e12, &unit[1..]),
            _ => (1.0, unit),
        };
        match (unit, layer) {
            ("pps" | "/s", None) => Ok(Self::Packets(value * scale)),
            ("bit/s" | "bps", layer) => Ok(Self::Bits(value * scale, layer.unwrap_or(Layer::L1))),
            _ => match body.parse::<Nanos>() {
                Ok(period) if period.0 > 0 && layer.is_none() => Ok(Self::Every(period)),
                _ => Err(refused()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_packets_periods_and_bits() {
        for (text, frame, expected) in [
            ("100kpps", 64, 1e5),
            ("1.5Mpps", 64, 1.5e6),
            ("20/s", 64, 20.0),
            ("200us", 64, 5e3),
            ("one every 200us", 64, 5e3),
            ("1Tbit/s", 64, 1_488_095_238.095),
            // The figure of the KBNets paper: 64 bytes at 1 Gb/s on the wire.
            ("1Gbit/s", 64, 1_488_095.238_095),
            ("1Gbit/s@L2", 64, 1_953_125.0),
            ("800Mbps", 1_518, 800e6 / 8.0 / 1_538.0),
            ("84bit/s", 10, 0.125),
        ] {
            let rate: Rate = text.parse().unwrap();
            let found = rate.per_second(frame);
            assert!((found / expected - 1.0).abs() < 1e-9, "{text}: {found}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "",
            "fast",
            "100",
            "-1kpps",
            "0pps",
            "one every",
            "one every 0s",
            "one every 1kpps",
            "1Pbit/s",
            "5kpps@L1",
            "3us@L2",
            "1Gbit/s@L3",
            "NaNpps",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
