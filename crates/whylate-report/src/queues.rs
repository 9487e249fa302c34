//! By which queues of an interface flows send and receive, and which of them share one.

use std::collections::BTreeMap;

use whylate_model::flow::{Direction, Flow, Socket};
use whylate_model::run::Run;

/// The queues of one socket; none where nothing is known of them.
pub(crate) fn said(of: &Socket) -> Option<String> {
    let interface = of.interface.as_ref()?;
    let mut said = Vec::new();
    if let Some(queues) = &of.queues {
        let all = queues.transmit;
        said.push(match queues.sent_by.as_deref() {
            _ if all == 1 => format!("{interface} has one transmit queue"),
            Some([queue]) => {
                format!("it sends by transmit queue {queue} of {all} of {interface} (XPS)")
            }
            Some([]) => format!(
                "which of {all} transmit queues of {interface} it sends by is the kernel's choice, by \
                 a hash of the flow: its CPU is mapped to none"
            ),
            Some(several) => {
                let several: Vec<String> = several.iter().map(u32::to_string).collect();
                let several = several.join(", ");
                format!(
                    "it sends by one of the transmit queues {several} of {interface}, which its CPU is \
                     mapped to"
                )
            }
            None => format!("{interface} has {all} transmit queues"),
        });
    }
    let cpu = of.incoming_cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    match of.napi {
        Some(napi) => {
            said.push(format!("what it received came through queue {napi} (NAPI id){cpu}"));
        }
        None if of.incoming_cpu.is_some() => {
            said.push(format!("it received{cpu} (no NAPI id)"));
        }
        None => (),
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// Which flows of a run share a queue, or that nobody knows.
pub(crate) fn shared(run: &Run) -> Vec<String> {
    // Both ends of a bed have interfaces of their own, whatever they are called.
    let mut by_interface: BTreeMap<(bool, &str), Vec<(&Flow, &Socket)>> = BTreeMap::new();
    for flow in &run.flows {
        let Some(socket) = &flow.way.socket else { continue };
        let Some(interface) = &socket.interface else { continue };
        let key = (flow.asked.direction == Direction::Back, interface.as_str());
        by_interface.entry(key).or_default().push((flow, socket));
    }
    let several = by_interface.into_iter().filter(|(_, flows)| flows.len() > 1);
    several.flat_map(|((_, interface), flows)| of_one(interface, &flows)).collect()
}

fn of_one(interface: &str, flows: &[(&Flow, &Socket)]) -> Vec<String> {
    let mut by_queue: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    let mut unknown = Vec::new();
    let mut by_napi: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (flow, socket) in flows {
        match socket.queues.as_ref().and_then(|queues| queues.sent_by.as_deref()) {
            Some([queue]) => by_queue.entry(*queue).or_default().push(&flow.name),
            _ => unknown.push(&*flow.name),
        }
        if let Some(napi) = socket.napi {
            by_napi.entry(napi).or_default().push(&flow.name);
        }
    }
    let mut said: Vec<String> = by_queue
        .iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(queue, names)| {
            format!("{} share transmit queue {queue} of {interface}", listed(names))
        })
        .collect();
    if !unknown.is_empty() {
        said.push(format!(
            "whether {} of {interface} with another flow is not known",
            match &unknown[..] {
                [one] => format!("{one} shares a transmit queue"),
                several => format!("{} share a transmit queue", listed(several)),
            }
        ));
    } else if said.is_empty() {
        let own = by_queue
            .iter()
            .flat_map(|(queue, names)| names.iter().map(move |name| format!("{name} {queue}")));
        let own = own.collect::<Vec<String>>().join(", ");
        said.push(format!("each flow sends by a transmit queue of its own of {interface}: {own}"));
    }
    said.extend(by_napi.iter().filter(|(_, names)| names.len() > 1).map(|(napi, names)| {
        format!("{} receive through one queue of {interface}, NAPI id {napi}", listed(names))
    }));
    said
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::flow::{ProcessVerdict, Queues};

    use super::*;
    use crate::merge::flows::tests::flow;
    use crate::timeline::tests::recorded;

    fn socket(transmit: u32, sent_by: &[u32], napi: Option<u32>) -> Socket {
        let sent_by = Some(sent_by.to_vec());
        Socket {
            interface: Some("client0".to_owned()),
            queues: Some(Queues { transmit, receive: transmit, sent_by }),
            napi,
            incoming_cpu: Some(CpuId(1)),
            ..Socket::default()
        }
    }

    fn run(sockets: [(&str, Socket); 2]) -> Run {
        let flows = sockets.map(|(name, socket)| {
            let mut flow = flow(10, ProcessVerdict::Held);
            flow.name = name.to_owned();
            flow.way.socket = Some(socket);
            flow
        });
        Run { flows: flows.to_vec(), ..recorded() }
    }

    #[test]
    fn flows_that_share_a_queue_are_named_and_so_are_those_of_which_it_is_not_known() {
        let of = |one: &[u32], other: &[u32]| {
            shared(&run([("rtt", socket(2, one, None)), ("load", socket(2, other, None))]))
        };
        assert_eq!(of(&[1], &[1]), ["rtt and load share transmit queue 1 of client0"]);
        let own = "each flow sends by a transmit queue of its own of client0: rtt 0, load 1";
        assert_eq!(of(&[0], &[1]), [own]);
        let unknown =
            "whether load shares a transmit queue of client0 with another flow is not known";
        assert_eq!(of(&[0], &[]), [unknown]);
        let both =
            "whether rtt and load share a transmit queue of client0 with another flow is not known";
        assert_eq!(of(&[0, 1], &[]), [both]);
        let napi = run([("rtt", socket(2, &[0], Some(77))), ("load", socket(2, &[1], Some(77)))]);
        let received = "rtt and load receive through one queue of client0, NAPI id 77";
        assert_eq!(shared(&napi), [own, received]);
    }

    #[test]
    fn flows_of_other_interfaces_or_ends_share_nothing() {
        let mut back = run([("rtt", socket(1, &[0], None)), ("back", socket(1, &[0], None))]);
        back.flows[1].asked.direction = Direction::Back;
        assert_eq!(shared(&back), Vec::<String>::new());
        back.flows[1].asked.direction = Direction::There;
        assert_eq!(shared(&back), ["rtt and back share transmit queue 0 of client0"]);
    }

    #[test]
    fn a_sockets_queues_are_told_in_words() {
        let of = |transmit, sent_by: &[u32], napi| said(&socket(transmit, sent_by, napi)).unwrap();
        let taken_in = "it received on CPU 1 (no NAPI id)";
        assert_eq!(of(1, &[0], None), format!("client0 has one transmit queue; {taken_in}"));
        let by = of(4, &[2], Some(9));
        assert!(by.starts_with("it sends by transmit queue 2 of 4 of client0 (XPS); "), "{by}");
        assert!(by.ends_with("came through queue 9 (NAPI id) on CPU 1"), "{by}");
        let hash = of(4, &[], None);
        assert!(hash.contains("by a hash of the flow: its CPU is mapped to none"), "{hash}");
        assert!(of(4, &[0, 3], None).contains("queues 0, 3 of client0"));
        assert_eq!(said(&Socket::default()), None);
    }
}
