//! Hosts on a wire in memory: what each makes of frames is planted and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::bpf::Mode;
use crate::error::PortError;
use crate::frame::{Mac, Packet, Seen, Tags, parse};
use crate::frames::{Arrival, Copies, Drops, FramesFacts, Rings};
use crate::waiting::Wait;

const NEAR: Mac = Mac([2, 0, 0, 0, 0, 1]);
const FAR: Mac = Mac([2, 0, 0, 0, 0, 2]);
const RATE: Hertz = Hertz(1e9);

type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One end of a wire. Time goes on by a microsecond a look, and by the limit where nothing comes.
#[derive(Debug)]
struct Wire {
    to: Queue,
    from: Queue,
    burst: Vec<Vec<u8>>,
    slot: Vec<Vec<u8>>,
    /// Frames that the sending ring has room for.
    room: usize,
    now: u64,
    facts: FramesFacts,
}

impl Frames for Wire {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        self.burst = self.from.lock().unwrap().drain(..).collect();
        self.now += if self.burst.is_empty() { limit.0.max(1) } else { 1_000 };
        Ok(Burst { count: self.burst.len(), at: Ticks(self.now) })
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        Arrival { bytes: &self.burst[at], stripped: None, kernel: None, queue: 0 }
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        self.room = self.room.checked_sub(1)?;
        self.slot.push(vec![0; length]);
        self.slot.last_mut().map(Vec::as_mut_slice)
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        self.to.lock().unwrap().extend(self.slot.drain(..));
        self.now += 1;
        Ok(Ticks(self.now))
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.now += 1_000_000;
        Ok(Ticks(self.now))
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        Ok(Vec::new())
    }
}

fn wire(mac: Mac, to: &Queue, from: &Queue) -> Wire {
    let facts = FramesFacts {
        backend: "wire",
        interface: "near".into(),
        index: 1,
        mac,
        mtu: 1_500,
        queues: vec![0],
        rings: Rings::default(),
        buffer: 2_048,
        room: 1_514,
        copies: Copies::Kernel,
        attachment: Some(Mode::Native),
        tells_wakeups: false,
        bypasses_qdisc: true,
        instead: Vec::new(),
        wait: Wait::Spin,
    };
    let (to, from) = (Arc::clone(to), Arc::clone(from));
    Wire { to, from, burst: Vec::new(), slot: Vec::new(), room: 1_000, now: 0, facts }
}

fn made(mac: Mac, address: &str, tags: Tags, (to, from): (&Queue, &Queue)) -> Made<Wire> {
    let identity = Identity { mac, address: address.parse().unwrap(), tags };
    let stamps = StampFacts {
        source: "planted".into(),
        resolution_ns: 1.0,
        read_cost_min_ns: 0.0,
        read_cost_median_ns: 0.0,
        precision_ns: 0.0,
    };
    Made { frames: wire(mac, to, from), identity, stamps, rate: RATE, place: None }
}

/// A server at the far end, asked by a client that already knows where it is.
fn pair(near: &str, far: &str, tags: Tags) -> (Host<Wire>, Host<Wire>) {
    let (there, back) = (Queue::default(), Queue::default());
    let options = Options::default();
    let server = Host::server(made(FAR, far, tags, (&back, &there)), &options);
    let client = made(NEAR, near, tags, (&there, &back));
    (Host::client_by(client, far.parse().unwrap(), FAR, &options), server)
}

fn received(port: &mut Host<Wire>) -> Option<Vec<u8>> {
    let mut buffer = [0; 2_000];
    match port.receive(&mut buffer, Nanos(1_000)).unwrap() {
        Received::Message { length, .. } => Some(buffer[..length].to_vec()),
        Received::Nothing { .. } => None,
    }
}

#[test]
fn messages_go_there_and_back_over_both_protocols_with_and_without_tags() {
    for (near, far) in [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")] {
        for tags in [Tags::default(), Tags::one(7), Tags::two(100, 7)] {
            let (mut client, mut server) = pair(near, far, tags);
            assert!(matches!(server.send(b"x"), Err(PortError::NobodyToAnswer { .. })));
            for message in [&b""[..], b"request", &[7; 1_400]] {
                client.send(message).unwrap();
                assert_eq!(received(&mut server).as_deref(), Some(message), "{far} {tags}");
                let peer = server.peer().and_then(Peer::internet);
                assert_eq!(peer.map(|peer| peer.to_string()).as_deref(), Some(near));
                server.send(message).unwrap();
                assert_eq!(received(&mut client).as_deref(), Some(message), "{near} {tags}");
            }
            let counts = server.frame_counts().unwrap().unwrap().host;
            assert_eq!((counts.messages, counts.all()), (3, 3));
            let most = client.facts().max_message;
            client.send(&vec![1; most]).unwrap();
            assert_eq!(received(&mut server).unwrap().len(), most);
            let error = client.send(&vec![1; most + 1]).unwrap_err();
            assert!(matches!(error, PortError::MtuTooSmall { mtu: Some(1_500), .. }), "{error}");
        }
    }
}

#[test]
fn who_asks_for_the_address_is_answered_and_the_question_is_no_message() {
    for (near, far) in [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")] {
        let (mut client, mut server) = pair(near, far, Tags::one(9));
        let wanted = far.parse::<SocketAddr>().unwrap().ip();
        let question = client.identity.question(wanted);
        assert!(client.post(&question).unwrap());
        assert_eq!(received(&mut server), None);
        assert_eq!(server.counts.answered, 1);
        let answers: Vec<Vec<u8>> = client.frames.from.lock().unwrap().drain(..).collect();
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        let arrival = Arrival { bytes: answer, stripped: None, kernel: None, queue: 0 };
        assert_eq!(client.identity.judge(&arrival), Judged::Told(wanted, FAR));
        assert!(answer.len() >= 60);
        // For another address nobody answers.
        let other = if wanted.is_ipv4() { "10.0.0.3" } else { "fd00::3" }.parse().unwrap();
        let question = client.identity.question(other);
        assert!(client.post(&question).unwrap());
        assert_eq!((received(&mut server), server.counts.resolution), (None, 1));
    }
}

#[test]
fn a_server_is_resolved_when_it_answers_and_named_when_nobody_does() {
    let (there, back) = (Queue::default(), Queue::default());
    let options = Options::default();
    let far: SocketAddr = "10.0.0.2:6".parse().unwrap();
    // The answer is there already, behind a message of somebody else.
    let (_, mut other) = pair("10.0.0.9:5", "10.0.0.2:6", Tags::default());
    other.lead_to(NEAR, "10.0.0.1:5".parse().unwrap());
    other.send(b"stray").unwrap();
    back.lock().unwrap().extend(other.frames.to.lock().unwrap().drain(..));
    let asker =
        Identity { mac: NEAR, address: "10.0.0.1:5".parse().unwrap(), tags: Tags::default() };
    let Ok(Seen { packet: Packet::Arp(question), .. }) =
        parse(asker.question(far.ip()).bytes(), None)
    else {
        panic!("a question of ARP");
    };
    let mut answer = vec![0; 60];
    let header =
        crate::frame::write_link(&mut answer, NEAR, FAR, Tags::default(), crate::frame::kind::ARP);
    answer[header..header + 28].copy_from_slice(&question.answered(FAR).bytes());
    back.lock().unwrap().push_back(answer);
    let client = made(NEAR, "10.0.0.1:5", Tags::default(), (&there, &back));
    let client = Host::client(client, far, far.ip(), &options).unwrap();
    assert_eq!((client.counts.stranger, client.counts.resolution), (1, 1));
    assert_eq!(there.lock().unwrap().len(), 1, "one question was enough");
    // Nobody: a bounded number of questions.
    there.lock().unwrap().clear();
    let client = made(NEAR, "10.0.0.1:5", Tags::default(), (&there, &back));
    let error = Host::client(client, far, far.ip(), &options).unwrap_err();
    assert!(matches!(error, PortError::NoNeighbour { tries: QUESTIONS, .. }), "{error}");
    assert!(error.to_string().contains("10.0.0.2"), "{error}");
    assert_eq!(there.lock().unwrap().len(), QUESTIONS as usize);
}

#[test]
fn two_hosts_of_ours_meet_on_one_thread_without_asking_anybody_and_say_where_they_are() {
    for (near, far) in [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")] {
        let (there, back) = (Queue::default(), Queue::default());
        let options = Options::default();
        let unmet = |mac, at, ways| {
            let made = made(mac, at, Tags::default(), ways);
            Box::new(side::Unmet::new(made, None, &options).unwrap())
        };
        let (first, second) =
            (unmet(NEAR, near, (&there, &back)), unmet(FAR, far, (&back, &there)));
        let (at_first, at_second) = (first.own(), second.own());
        assert_eq!(
            (at_first, at_second),
            ((NEAR, near.parse().unwrap()), (FAR, far.parse().unwrap()))
        );
        let (mut first, mut second) =
            (first.meet(at_second).unwrap(), second.meet(at_first).unwrap());
        assert_eq!(there.lock().unwrap().len(), 1, "one announcement and no question");
        let mut buffer = [0; 64];
        for (from, to) in [(0, 1), (1, 0), (0, 1)] {
            let both = [&mut first, &mut second];
            both[from].send(b"hello").unwrap();
            let got = both[to].receive(&mut buffer, Nanos(1_000)).unwrap();
            assert!(matches!(got, Received::Message { length: 5, .. }), "{near}: {got:?}");
        }
        let counts = second.frame_counts().unwrap().unwrap().host;
        // The announcement is somebody else's address.
        assert_eq!((counts.messages, counts.resolution, counts.all()), (2, 1, 3), "{near}");
        assert!(first.facts().path.starts_with(near), "{}", first.facts().path);
    }
}

#[test]
fn a_host_that_only_sends_answers_who_asks_for_it_meanwhile() {
    let (there, back) = (Queue::default(), Queue::default());
    let options = Options::default();
    let unmet = |mac, at, ways| {
        let made = made(mac, at, Tags::default(), ways);
        Box::new(side::Unmet::new(made, None, &options).unwrap())
    };
    // The far host is at another wire: what leaves here comes to nobody.
    let (elsewhere, nowhere) = (Queue::default(), Queue::default());
    let first = unmet(NEAR, "10.0.0.1:5", (&there, &back));
    let second = unmet(FAR, "10.0.0.2:6", (&elsewhere, &nowhere));
    let (at_first, at_second) = (first.own(), second.own());
    let (first, second) = (first.meet(at_second).unwrap(), second.meet(at_first).unwrap());
    let mut across = crate::across::Across::new(first, second);
    there.lock().unwrap().clear();
    let asker = Identity {
        mac: Mac([2, 0, 0, 0, 0, 7]),
        address: "10.0.0.7:1".parse().unwrap(),
        tags: Tags::default(),
    };
    let question = asker.question("10.0.0.1".parse().unwrap());
    back.lock().unwrap().push_back(question.bytes().to_vec());
    for _ in 0..200 {
        let got = across.receive(&mut [0; 64], Nanos(0)).unwrap();
        assert!(matches!(got, Received::Nothing { .. }), "{got:?}");
    }
    let answers = there.lock().unwrap().len();
    assert_eq!(answers, 1, "and it asks nobody itself");
}

#[test]
fn a_router_between_two_hosts_of_ours_has_to_be_there() {
    let (there, back) = (Queue::default(), Queue::default());
    let mut options = Options::default();
    options.link.next_hop = Some("10.0.0.9".parse().unwrap());
    let near = made(NEAR, "10.0.0.1:5", Tags::default(), (&there, &back));
    let error = side::Unmet::new(near, None, &options).err().unwrap();
    assert!(matches!(error, PortError::NoNeighbour { .. }), "{error}");
    // One that was found before takes the frames, whoever they are for.
    let router = Mac([2, 0, 0, 0, 0, 9]);
    let near = made(NEAR, "10.0.0.1:5", Tags::default(), (&there, &back));
    let near = Box::new(side::Unmet::new(near, Some(router), &options).unwrap());
    there.lock().unwrap().clear();
    let mut near = near.meet((FAR, "10.1.0.2:6".parse().unwrap())).unwrap();
    near.send(b"hello").unwrap();
    let sent = there.lock().unwrap().pop_back().unwrap();
    assert_eq!(sent[..6], router.0, "to the router");
}

#[test]
fn what_is_not_for_a_host_is_counted_by_what_it_is_and_adds_up() {
    let (near, far) = ("10.0.0.1:5", "10.0.0.2:6");
    let (mut client, mut server) = pair(near, far, Tags::one(7));
    let flow = |from: &str, to: &str, tags, mac| Flow {
        link: (NEAR, mac),
        tags,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        class: 0,
        hops: 64,
    };
    let plant = |host: &Host<Wire>, flow: &Flow, change: &dyn Fn(&mut Vec<u8>)| {
        let template = Template::new(flow).unwrap();
        let mut frame = vec![0; template.bytes() + 5];
        template.write(&mut frame, b"plant");
        change(&mut frame);
        host.frames.from.lock().unwrap().push_back(frame);
    };
    let own = Tags::one(7);
    let as_is = |_: &mut Vec<u8>| ();
    plant(&server, &flow(near, far, Tags::one(8), FAR), &as_is);
    plant(&server, &flow(near, far, Tags::default(), FAR), &as_is);
    plant(&server, &flow(near, far, own, Mac([2, 0, 0, 0, 0, 9])), &as_is);
    plant(&server, &flow(near, "10.0.0.3:6", own, FAR), &as_is);
    plant(&server, &flow(near, "10.0.0.2:7", own, FAR), &as_is);
    plant(&server, &flow(near, far, own, FAR), &|frame| frame[50] ^= 1);
    plant(&server, &flow(near, far, own, FAR), &|frame| frame.truncate(30));
    plant(&server, &flow(near, far, own, FAR), &|frame| frame[16..18].copy_from_slice(&[8, 9]));
    plant(&server, &flow(near, far, own, FAR), &|frame| frame[44..46].fill(0));
    assert_eq!(received(&mut server).as_deref(), Some(&b"plant"[..]));
    assert_eq!(received(&mut server), None);
    let counts = server.counts;
    assert_eq!((counts.other_network, counts.other_address, counts.other_port), (2, 2, 1));
    assert_eq!((counts.damaged, counts.other_protocol), (2, 1));
    assert_eq!((counts.messages, counts.unverified), (1, 1));
    assert_eq!(counts.all(), 9);
    // A client hears its server, and nobody else.
    let mut stranger = flow("10.0.0.9:6", near, own, NEAR);
    plant(&client, &stranger, &as_is);
    stranger.from = far.parse().unwrap();
    plant(&client, &stranger, &as_is);
    assert_eq!(received(&mut client).as_deref(), Some(&b"plant"[..]));
    assert_eq!((client.counts.stranger, client.counts.all()), (1, 2));
}

#[test]
fn a_ring_that_stays_full_is_told_by_a_client_after_a_while_and_by_a_server_at_once() {
    let (mut client, mut server) = pair("10.0.0.1:5", "10.0.0.2:6", Tags::default());
    client.send(b"x").unwrap();
    assert!(received(&mut server).is_some());
    (client.frames.room, server.frames.room) = (0, 0);
    let before = client.frames.now;
    let error = client.send(b"x").unwrap_err();
    assert!(matches!(error, PortError::SendTimedOut { limit: SEND_LIMIT, .. }), "{error}");
    assert!(client.frames.now - before >= SEND_LIMIT.0);
    let before = server.frames.now;
    assert!(matches!(server.send(b"x"), Err(PortError::SendTimedOut { limit: Nanos(0), .. })));
    assert!(server.frames.now - before <= 2_000_000);
    // A question that cannot be answered is counted as that.
    client.frames.room = 1;
    let question = client.identity.question("10.0.0.2".parse().unwrap());
    assert!(client.post(&question).unwrap());
    assert_eq!((received(&mut server), server.counts.not_answered), (None, 1));
}

#[test]
fn frames_for_others_do_not_prolong_a_wait() {
    // Each look finds another foreign frame; a look takes a microsecond.
    struct Flood(Wire, u64);
    impl Frames for Flood {
        fn receive(&mut self, _: Nanos) -> Result<Burst, PortError> {
            self.1 += 1;
            self.0.burst = vec![vec![0; 60]];
            self.0.now += 1_000;
            Ok(Burst { count: 1, at: Ticks(self.0.now) })
        }
        fn frame(&self, at: usize) -> Arrival<'_> {
            self.0.frame(at)
        }
        fn put(&mut self, length: usize) -> Option<&mut [u8]> {
            self.0.put(length)
        }
        fn flush(&mut self) -> Result<Ticks, PortError> {
            self.0.flush()
        }
        fn urge(&mut self) -> Result<Ticks, PortError> {
            self.0.urge()
        }
        fn facts(&self) -> &FramesFacts {
            self.0.facts()
        }
        fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
            self.0.drops()
        }
    }
    let (_, mut server) = pair("10.0.0.1:5", "10.0.0.2:6", Tags::default());
    let (there, back) = (Queue::default(), Queue::default());
    let Made { frames, identity, stamps, rate, place } =
        made(FAR, "10.0.0.2:6", Tags::default(), (&back, &there));
    let made = Made { frames: Flood(frames, 0), identity, stamps, rate, place };
    let mut flooded = Host::server(made, &Options::default());
    let got = flooded.receive(&mut [0; 64], Nanos(10_000)).unwrap();
    assert!(matches!(got, Received::Nothing { .. }), "{got:?}");
    // The first look begins the wait of ten microseconds.
    assert_eq!(flooded.frames.1, 11);
    assert_eq!(flooded.counts.other_protocol, 11);
    assert_eq!(received(&mut server), None);
}
