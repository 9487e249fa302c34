//! Where a proxy listens, and where it carries what comes: `udp:127.0.0.1:4100=127.0.0.1:4021`.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::error::ProxyError;

/// What is refused is shown up to here.
const SHOWN: usize = 60;

/// What a proxy carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// Datagrams.
    Udp,
    /// The bytes of connections.
    Tcp,
}

impl ProxyKind {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// From where to where a proxy carries, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyWay {
    /// What.
    pub kind: ProxyKind,
    /// Where clients reach it.
    pub listen: SocketAddr,
    /// Where their messages go.
    pub to: SocketAddr,
}

impl FromStr for ProxyWay {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let shown = || text.chars().take(SHOWN).flat_map(char::escape_default).collect();
        let unread = || ProxyError::NotAWay(shown());
        let (kind, rest) = text.split_once(':').ok_or_else(unread)?;
        let kind = match kind {
            "udp" => ProxyKind::Udp,
            "tcp" => ProxyKind::Tcp,
            _ => return Err(unread()),
        };
        let (listen, to) = rest.split_once('=').ok_or_else(unread)?;
        let address = |text: &str| text.parse::<SocketAddr>().map_err(|_| unread());
        let (listen, to) = (address(listen)?, address(to)?);
        if to.port() == 0 || to.ip().is_unspecified() || to.ip().is_multicast() {
            return Err(ProxyError::Nowhere(to));
        }
        if leads_to_itself(listen, to) {
            return Err(ProxyError::ToItself(listen));
        }
        Ok(Self { kind, listen, to })
    }
}

/// Would what it sends come back to it? A port of 0 is drawn later, and never one that is in use.
pub(crate) fn leads_to_itself(listen: SocketAddr, to: SocketAddr) -> bool {
    let own = listen.ip() == to.ip() || (listen.ip().is_unspecified() && to.ip().is_loopback());
    listen.port() == to.port() && own
}

impl fmt::Display for ProxyWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.kind.name(), self.listen, self.to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_words_are_a_way_that_is_written_as_it_is_read_or_a_reason_that_is_safe_to_show(
            text in "((udp|tcp):(127.0.0.[12]|\\[::1\\]):[0-9]{1,5}=\
                     (127.0.0.[12]|\\[::1\\]):[0-9]{1,5})|.{0,80}",
        ) {
            match text.parse::<ProxyWay>() {
                Ok(way) => {
                    prop_assert!(way.listen != way.to && way.to.port() > 0);
                    prop_assert_eq!(way.to_string().parse::<ProxyWay>().ok(), Some(way));
                }
                Err(error) => {
                    let told = error.to_string();
                    prop_assert!(told.len() < 1_000 && !told.chars().any(char::is_control), "{told:?}");
                }
            }
        }
    }

    #[test]
    fn a_way_is_a_kind_and_two_addresses_and_anything_else_is_refused_with_how_to_write_one() {
        for text in ["udp:127.0.0.1:4100=127.0.0.1:4021", "tcp:[::1]:0=[::1]:4021"] {
            assert_eq!(text.parse::<ProxyWay>().unwrap().to_string(), text);
        }
        for text in ["", "udp", "sctp:127.0.0.1:1=127.0.0.1:2", "udp:127.0.0.1:1", "udp:a:1=b:2"] {
            let error = text.parse::<ProxyWay>().unwrap_err().to_string();
            assert!(error.contains("udp:127.0.0.1:4100=127.0.0.1:4021"), "{error}");
        }
        for text in ["udp:127.0.0.1:4100=127.0.0.1:0", "udp:127.0.0.1:4100=0.0.0.0:5"] {
            assert!(matches!(text.parse::<ProxyWay>(), Err(ProxyError::Nowhere(_))), "{text}");
        }
        for text in ["udp:127.0.0.1:7=127.0.0.1:7", "tcp:0.0.0.0:7=127.0.0.1:7"] {
            assert!(matches!(text.parse::<ProxyWay>(), Err(ProxyError::ToItself(_))), "{text}");
        }
    }
}
