//! What programs of others tell, and what the kernel counts of them, read.

/// Nanoseconds of a row of sockperf's log, of number, send, receipt, and microseconds between them; none for
/// what is none.
pub fn sockperfs_sample(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [number, _, _, us] = fields[..] else { return None };
    number.parse::<u64>().ok()?;
    Some((us.parse::<f64>().ok()? * 1e3).round() as u64)
}

/// A number of qperf's, in its smallest unit.
pub fn qperfs_number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    line.split('=').nth(1)?.split_whitespace().next()?.parse().ok()
}

/// Frames that trafgen says it has sent.
pub fn trafgens_outgoing(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.trim().strip_suffix(" packets outgoing")?.parse().ok())
}

/// Frames that testpmd handed over to its second port, of what it says at its end.
pub fn testpmds_handed_over(text: &str) -> Option<u64> {
    let (_, of_second) = text.rsplit_once("Forward statistics for port 1")?;
    let line = of_second.lines().find_map(|line| line.trim().strip_prefix("TX-packets:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Packets that an interface received, of the text of `/proc/net/dev`.
pub fn packets_received(text: &str, interface: &str) -> Option<u64> {
    let numbers = text.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then_some(numbers)
    })?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// When packets were captured, in nanoseconds, of the bytes of a file of pcap with nanoseconds.
pub fn times_captured(bytes: &[u8]) -> Vec<u64> {
    const HEADER: usize = 24;
    const RECORD: usize = 16;
    let word = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
    };
    let (mut at, mut times) = (HEADER, Vec::new());
    while at + RECORD <= bytes.len() {
        times.push(word(at) * 1_000_000_000 + word(at + 4));
        at += RECORD + word(at + 8) as usize;
    }
    times
}

/// How far neighbours are from the distance that they should have, in nanoseconds, from the nearest to the
/// furthest.
pub fn off_pace(times: &[u64], distance_ns: f64) -> Vec<f64> {
    let mut off: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1].saturating_sub(pair[0]) as f64 - distance_ns).abs())
        .collect();
    off.sort_unstable_by(f64::total_cmp);
    off
}

#[test]
fn rows_of_a_log_and_packets_of_a_file_are_read_and_what_is_none_is_not() {
    assert_eq!(sockperfs_sample("0, 2.411913353, 2.427951459, 16038.106"), Some(16_038_106));
    for line in ["packet, txTime(sec), rxTime(sec), rtt(usec)", "", "sockperf: x, y, z, 3", "1, 2"]
    {
        assert_eq!(sockperfs_sample(line), None, "{line}");
    }
    let mut bytes = vec![0; 24];
    for (seconds, nanos) in [(1_u32, 5_u32), (1, 10_005), (1, 20_105)] {
        for word in [seconds, nanos, 4, 4, 0] {
            bytes.extend(word.to_le_bytes());
        }
    }
    // The last one is cut.
    bytes.extend([1, 0, 0, 0, 9]);
    let times = times_captured(&bytes);
    assert_eq!(times, [1_000_000_005, 1_000_010_005, 1_000_020_105]);
    assert_eq!(off_pace(&times, 10_000.0), [0.0, 100.0]);
    assert_eq!((times_captured(&[]), off_pace(&times[..1], 1.0)), (vec![], vec![]));
}

#[test]
fn what_trafgen_testpmd_qperf_and_the_kernel_count_is_read_and_what_is_no_count_is_not() {
    let text = "\n\r         386 packets outgoing\n\r       24704 bytes outgoing\n";
    assert_eq!(
        (trafgens_outgoing(text), trafgens_outgoing("Running! Hang up with ^C!")),
        (Some(386), None)
    );
    let text = " face |bytes    packets errs\n    lo: 1 2 3\nserver0:   90   7    0\n";
    assert_eq!(
        (packets_received(text, "server0"), packets_received(text, "server")),
        (Some(7), None)
    );
    let text = "--- Forward statistics for port 0 ---\n  TX-packets: 3   TX-dropped: 0\n\
                --- Forward statistics for port 1 ---\n  RX-packets: 0\n  TX-packets: 90210   TX-dropped: 0\n\
                +++ Accumulated forward statistics for all ports+++\n  TX-packets: 90213\n";
    assert_eq!((testpmds_handed_over(text), testpmds_handed_over("Bye...")), (Some(90_210), None));
    let text = "udp_lat:\n    latency         =    9384 ns\n    loc_recv_msgs   =  53_281\n";
    assert_eq!(
        (qperfs_number(text, "latency"), qperfs_number(text, "loc_recv_msgs")),
        (Some(9_384.0), None)
    );
}
