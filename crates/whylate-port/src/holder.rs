//! Who has a port that is in use, as far as `/proc` tells.
//!
//! [proc_pid_net(5)](https://man7.org/linux/man-pages/man5/proc_pid_net.5.html) names the sockets of
//! a namespace by inode, `/proc/PID/fd` the processes that have them open. Without privilege only
//! one's own processes can be seen.

use std::io::{BufRead, BufReader};

/// Lines of a list, processes, and descriptors of one that are read at most.
const MOST: usize = 1 << 16;
/// The state of a TCP socket that listens.
const LISTENING: &str = "0A";

/// Which list of sockets to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Udp,
    Tcp,
}

/// `process 17 (sockperf)` for who has this port of this namespace; none where nobody is found.
pub(crate) fn of_port(list: List, port: u16) -> Option<String> {
    let files = match list {
        List::Udp => ["udp", "udp6"],
        List::Tcp => ["tcp", "tcp6"],
    };
    let inode = files.iter().find_map(|file| {
        let lines = lines(&format!("/proc/thread-self/net/{file}"))?;
        lines.skip(1).find_map(|line| inode(list, port, &line))
    })?;
    holder(inode)
}

fn lines(path: &str) -> Option<impl Iterator<Item = String> + use<>> {
    let file = std::fs::File::open(path).ok()?;
    Some(BufReader::new(file).lines().take(MOST).map_while(Result::ok))
}

/// The inode of the socket in this line, where it is the one looked for.
fn inode(list: List, port: u16, line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let (_, at) = local.rsplit_once(':')?;
    let is_it = u16::from_str_radix(at, 16) == Ok(port);
    if !is_it || (list == List::Tcp && state != LISTENING) {
        return None;
    }
    fields.nth(5)?.parse().ok()
}

fn holder(inode: u64) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let has = |pid: &str| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().take(MOST);
        let mut links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.any(|link| link.to_string_lossy() == wanted).then_some(())
    };
    let all = std::fs::read_dir("/proc").ok()?.flatten().take(MOST);
    let mut pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    let pid =
        pids.find(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && has(name).is_some());
    let pid = pid?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({})", name.trim_end().escape_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_port_of_this_process_is_this_process() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (at_udp, at_tcp) = (udp.local_addr().unwrap(), tcp.local_addr().unwrap());
        let us = format!("process {} (", std::process::id());
        for found in [of_port(List::Udp, at_udp.port()), of_port(List::Tcp, at_tcp.port())] {
            assert!(found.as_ref().is_some_and(|found| found.starts_with(&us)), "{found:?}");
        }
        // Another may have the number by then, but not time and again.
        let is_free_again = || {
            let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let at = udp.local_addr().unwrap();
            drop(udp);
            of_port(List::Udp, at.port()).is_none()
        };
        assert!((0..5).any(|_| is_free_again()));
    }

    #[test]
    fn lines_of_other_ports_and_states_and_torn_ones_name_nothing() {
        let line = "  4: 0100007F:2B67 00000000:0000 07 00000000:00000000 00:00000000 00000000 \
                    0 0 31337 2 0000000000000000 0";
        assert_eq!(inode(List::Udp, 11_111, line), Some(31_337));
        assert_eq!(inode(List::Udp, 11_112, line), None);
        assert_eq!(inode(List::Tcp, 11_111, line), None, "does not listen");
        for end in 0..line.find("31337").unwrap() {
            assert_eq!(inode(List::Udp, 11_111, &line[..end]), None);
        }
    }
}
