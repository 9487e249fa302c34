//! Events of messages on their way, from records built by the formats of a 6.18 kernel.

use crate::format::EventFormat;
use crate::{Decoder, TraceError, wanted_on_the_way};
use whylate_model::event::{EventKind, Protocol};

use super::builder::{
    PageBuilder, Value, Value::Bytes, Value::Number, decode, decoder, layout, record,
    recorded_format,
};

/// A buffer's address, with the highest bit as all of the kernel's have it.
const SKB: i64 = -0x7777_0123_4567_0000;
const AT: u64 = SKB as u64;

fn kind_of(system: &str, format: &EventFormat, values: &[(&str, Value<'_>)]) -> EventKind {
    let page = PageBuilder::new(1_000).event(5, &record(format, values)).page();
    let (result, mut events) = decode(&decoder(system, format), &page);
    assert_eq!(result.unwrap().events, 1);
    events.pop().unwrap().kind
}

#[test]
fn frames_have_a_buffer_a_device_and_a_length() {
    let values = |length| {
        [("skbaddr", Number(SKB)), ("len", Number(length)), ("name", Bytes(b"veth-client0\0"))]
    };
    let device = "veth-client0".into();
    assert_eq!(
        kind_of("net", &recorded_format!("net/net_dev_queue"), &values(106)),
        EventKind::NetQueue { skb: AT, device, length: 106 }
    );
    assert_eq!(
        kind_of("net", &recorded_format!("net/net_dev_start_xmit"), &values(106)),
        EventKind::NetXmit { skb: AT, device, length: 106 }
    );
    assert_eq!(
        kind_of("net", &recorded_format!("net/netif_receive_skb"), &values(65_549)),
        EventKind::NetReceive { skb: AT, device, length: 65_549 }
    );
    let values = [("dev_name", Bytes(b"eth0\0")), ("work", Number(-1))];
    assert_eq!(
        kind_of("napi", &recorded_format!("napi/napi_poll"), &values),
        EventKind::NapiPoll { device: "eth0".into(), work: -1 }
    );
}

#[test]
fn buffers_go_through_disciplines_are_copied_used_and_dropped_for_a_reason() {
    let skb = [("skbaddr", Number(SKB))];
    assert_eq!(
        kind_of("qdisc", &recorded_format!("qdisc/qdisc_enqueue"), &skb),
        EventKind::QdiscIn { skb: AT }
    );
    assert_eq!(
        kind_of("qdisc", &recorded_format!("qdisc/qdisc_dequeue"), &skb),
        EventKind::QdiscOut { skb: AT }
    );
    assert_eq!(
        kind_of("skb", &recorded_format!("skb/consume_skb"), &skb),
        EventKind::SkbConsumed { skb: AT }
    );
    let copied = [("skbaddr", Number(SKB)), ("len", Number(64))];
    assert_eq!(
        kind_of("skb", &recorded_format!("skb/skb_copy_datagram_iovec"), &copied),
        EventKind::SkbCopied { skb: AT, length: 64 }
    );
    let format = recorded_format!("skb/kfree_skb");
    let freed = |number| [("skbaddr", Number(SKB)), ("reason", Number(number))];
    // 3 has a name in the kernel's own print format, 0x7fff_0000 has none.
    for (number, reason) in [(3, "NO_SOCKET"), (6, "SOCKET_RCVBUFF"), (0x7fff_0000, "2147418112")] {
        let expected = EventKind::SkbFreed { skb: AT, reason: reason.to_owned() };
        assert_eq!(kind_of("skb", &format, &freed(number)), expected);
    }
}

#[test]
fn a_datagram_without_room_has_the_kernels_error_and_its_port_where_that_is_told() {
    let format = recorded_format!("udp/udp_fail_queue_rcv_skb");
    let values = [("rc", Number(-12)), ("sport", Number(7)), ("dport", Number(40_021))];
    let kind = kind_of("udp", &format, &values);
    assert_eq!(kind, EventKind::UdpRefused { error: -12, port: Some(40_021) });
    // Older kernels tell the port by another name; one may tell none.
    let mut old = format.clone();
    let port = old.fields.iter_mut().find(|field| field.name == "dport").unwrap();
    port.name = "lport".to_owned();
    let kind = kind_of("udp", &old, &[("rc", Number(-105)), ("lport", Number(65_535))]);
    assert_eq!(kind, EventKind::UdpRefused { error: -105, port: Some(65_535) });
    old.fields.retain(|field| field.name != "lport");
    let kind = kind_of("udp", &old, &[("rc", Number(-12))]);
    assert_eq!(kind, EventKind::UdpRefused { error: -12, port: None });
}

#[test]
fn events_of_datagrams_polls_and_interrupts_are_wanted_beside_those_of_the_way() {
    let wanted = wanted_on_the_way();
    for (system, event) in [
        ("udp", "udp_fail_queue_rcv_skb"),
        ("napi", "napi_poll"),
        ("irq", "irq_handler_entry"),
        ("irq", "irq_handler_exit"),
        ("irq", "softirq_entry"),
        ("irq", "softirq_exit"),
    ] {
        let of = wanted.iter().filter(|of| (of.system, of.event) == (system, event));
        assert_eq!(of.count(), 1, "{system}:{event}");
    }
}

#[test]
fn a_kernel_that_gives_no_reason_and_names_no_buffer_of_a_segment_is_understood() {
    let mut format = recorded_format!("skb/kfree_skb");
    format.fields.retain(|field| field.name != "reason");
    let expected = EventKind::SkbFreed { skb: AT, reason: String::new() };
    assert_eq!(kind_of("skb", &format, &[("skbaddr", Number(SKB))]), expected);
    let whole = recorded_format!("tcp/tcp_probe");
    let mut old = whole.clone();
    old.fields.retain(|field| !["skbaddr", "skaddr"].contains(&field.name.as_str()));
    let length = ("data_len", Number(64));
    let expected = EventKind::TcpSegment { skb: None, socket: None, length: 64 };
    assert_eq!(kind_of("tcp", &old, &[length]), expected);
    let values = [("data_len", Number(64)), ("skbaddr", Number(SKB)), ("skaddr", Number(9))];
    let expected = EventKind::TcpSegment { skb: Some(AT), socket: Some(9), length: 64 };
    assert_eq!(kind_of("tcp", &whole, &values), expected);
}

#[test]
fn sockets_are_told_apart_by_what_they_speak_and_a_look_is_no_read() {
    let ready = recorded_format!("sock/sk_data_ready");
    let sent = recorded_format!("sock/sock_send_length");
    let read = recorded_format!("sock/sock_recv_length");
    // IPv4 and IPv6, TCP and UDP; a netlink socket whose number of a protocol is that of UDP.
    for (family, number, protocol) in [
        (2, 6, Protocol::Tcp),
        (10, 6, Protocol::Tcp),
        (2, 17, Protocol::Udp),
        (10, 17, Protocol::Udp),
        (16, 17, Protocol::Other),
        (1, 0, Protocol::Other),
    ] {
        let about = [("family", Number(family)), ("protocol", Number(number))];
        let [first, second] = about;
        assert_eq!(
            kind_of("sock", &ready, &[("skaddr", Number(SKB)), first, second]),
            EventKind::SocketReady { socket: AT, protocol }
        );
        for (length, flags) in [(64, 0), (-11, 0x40), (64, 2)] {
            let values = || {
                [
                    ("sk", Number(SKB)),
                    ("family", Number(family)),
                    ("protocol", Number(number)),
                    ("ret", Number(length)),
                    ("flags", Number(flags)),
                ]
            };
            let length = length as i32;
            assert_eq!(
                kind_of("sock", &sent, &values()),
                EventKind::SocketSent { socket: AT, protocol, length }
            );
            let expected = if flags == 2 {
                EventKind::SocketPeeked { socket: AT }
            } else {
                EventKind::SocketRead { socket: AT, protocol, length }
            };
            assert_eq!(kind_of("sock", &read, &values()), expected);
        }
    }
}

#[test]
fn calls_that_send_are_known_by_their_system() {
    let format = recorded_format!("syscalls/sys_enter_sendto");
    assert_eq!(kind_of("syscalls", &format, &[("fd", Number(3))]), EventKind::SendCall);
    let format = recorded_format!("tcp/tcp_sendmsg_locked");
    let kind = kind_of("tcp", &format, &[("msg_left", Number(64))]);
    assert_eq!(kind, EventKind::TcpSend { length: 64 });
}

#[test]
fn every_event_of_messages_can_be_registered_with_the_others_and_lacks_nothing() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/events");
    let mut decoder = Decoder::new(layout());
    for wanted in wanted_on_the_way() {
        let path = format!("{data}/{}/{}/format", wanted.system, wanted.event);
        let format = EventFormat::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        decoder.register(wanted.system, &format).unwrap();
        assert_eq!(wanted.by_thread, wanted.system == "syscalls");
        // A filter speaks of fields that there are.
        for word in wanted.filter.unwrap_or_default().split(|letter: char| !letter.is_alphabetic())
        {
            assert!(word.is_empty() || format.field(word).is_some(), "{word} of {wanted:?}");
        }
    }
}

#[test]
fn a_device_outside_its_record_is_an_error() {
    let format = recorded_format!("net/net_dev_queue");
    let mut bad = record(&format, &[("name", Bytes(b"lo\0"))]);
    bad[20..24].copy_from_slice(&0x0004_ffff_u32.to_le_bytes());
    let page = PageBuilder::new(0).event(1, &bad).page();
    let (result, events) = decode(&decoder("net", &format), &page);
    assert!(matches!(result, Err(TraceError::RecordUnfit { .. })), "{result:?}");
    assert_eq!(events, []);
}
