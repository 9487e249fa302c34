//! Settings of a recording of requests, as its run tells them.

use whylate_model::settings::{Setting, Settings};

use super::{Replayed, Request};
use crate::service::placed;

/// Settings as used.
pub(super) fn of(request: &Request) -> Settings {
    let mut settings = Settings::from([
        ("warm-up".to_owned(), request.warmup.into()),
        ("duration".to_owned(), request.duration.into()),
        ("timeout".to_owned(), request.timeout.into()),
    ]);
    let several = request.flows.len() > 1;
    for flow in &request.flows {
        let mut add = |what: &str, value: Setting| {
            let name = if several { format!("{what} of {}", flow.name) } else { what.to_owned() };
            settings.insert(name, value);
        };
        add("client", placed(&[flow.cpu], flow.fifo));
        add("other end", flow.target.place().into());
        if let Some(cpu) = flow.target.cpu() {
            add("CPU of the other end", vec![cpu].into());
        }
        if let Some(Replayed { path, packets, lasts, was_cut }) = &flow.replayed {
            add("capture", path.display().to_string().into());
            add("packets of the capture", (*packets).into());
            add("length of the capture", (*lasts).into());
            add("cut capture", (*was_cut).into());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use whylate_model::flow::Direction;
    use whylate_model::settings::{self, Placed, Policy};
    use whylate_model::{CpuId, Nanos};
    use whylate_net::Speaks;
    use whylate_net::schedule::Arrivals;
    use whylate_port::open::{Target as Place, Transport};
    use whylate_port::{Options, Wait};

    use super::*;
    use crate::rtt::{Causes, FlowRequest, Target};

    fn flow(name: &str, target: Target) -> FlowRequest {
        FlowRequest {
            name: name.to_owned(),
            cpu: CpuId(1),
            fifo: None,
            target,
            direction: Direction::There,
            transport: Transport::Udp,
            protocol: "raw".parse::<Speaks>().expect("a protocol"),
            wait: Wait::Block,
            bytes: 64,
            arrivals: Arrivals::Constant,
            replayed: None,
            per_second: 1e3,
            most_under_way: None,
            one_way: false,
            resolved_in: Some(Nanos(5)),
        }
    }

    fn request(flows: Vec<FlowRequest>) -> Request {
        Request {
            flows,
            timeout: Nanos::SECOND,
            warmup: Nanos(1),
            duration: Nanos(1_600_123_456),
            tolerance: Nanos(50_000),
            housekeeping: None,
            lock_memory: false,
            hold_idle_states: false,
            seed: 1,
            command_line: Vec::new(),
            question: String::new(),
            causes: Causes { traced: false, slow_from: None },
            take_apart: None,
            options: Options::default(),
            from: None,
            log_packets: false,
            checkpoint: Nanos::SECOND,
            plant: None,
            program: PathBuf::new(),
        }
    }

    #[test]
    fn settings_of_requests_are_values_and_words_only_where_nothing_else_says_them() {
        let mut replaying = flow("rtt", Target::Own { cpu: CpuId(0), bed: None });
        replaying.replayed = Some(Replayed {
            path: PathBuf::from("7"),
            packets: 100,
            lasts: Nanos(197_000_001),
            was_cut: false,
        });
        let told = of(&request(vec![replaying.clone()]));
        assert_eq!(settings::unfit(&told), [""; 0]);
        assert_eq!(told["duration"], Nanos(1_600_123_456).into());
        let client = Placed { cpus: vec![CpuId(1)], policy: Policy::Ordinary };
        assert_eq!(told["client"], client.into());
        assert_eq!(told["other end"], "a reflector over loopback".into());
        assert_eq!(told["CPU of the other end"], vec![CpuId(0)].into());
        assert_eq!(told["length of the capture"], Nanos(197_000_001).into());
        let address = Place::Address("198.51.100.7:4021".parse().expect("an address"));
        let load = FlowRequest { fifo: Some(50), ..flow("load", Target::At(address)) };
        let told = of(&request(vec![replaying, load]));
        assert_eq!(settings::unfit(&told), [""; 0]);
        let client = Placed { cpus: vec![CpuId(1)], policy: Policy::Fifo { priority: 50 } };
        assert_eq!(told["client of load"], client.into());
        assert_eq!(told["packets of the capture of rtt"], 100_u64.into());
    }
}
