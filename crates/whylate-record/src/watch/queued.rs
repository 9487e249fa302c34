//! Whether messages wait in a process' sockets when a watch begins: nobody saw them come.
//!
//! The kernel's tables `/proc/PID/net/udp` and `tcp`, and those of IPv6, have the bytes in each socket's
//! queue, and of a listener the connections that wait to be accepted, whose bytes belong to no file yet.
//! Read once the trace is on: where a queue is empty then, all that came before has been read, and nothing
//! is taken for something else. Where the tables or the process' files cannot be read, it is not known. The
//! end of a stream that nobody has read is told as a byte, and taken for one.

use std::collections::BTreeSet;
use std::fs;

use whylate_model::Pid;

/// Tables of sockets that every kernel has, and those of IPv6, which not every one has.
const TABLES: [(&str, &str); 2] = [("udp", "udp6"), ("tcp", "tcp6")];

/// Do datagrams or bytes wait in one of its sockets? Yes where nobody can tell.
pub(super) fn messages_wait(pid: Pid) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let own: BTreeSet<String> =
        links.filter_map(|link| socket_of(&link.to_string_lossy())).collect();
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    TABLES.iter().any(|(always, of_ipv6)| match table(always) {
        Err(_) => true,
        Ok(text) => waits(&text, &own) || table(of_ipv6).is_ok_and(|of_ipv6| waits(&of_ipv6, &own)),
    })
}

/// The number of the socket that a file is.
fn socket_of(link: &str) -> Option<String> {
    Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

/// Has one of these sockets something in its queue, by this table?
fn waits(table: &str, own: &BTreeSet<String>) -> bool {
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (Some(queues), Some(inode)) = (fields.get(4), fields.get(9)) else { return false };
        let received =
            queues.split_once(':').map(|(_, received)| u64::from_str_radix(received, 16));
        own.contains(*inode) && received.is_some_and(|bytes| bytes != Ok(0))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::thread;
    use std::time::Duration;

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 77 2 0000000000000000 0
  101: 0100007F:1F91 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 78 2 0000000000000000 0
";

    /// Does something wait in this process, within a minute? What was sent comes in its own time.
    fn waits_soon() -> bool {
        (0..6_000).any(|_| {
            let found = messages_wait(Pid(std::process::id() as i32));
            if !found {
                thread::sleep(Duration::from_millis(10));
            }
            found
        })
    }

    #[test]
    fn what_waits_in_a_socket_of_the_process_is_found_and_in_anothers_is_not() {
        let own = |inode: &str| BTreeSet::from([inode.to_owned()]);
        assert!(waits(TABLE, &own("78")));
        assert!(!waits(TABLE, &own("77")) && !waits(TABLE, &own("79")));
        assert!(!waits("", &own("78")));
        assert_eq!(socket_of("socket:[78]"), Some("78".to_owned()));
        assert_eq!(socket_of("/dev/null"), None);
    }

    #[test]
    fn a_datagram_that_nobody_has_read_waits_in_this_process() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.send(b"waits").unwrap();
        assert!(waits_soon());
    }

    const STREAMS: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 87 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:8C3A 01 00000000:00000040 00:00000000 00000000     0        0 88 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:8C3A 0100007F:1F90 01 00000040:00000000 00:00000000 00000000     0        0 89 1 0000000000000000 20 4 30 10 -1
";

    #[test]
    fn bytes_and_connections_that_wait_are_found_and_those_that_are_to_be_sent_are_none() {
        let own = |inode: &str| BTreeSet::from([inode.to_owned()]);
        assert!(waits(STREAMS, &own("88")), "bytes that nobody has read");
        assert!(waits(STREAMS, &own("87")), "a connection that nobody has accepted");
        assert!(!waits(STREAMS, &own("89")), "bytes that are to be sent");
    }

    #[test]
    fn bytes_of_a_stream_that_nobody_has_read_wait_in_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_reader, _) = listener.accept().unwrap();
        sender.write_all(b"waits").unwrap();
        assert!(waits_soon());
    }
}
