//! The command lines of the processes that measure.

use whylate_host::cpus::format_list;
use whylate_model::Nanos;
use whylate_port::Wait;

use super::question::Question;
use super::the_box::Driver;

/// Bytes of a frame around the message in it: Ethernet with its check sequence, IPv4, UDP.
const AROUND: u32 = 14 + 4 + 20 + 8;
/// A measurement has so many intervals of a forwarder's log, or more: of a time as long as so many all but one
/// lie within it. Each costs the forwarder's process some work, which shorter ones would multiply.
const LOG_PARTS: u64 = 8;
/// What `whylate forward` takes as the length of an interval.
const LOG_INTERVALS: std::ops::RangeInclusive<u64> = 10_000_000..=Nanos::SECOND.0;
/// A frame that has not come after so long is lost.
const TIMEOUT: Nanos = Nanos(200_000_000);

/// What the client goes through.
#[derive(Debug, Clone, Copy)]
pub(super) enum Through<'a> {
    /// A bed.
    Bed(&'a str),
    /// What lies between two interfaces, with the addresses of both ends.
    Interfaces(&'a [String; 2], &'a [String; 2]),
}

/// A measurement by the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) through: Through<'a>,
    pub(super) frame_bytes: u32,
    /// Messages a second in each direction.
    pub(super) per_second: f64,
    pub(super) duration: Nanos,
    pub(super) warmup: Nanos,
    /// The other way, too.
    pub(super) both_ways: bool,
    /// Each packet is kept.
    pub(super) logged: bool,
    pub(super) seed: u64,
}

/// Bytes of the message in a frame of this size: the shortest that Ethernet has holds the shortest message.
fn message(frame_bytes: u32) -> u32 {
    frame_bytes.saturating_sub(AROUND)
}

impl Client<'_> {
    /// The words of `whylate rtt`.
    pub(super) fn words(&self, question: &Question) -> String {
        let through = match self.through {
            Through::Bed(name) => format!("--bed {name} --across"),
            Through::Interfaces([out, back], [from, to]) => {
                format!("--interface {out} --across {back} --from {from} --to {to}")
            }
        };
        let message = message(self.frame_bytes);
        let mut words = format!(
            "rtt {through} --transport {} --wait {} --rate {:.3}pps --size {message} --duration {}ns --warmup {}ns \
             --timeout {}ns --cpus {} --seed {} --no-trace",
            question.port,
            question.wait,
            self.per_second,
            self.duration.0,
            self.warmup.0,
            TIMEOUT.0,
            question.client_cpu,
            self.seed,
        );
        if let Some(cpus) = &question.housekeeping {
            words.push_str(" --housekeeping ");
            words.push_str(&format_list(cpus));
        }
        for (given, word) in [
            (self.both_ways, "--both-ways"),
            (self.logged, "--log-packets"),
            (!question.hold_idle_states, "--no-dma-latency"),
        ] {
            if given {
                words.push(' ');
                words.push_str(word);
            }
        }
        words
    }
}

/// Where a process of ours stands: the links of a bed's device.
pub(super) fn in_bed(bed: &str) -> String {
    format!("to-client to-server --bed {bed}")
}

/// The words of `whylate forward` between two ports, which ends by itself after so long at most.
pub(super) fn forward(question: &Question, port: &str, between: &str, most: Nanos) -> String {
    let cpu = question.box_cpu.map_or_else(String::new, |cpu| format!(" --cpus {cpu}"));
    let interval =
        (question.duration.0 / LOG_PARTS).clamp(*LOG_INTERVALS.start(), *LOG_INTERVALS.end());
    format!(
        "forward {between} --transport {port}{cpu} --interval {interval}ns --duration {}ns{}",
        most.0,
        idle(question)
    )
}

/// The words of `whylate delay` between two ports, which ends by itself after so long at most.
pub(super) fn delay(
    question: &Question,
    (port, law): (&str, &str),
    between: &str,
    most: Nanos,
) -> String {
    let cpu = question.box_cpu.map_or_else(String::new, |cpu| format!(" --cpus {cpu}"));
    format!(
        "delay {between} --transport {port} --delay {law}{cpu} --seed {} --no-netem --duration {}ns{}",
        question.seed,
        most.0,
        idle(question)
    )
}

fn idle(question: &Question) -> &'static str {
    if question.hold_idle_states { "" } else { " --no-dma-latency" }
}

/// Huge pages of 2 MB that testpmd takes where it needs them.
pub(super) const TESTPMD_PAGES: u64 = 128;

/// The words of DPDK's testpmd between the links of a bed, with this driver. By `net_af_xdp` it has huge pages:
/// on small ones that driver sends from beyond the memory that it has told the kernel of.
pub(super) fn testpmd(driver: Driver, cpu: Option<u32>) -> Vec<String> {
    let main = cpu.unwrap_or(0);
    let (name, more, memory, bytes) = match driver {
        Driver::Packet => ("net_af_packet", "", "--no-huge --no-shconf -m 512", 4_096),
        Driver::Xdp => ("net_af_xdp", ",force_copy=1", "--in-memory --iova-mode=va -m 256", 2_304),
    };
    let words = format!(
        "--lcores 0@{main},1@{main} --no-pci {memory} --no-telemetry --vdev={name}0,iface=to-client{more} \
         --vdev={name}1,iface=to-server{more} -- --forward-mode=io --auto-start --nb-cores=1 \
         --mbuf-size={bytes} --total-num-mbufs=16384 --stats-period 600"
    );
    words.split_whitespace().map(str::to_owned).collect()
}

/// The backend of the client, as reports call it.
pub(super) fn backend(question: &Question) -> String {
    let wait: Wait = question.wait;
    format!("{} {wait}", question.port)
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_net::Cookie;
    use whylate_net::protocol::{Protocol, Raw};

    use super::super::question::tests::question;
    use super::super::the_box::TheBox;
    use super::*;

    #[test]
    fn a_frame_is_as_long_as_asked_with_its_check_sequence_and_the_shortest_holds_a_message() {
        let least = *Raw::new(Cookie(1)).sizes().start();
        assert_eq!((message(64), message(64) as usize), (18, least));
        assert_eq!((message(69), message(70)), (23, 24), "whatever its header");
        assert_eq!(message(1518), 1472, "what UDP carries over Ethernet");
    }

    #[test]
    fn the_client_does_all_but_measuring_where_this_process_stands() {
        let client = Client {
            through: Through::Bed("bed"),
            frame_bytes: 128,
            per_second: 1e3,
            duration: Nanos::SECOND,
            warmup: Nanos(0),
            both_ways: true,
            logged: false,
            seed: 1,
        };
        let of = question(TheBox::Bridge, ["a", "b", "c", "d"]);
        assert!(!client.words(&of).contains("--housekeeping"));
        let of = Question { housekeeping: Some(vec![CpuId(2), CpuId(3)]), ..of };
        let words = client.words(&of);
        assert!(words.contains(" --cpus 1 ") && words.contains(" --housekeeping 2-3"), "{words}");
    }

    #[test]
    fn testpmd_has_a_port_at_each_link_and_a_cpu_where_one_is_named() {
        let words = testpmd(Driver::Xdp, Some(3)).join(" ");
        assert!(words.contains("--lcores 0@3,1@3"), "{words}");
        assert!(words.contains("--vdev=net_af_xdp0,iface=to-client"), "{words}");
        assert!(words.contains("--vdev=net_af_xdp1,iface=to-server"), "{words}");
        assert!(!words.contains("--no-huge"), "{words}");
        let words = testpmd(Driver::Packet, None).join(" ");
        // DPDK takes no two of these together.
        assert!(words.contains("--no-huge") && !words.contains("--in-memory"), "{words}");
    }
}
