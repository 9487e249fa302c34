//! Which box is measured, in words: `bridge`, `forward:xdp`, `delay:10us`.

use std::fmt;
use std::str::FromStr;

use whylate_model::lab::BedKind;
use whylate_port::Transport;

/// Longest words of a delay line's law: what is longer is none.
const LONGEST_LAW: usize = 200;

/// What is refused is shown up to here.
const SHOWN: usize = 60;

/// A box between two ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TheBox {
    /// A bridge of the kernel.
    Bridge,
    /// Open vSwitch.
    Ovs,
    /// `whylate forward`, by these frames.
    Forward(Transport),
    /// DPDK's testpmd, by a driver over the kernel's interfaces.
    Testpmd(Driver),
    /// `whylate delay` with this law, as it takes it.
    Delay(String),
    /// Something real between two interfaces of this machine.
    Between,
}

/// How testpmd reaches the interfaces of a bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// `net_af_packet`.
    Packet,
    /// `net_af_xdp`.
    Xdp,
}

/// Words that name no box.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a box: use bridge, ovs, forward:packet, forward:xdp, testpmd, testpmd:xdp, delay:TIME such \
     as delay:10us, or between (two --interfaces)"
)]
pub struct TheBoxError(pub String);

impl TheBox {
    /// The kind of the bed that it stands in; none of what is real.
    #[must_use]
    pub fn bed_kind(&self) -> Option<BedKind> {
        match self {
            Self::Bridge => Some(BedKind::Bridge),
            Self::Ovs => Some(BedKind::Ovs),
            Self::Forward(_) | Self::Testpmd(_) | Self::Delay(_) => Some(BedKind::Open),
            Self::Between => None,
        }
    }

    /// Does it keep a log of its own of how long frames stayed?
    #[must_use]
    pub fn has_a_log(&self) -> bool {
        matches!(self, Self::Forward(_) | Self::Delay(_))
    }

    /// By what the delay line in its place takes frames: as the box does, where that is known.
    #[must_use]
    pub fn like(&self) -> Transport {
        match self {
            Self::Forward(transport) => *transport,
            Self::Testpmd(Driver::Xdp) => Transport::Xdp,
            _ => Transport::Packet,
        }
    }

    /// Can it have more than two ports?
    #[must_use]
    pub fn has_many_ports(&self) -> bool {
        matches!(self, Self::Bridge | Self::Ovs | Self::Between)
    }
}

impl fmt::Display for TheBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bridge => f.write_str("bridge"),
            Self::Ovs => f.write_str("ovs"),
            Self::Forward(transport) => write!(f, "forward:{transport}"),
            Self::Testpmd(Driver::Packet) => f.write_str("testpmd"),
            Self::Testpmd(Driver::Xdp) => f.write_str("testpmd:xdp"),
            Self::Delay(law) => write!(f, "delay:{law}"),
            Self::Between => f.write_str("between"),
        }
    }
}

impl FromStr for TheBox {
    type Err = TheBoxError;

    fn from_str(text: &str) -> Result<Self, TheBoxError> {
        let shown = || text.chars().take(SHOWN).flat_map(char::escape_default).collect();
        let none = || TheBoxError(shown());
        let (kind, of) = text.split_once(':').map_or((text, None), |(kind, of)| (kind, Some(of)));
        match (kind, of) {
            ("bridge", None) => Ok(Self::Bridge),
            ("ovs", None) => Ok(Self::Ovs),
            ("between", None) => Ok(Self::Between),
            ("testpmd", None | Some("packet")) => Ok(Self::Testpmd(Driver::Packet)),
            ("testpmd", Some("xdp")) => Ok(Self::Testpmd(Driver::Xdp)),
            ("forward", Some("packet")) => Ok(Self::Forward(Transport::Packet)),
            ("forward", Some("xdp")) => Ok(Self::Forward(Transport::Xdp)),
            // What the law is, the delay line itself checks; here it must be one word.
            ("delay", Some(law)) if is_a_word(law) => Ok(Self::Delay(law.to_owned())),
            _ => Err(none()),
        }
    }
}

fn is_a_word(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    first && text.len() <= LONGEST_LAW && characters.all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_words_are_a_box_of_one_word_or_a_reason_that_is_safe_to_show(
            text in "((bridge|ovs|forward|testpmd|delay|between)(:[ -~]{0,12})?)|.{0,300}",
        ) {
            match text.parse::<TheBox>() {
                Ok(of) => {
                    let words = of.to_string();
                    prop_assert_eq!(words.parse::<TheBox>(), Ok(of.clone()));
                    if let TheBox::Delay(law) = &of {
                        // It becomes a word of a command line.
                        let one = !law.starts_with('-') && !law.contains(char::is_whitespace);
                        prop_assert!(one, "{law:?}");
                    }
                }
                Err(error) => {
                    let told = error.to_string();
                    prop_assert!(told.len() < 1_000 && !told.chars().any(char::is_control), "{told:?}");
                }
            }
        }
    }

    #[test]
    fn a_box_is_written_as_it_is_read_and_what_is_none_is_refused_by_its_words() {
        for text in [
            "bridge",
            "ovs",
            "forward:packet",
            "forward:xdp",
            "testpmd",
            "testpmd:xdp",
            "delay:10us",
            "between",
        ] {
            let read: TheBox = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        for text in
            ["", "forward", "forward:udp", "delay:", "delay:-o x", "delay:--x", "bridge:1", "wire"]
        {
            let error = text.parse::<TheBox>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}` is not a box")), "{error}");
        }
    }

    #[test]
    fn the_delay_line_in_a_boxs_place_takes_frames_as_the_box_does() {
        let like = |text: &str| text.parse::<TheBox>().unwrap().like();
        assert_eq!(like("forward:xdp"), Transport::Xdp);
        assert_eq!(like("testpmd:xdp"), Transport::Xdp);
        assert_eq!(like("bridge"), Transport::Packet);
        assert_eq!("bridge".parse::<TheBox>().unwrap().bed_kind(), Some(BedKind::Bridge));
        assert_eq!("between".parse::<TheBox>().unwrap().bed_kind(), None);
    }
}
