//! What the kernel counts of an interface.
//!
//! [`/proc/net/dev`](https://man7.org/linux/man-pages/man5/proc_net.5.html) of the calling thread:
//! unlike `/sys/class/net` it shows the thread's own network namespace, whatever is mounted.

use whylate_model::forward::InterfaceCounts;
use whylate_sys::interface;

/// The file.
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// The counters of the interface with this number, whatever its name is now; none where it is gone.
#[must_use]
pub fn counters(index: u32) -> Option<InterfaceCounts> {
    let name = interface::all().ok()?.into_iter().find(|one| one.index == index)?.name;
    read(&std::fs::read_to_string(COUNTERS).ok()?, &name)
}

/// Is there still an interface with this number? True where nobody can tell, and of a device that the
/// kernel has no number for.
pub(super) fn exists(index: u32) -> bool {
    index == 0 || interface::all().map_or(true, |all| all.iter().any(|one| one.index == index))
}

/// The line of one interface. Names may hold colons; the last one ends the name.
fn read(text: &str, name: &str) -> Option<InterfaceCounts> {
    let numbers = text.lines().find_map(|line| {
        let (named, numbers) = line.rsplit_once(':')?;
        (named.trim_start() == name).then_some(numbers)
    })?;
    let numbers: Vec<u64> =
        numbers.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // Receiving: bytes packets errs drop fifo frame compressed multicast; sending: bytes packets errs
    // drop ...
    let &[
        _,
        received,
        receive_errors,
        receive_dropped,
        _,
        _,
        _,
        _,
        _,
        sent,
        send_errors,
        send_dropped,
        ..,
    ] = &numbers[..]
    else {
        return None;
    };
    Some(InterfaceCounts {
        received,
        receive_dropped,
        receive_errors,
        sent,
        send_dropped,
        send_errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_interface_is_read_and_no_other_one() {
        let text = "Inter-|   Receive                |  Transmit\n face |bytes    packets errs\n\
             \x20   lo:     1   2    3    4    0     0          0         0  5  6    7    8    0     0 0 0\n\
            eth0:1: 10  20   30   40    0     0          0         0 50 60   70   80    0     0 0 0\n";
        let counts = read(text, "lo").unwrap();
        assert_eq!((counts.received, counts.receive_errors, counts.receive_dropped), (2, 3, 4));
        assert_eq!((counts.sent, counts.send_errors, counts.send_dropped), (6, 7, 8));
        assert_eq!(read(text, "eth0:1").unwrap().received, 20);
        assert_eq!(read(text, "eth0"), None);
        assert_eq!(read("eth0: 1 2 x", "eth0"), None);
        let later = InterfaceCounts { received: 10, sent: 1, ..counts };
        let since = later.since(counts);
        // One that was set back tells nothing.
        assert_eq!((since.received, since.sent, since.receive_dropped), (8, 0, 0));
    }

    #[test]
    fn loopback_has_counters_and_what_is_not_there_has_none() {
        let all = interface::all().unwrap();
        let loopback = all.iter().find(|one| one.name == "lo");
        if let Some(loopback) = loopback {
            assert!(counters(loopback.index).is_some() && exists(loopback.index));
        }
        assert!(counters(u32::MAX).is_none() && !exists(u32::MAX));
    }
}
