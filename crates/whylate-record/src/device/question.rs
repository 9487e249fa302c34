//! What is asked of a box.

use std::path::PathBuf;

use whylate_host::HostError;
use whylate_host::configuration::Configuration;
use whylate_host::cpus;
use whylate_host::topology::Topology;
use whylate_model::{CpuId, Nanos, Printable};
use whylate_net::schedule::Rate;
use whylate_port::{Transport, Wait};

use super::fan_in::{FanInOver, FanInQuestion};
use super::outcome::DeviceError;
use super::the_box::TheBox;

/// Shortest and longest frame in bytes, check sequence included.
const FRAMES: std::ops::RangeInclusive<u32> = 64..=1518;
/// Rounds at most.
const MOST_ROUNDS: u32 = 1_000;
/// Sizes at most.
const MOST_SIZES: usize = 32;

/// A delay line beside a real box: whylate itself stands between two interfaces of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineBetween {
    /// The client's: a cable joins the first to the line's first, and the second to the line's second.
    pub client: [String; 2],
    /// The line's.
    pub ports: [String; 2],
}

/// What a box adds: a question, with all that its answer depends on.
#[derive(Debug, Clone)]
pub struct Question {
    /// This program, which measures in processes of its own.
    pub program: PathBuf,
    /// The box.
    pub the_box: TheBox,
    /// Interfaces that it lies between, of a real one.
    pub interfaces: Option<[String; 2]>,
    /// Addresses of both ends of it, which the kernel need not have.
    pub ends: [String; 2],
    /// Interfaces that a cable joins, which stands for a bare link beside a real box.
    pub loopback: Option<[String; 2]>,
    /// Interfaces for the delay line beside a real box, whose truth tells what the client adds.
    pub line: Option<LineBetween>,
    /// How the client sends and receives.
    pub port: Transport,
    /// How it waits.
    pub wait: Wait,
    /// Its CPU.
    pub client_cpu: CpuId,
    /// The CPU of the box and of the delay line, where whylate starts them; none leaves it to the kernel.
    pub box_cpu: Option<CpuId>,
    /// Sizes of frames, check sequence included.
    pub sizes: Vec<u32>,
    /// Messages per second in each direction.
    pub rate: Rate,
    /// Rounds: in each of them everything is measured once.
    pub rounds: u32,
    /// How long one measurement takes.
    pub duration: Nanos,
    /// And its warm-up.
    pub warmup: Nanos,
    /// The search for the highest rate without loss; none leaves it out.
    pub throughput: Option<Searching>,
    /// From several ports to one; none leaves it out.
    pub fan_in: Option<FanInQuestion>,
    /// Configurations of the operating system for the box, the first of which the others are set against;
    /// none leaves it as it is.
    pub configurations: Vec<Configuration>,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// CPUs for this process, and for what the client does beside measuring.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line.
    pub command_line: Vec<String>,
    /// Was it shortened?
    pub quick: bool,
}

/// The search for the highest rate without loss (RFC 2544, section 26.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Searching {
    /// Trials for one size at most.
    pub trials: u32,
    /// How long one takes.
    pub duration: Nanos,
    /// Share of frames that may be lost all the same: 0 as the RFC has it.
    pub tolerated: f64,
}

impl Question {
    /// Where this process and what the client does beside measuring run: neither with the client nor with the box
    /// where the host has such a CPU. Where it has none, each process chooses by itself.
    pub(super) fn beside_both(
        &self,
        topology: &Topology,
        allowed: &[CpuId],
        own: &[CpuId],
    ) -> Result<Option<Vec<CpuId>>, HostError> {
        if self.housekeeping.is_some() {
            return Ok(self.housekeeping.clone());
        }
        let taken: Vec<CpuId> = self.box_cpu.into_iter().chain([self.client_cpu]).collect();
        let free = cpus::housekeeping(&taken, None, topology, allowed, own)?;
        Ok(Some(free).filter(|free| !free.is_empty()))
    }

    /// Refuses what cannot be measured, before anything is set up.
    ///
    /// # Errors
    /// Says what cannot be done, and what to ask instead.
    pub fn check(&self) -> Result<(), DeviceError> {
        let refused = |why: String| Err(DeviceError::Refused(why));
        if let Some(size) = self.sizes.iter().find(|size| !FRAMES.contains(size)) {
            return refused(format!(
                "an Ethernet frame cannot have {size} bytes: use --sizes {} to {}, with the check sequence",
                FRAMES.start(),
                FRAMES.end()
            ));
        }
        if self.sizes.is_empty() || self.sizes.len() > MOST_SIZES {
            return refused(format!("--sizes names 1 to {MOST_SIZES} sizes"));
        }
        if self.rounds == 0 || self.rounds > MOST_ROUNDS {
            return refused(format!("--rounds is from 1 to {MOST_ROUNDS}"));
        }
        match (&self.the_box, &self.interfaces, &self.loopback) {
            (TheBox::Between, None, _) => {
                return refused("--box between needs the two interfaces that the box joins: use --interfaces A,B".to_owned());
            }
            (TheBox::Between, Some([a, b]), _) if a == b => {
                return refused(format!("`{a}` is named twice: a box is between two interfaces"));
            }
            (TheBox::Between, _, _) => {}
            (the_box, Some(_), _) | (the_box, _, Some(_)) => {
                let given = if self.interfaces.is_some() { "--interfaces" } else { "--loopback" };
                return refused(format!(
                    "{the_box} has a test network of its own, and {given} is for --box between: leave {given} out"
                ));
            }
            _ => {}
        }
        self.check_cables()?;
        self.check_fan_in()?;
        if self.box_cpu.is_none() && (self.the_box != TheBox::Between || self.line.is_some()) {
            return refused(
                "the box and its client each need a CPU of their own, and this process may use one only"
                    .to_owned(),
            );
        }
        if self.box_cpu == Some(self.client_cpu) {
            let cpu = self.client_cpu;
            return refused(format!(
                "CPU {cpu} cannot have both client and box: choose --box-cpus"
            ));
        }
        Ok(())
    }

    /// The ports of a fan-in are the box's own.
    fn check_fan_in(&self) -> Result<(), DeviceError> {
        let Some(fan_in) = &self.fan_in else { return Ok(()) };
        let refused = |why: String| Err(DeviceError::Refused(why));
        let the_box = &self.the_box;
        if !the_box.has_many_ports() {
            return refused(format!(
                "{the_box} has two ports, and a fan-in needs more: use --box bridge, ovs or between"
            ));
        }
        match (&fan_in.over, the_box) {
            (FanInOver::Bed(_), TheBox::Between) => refused(
                "--fan-in PORTS is for test networks: leave --fan-in out, and name the interfaces with \
                 --fan-in-from A,B,C --fan-in-to D"
                    .to_owned(),
            ),
            (FanInOver::Between(_), TheBox::Bridge | TheBox::Ovs) => refused(format!(
                "{the_box} has a test network of its own, and --fan-in-from and --fan-in-to are for --box \
                 between: give the number of ports instead (--fan-in PORTS)"
            )),
            _ => fan_in.check(),
        }
    }

    /// Each interface of this machine has one cable.
    fn check_cables(&self) -> Result<(), DeviceError> {
        let Some(LineBetween { client, ports }) = &self.line else { return Ok(()) };
        if self.the_box != TheBox::Between {
            return Err(DeviceError::Refused(format!(
                "{} has a test network of its own, and --line is for --box between: leave --line out",
                self.the_box
            )));
        }
        let others = self.interfaces.iter().chain(&self.loopback).flatten();
        let mut known: Vec<&String> = others.collect();
        for name in client.iter().chain(ports) {
            if known.contains(&name) {
                return Err(DeviceError::Refused(format!(
                    "`{}` is named twice, and an interface has one cable: --line names four others, NEAR,A,B,FAR",
                    Printable(name)
                )));
            }
            known.push(name);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::device) fn question(the_box: TheBox, line: [&str; 4]) -> Question {
        let [near, a, b, far] = line.map(str::to_owned);
        let two = |a: &str, b: &str| Some([a.to_owned(), b.to_owned()]);
        let between = the_box == TheBox::Between;
        Question {
            program: PathBuf::new(),
            the_box,
            interfaces: two("eth1", "eth2").filter(|_| between),
            ends: ["198.18.0.1".to_owned(), "198.18.0.2".to_owned()],
            loopback: two("eth3", "eth4").filter(|_| between),
            line: Some(LineBetween { client: [near, far], ports: [a, b] }),
            port: Transport::Packet,
            wait: Wait::Spin,
            client_cpu: CpuId(1),
            box_cpu: Some(CpuId(0)),
            sizes: vec![128],
            rate: Rate::Packets(1e3),
            rounds: 1,
            duration: Nanos::SECOND,
            warmup: Nanos::SECOND,
            throughput: None,
            fan_in: None,
            configurations: Vec::new(),
            hold_idle_states: false,
            housekeeping: None,
            seed: 1,
            command_line: Vec::new(),
            quick: false,
        }
    }

    #[test]
    fn housekeeping_stands_beside_the_client_and_the_box_where_there_is_such_a_cpu() {
        let of = |online: &str, chosen: Option<Vec<CpuId>>| {
            let host = tempfile::tempdir().unwrap();
            let cpus = host.path().join("sys/devices/system/cpu");
            std::fs::create_dir_all(&cpus).unwrap();
            std::fs::write(cpus.join("online"), online).unwrap();
            let topology = Topology::read(host.path()).unwrap();
            let all = topology.online().to_vec();
            let asked = question(TheBox::Bridge, ["a", "b", "c", "d"]);
            let asked = Question { housekeeping: chosen, ..asked };
            assert_eq!((asked.box_cpu, asked.client_cpu), (Some(CpuId(0)), CpuId(1)));
            asked.beside_both(&topology, &all, &all).unwrap()
        };
        assert_eq!(of("0-3", None), Some(vec![CpuId(2)]));
        assert_eq!(of("0-1", None), None);
        assert_eq!(of("0-3", Some(vec![CpuId(0)])), Some(vec![CpuId(0)]), "as was asked for");
    }

    #[test]
    fn a_fan_in_has_the_ports_of_its_box() {
        use super::super::fan_in::RealPorts;
        use whylate_net::lab::Joining;

        let real = RealPorts { from: vec!["a".to_owned(), "b".to_owned()], to: "c".to_owned() };
        let fan_in = |over: &FanInOver| FanInQuestion {
            over: over.clone(),
            ports: 2,
            takes: "20Mbit/s@L2".parse().unwrap(),
            frame_bytes: 512,
            sends: Vec::new(),
            weights: Vec::new(),
            rounds: 1,
            duration: Nanos::SECOND,
            seed: 1,
        };
        let of = |the_box: TheBox, over: &FanInOver| {
            let without = question(the_box, ["a", "b", "c", "d"]);
            Question { fan_in: Some(fan_in(over)), line: None, ..without }.check()
        };
        let (bed, real) = (FanInOver::Bed(Joining::Ovs), FanInOver::Between(real));
        assert!(of(TheBox::Ovs, &bed).is_ok() && of(TheBox::Between, &real).is_ok());
        let why = |the_box, over| of(the_box, over).unwrap_err().to_string();
        assert!(why(TheBox::Between, &bed).contains("--fan-in-from A,B,C"));
        assert!(why(TheBox::Bridge, &real).contains("are for --box between"));
        assert!(why(TheBox::Forward(Transport::Xdp), &bed).contains("has two ports"));
    }

    #[test]
    fn a_line_beside_a_real_box_has_four_interfaces_of_its_own_and_a_cpu() {
        let good = question(TheBox::Between, ["eth5", "eth6", "eth7", "eth8"]);
        assert!(good.check().is_ok());
        let why = |of: Question| of.check().unwrap_err().to_string();
        for line in [["eth1", "eth6", "eth7", "eth8"], ["eth5", "eth6", "eth6", "eth8"]] {
            let why = why(question(TheBox::Between, line));
            assert!(why.contains("is named twice"), "{why}");
        }
        assert!(why(question(TheBox::Bridge, ["a", "b", "c", "d"])).contains("for --box between"));
        assert!(why(Question { box_cpu: None, ..good.clone() }).contains("a CPU of their own"));
        assert!(Question { box_cpu: None, line: None, ..good }.check().is_ok());
    }
}
