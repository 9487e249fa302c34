//! Lists of sockets as sockperf's `--file` takes them: one `U:ADDRESS:PORT` or `T:ADDRESS:PORT` a
//! line, for UDP and TCP. Without a letter it is UDP. An address of IPv6 stands in brackets. What
//! follows `#`, and empty lines, say nothing.
//!
//! Does not resolve names, and does not take the fourth field, by which sockperf filters who may send
//! to a group: it is refused rather than overlooked.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use whylate_port::Transport;

use crate::error::NetError;

/// Sockets of a list at most: as many as one server listens at.
pub const MOST_SOCKETS: usize = whylate_port::serving::MOST_LISTENING;
/// Bytes of a list at most: a line of 4 KiB for each socket.
pub const MOST_BYTES: u64 = 1 << 20;

/// One socket of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// UDP or TCP.
    pub transport: Transport,
    /// Where it listens, or what it is connected to.
    pub address: SocketAddr,
}

/// Reads a list from a file.
///
/// # Errors
/// A file that cannot be read or is too long, and what [`parse`] refuses.
pub fn read(path: &Path) -> Result<Vec<Socket>, NetError> {
    let unreadable = |why: String| NetError::FeedUnreadable { path: path.to_owned(), why };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| unreadable(error.to_string()))? as u64;
    if bytes > MOST_BYTES {
        return Err(unreadable(format!("it is longer than {MOST_BYTES} bytes")));
    }
    parse(&text)
}

/// Reads a list.
///
/// # Errors
/// [`NetError::Feed`] with the line that is none, or when there is no socket or too many.
pub fn parse(text: &str) -> Result<Vec<Socket>, NetError> {
    let mut sockets = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |why: String| NetError::Feed { line: index + 1, why };
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if sockets.len() == MOST_SOCKETS {
            return Err(wrong(format!("more than {MOST_SOCKETS} sockets")));
        }
        sockets.push(socket(content).map_err(wrong)?);
    }
    if sockets.is_empty() {
        let why = "there is no socket in it: write lines like U:198.18.0.2:11111".to_owned();
        return Err(NetError::Feed { line: text.lines().count().max(1), why });
    }
    Ok(sockets)
}

fn socket(content: &str) -> Result<Socket, String> {
    let shown: String = content.chars().take(80).collect();
    let shown = shown.escape_default();
    let (transport, rest) = match content.split_once(':') {
        Some((letter, rest)) if letter.trim().eq_ignore_ascii_case("u") => (Transport::Udp, rest),
        Some((letter, rest)) if letter.trim().eq_ignore_ascii_case("t") => (Transport::Tcp, rest),
        _ => (Transport::Udp, content),
    };
    let wrong = || format!("`{shown}` is no socket: write U:198.18.0.2:11111 or T:[::1]:11111");
    let (address, port) = match rest.trim().strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (address, rest.trim_start().strip_prefix(':').ok_or_else(wrong)?)
        }
        None => rest.split_once(':').ok_or_else(wrong)?,
    };
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    if port.contains(':') {
        return Err(format!("`{shown}` has a fourth field: filters of senders are not made here"));
    }
    let port: u16 = port.trim().parse().map_err(|_| wrong())?;
    Ok(Socket { transport, address: SocketAddr::new(address, port) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_is_read_with_its_comments_blanks_and_both_families() {
        let text = "# servers\r\nU:198.18.0.2:11111\r\n\n t : 198.18.0.2 : 5001 # by tcp\n\
                    u:[fd00::2]:7\n198.18.0.3:9\n";
        let found = parse(text).unwrap();
        let shown: Vec<String> =
            found.iter().map(|one| format!("{} {}", one.transport, one.address)).collect();
        let expected =
            ["udp 198.18.0.2:11111", "tcp 198.18.0.2:5001", "udp [fd00::2]:7", "udp 198.18.0.3:9"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_line() {
        for (text, line, word) in [
            ("", 1, "no socket"),
            ("# nothing\n\n", 2, "no socket"),
            ("U:1.2.3.4:5\nX:1.2.3.4:5", 2, "no socket"),
            ("U:1.2.3.4", 1, "U:"),
            ("U:name:5", 1, "`U:name:5`"),
            ("U:1.2.3.4:99999", 1, "99999"),
            ("T:[::1:5", 1, "no socket"),
            ("U:224.1.1.1:5:10.0.0.1", 1, "fourth field"),
            ("U:1.2.3.4\u{1b}[31m:5", 1, "\\u{1b}"),
        ] {
            let error = parse(text).unwrap_err();
            let NetError::Feed { line: at, .. } = &error else { panic!("{error}") };
            assert_eq!(*at, line, "{text:?}");
            assert!(error.to_string().contains(word), "{error}");
        }
        let many = "U:1.2.3.4:5\n".repeat(MOST_SOCKETS + 1);
        let error = parse(&many).unwrap_err().to_string();
        assert!(error.contains("more than"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in any::<String>()) {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read(
            sockets in proptest::collection::vec((any::<bool>(), any::<IpAddr>(), any::<u16>()), 1..20),
        ) {
            let sockets: Vec<Socket> = sockets.into_iter().map(|(tcp, address, port)| Socket {
                transport: if tcp { Transport::Tcp } else { Transport::Udp },
                address: SocketAddr::new(address, port),
            }).collect();
            let lines = sockets.iter().map(|one| {
                let letter = if one.transport == Transport::Tcp { 'T' } else { 'U' };
                format!("{letter}:{}\n", one.address)
            });
            prop_assert_eq!(parse(&lines.collect::<String>()).unwrap(), sockets);
        }
    }
}
