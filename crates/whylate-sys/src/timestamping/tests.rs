//! Proofs: recorded and made-up bytes, and live sockets on 127.0.0.1.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use super::*;

const WANTED: Flags = Flags(
    Flags::TX_SCHED.0
        | Flags::TX_SOFTWARE.0
        | Flags::RX_SOFTWARE.0
        | Flags::SOFTWARE.0
        | Flags::OPT_ID.0
        | Flags::OPT_TSONLY.0,
);

fn control(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
    let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

fn times(of: [(u64, u64); 3]) -> Vec<u8> {
    of.into_iter().flat_map(|(s, ns)| [s.to_ne_bytes(), ns.to_ne_bytes()].concat()).collect()
}

fn extended(errno: u32, origin: u8, info: u32, data: u32) -> Vec<u8> {
    let mut bytes = errno.to_ne_bytes().to_vec();
    bytes.extend([origin, 0, 0, 0]);
    bytes.extend(info.to_ne_bytes());
    bytes.extend(data.to_ne_bytes());
    // The address of who said it.
    bytes.extend([0; 16]);
    bytes
}

#[test]
fn an_older_kernel_is_asked_without_a_flag_only_while_nothing_of_a_stream_is_on_its_way() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(unacknowledged(listener.as_fd()), None);
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(unacknowledged(stream.as_fd()), Some(0));
    // Nobody reads: what finds no room at the other end stays here.
    stream.set_nonblocking(true).unwrap();
    let much = vec![0; 1 << 16];
    while stream.write(&much).is_ok() {}
    assert!(unacknowledged(stream.as_fd()).is_some_and(|bytes| bytes > 0));
    // One that no kernel knows is refused with it and without it.
    let unknown = Flags(1 << 30).with(WANTED).with(Flags::OPT_ID_TCP);
    let fresh = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(set(&fresh, unknown).is_err());
}

#[test]
fn what_lies_in_an_error_queue_is_read_and_what_is_cut_off_is_none() {
    let mut bytes = control(libc::SOL_SOCKET, 65, &times([(2, 5), (0, 0), (0, 7)]));
    bytes.extend(control(libc::SOL_SOCKET, SO_RXQ_OVFL, &9_u32.to_ne_bytes()));
    bytes.extend(control(libc::SOL_IP, IP_RECVERR, &extended(42, 4, 1, u32::MAX)));
    let beside = Beside::read(&bytes);
    let told = Times { software: Some(2_000_000_005), hardware: Some(7) };
    assert_eq!((beside.times, beside.dropped), (told, Some(9)));
    let expected = Report::Stamp { sending: Sending::Scheduled, id: u32::MAX, times: told };
    assert_eq!(beside.report(), expected);
    // However little of it there is, nothing beyond it is read.
    for length in 0..bytes.len() {
        let _ = Beside::read(&bytes[..length]).report();
    }
    let mut endless = bytes.clone();
    endless[..size_of::<usize>()].copy_from_slice(&usize::MAX.to_ne_bytes());
    assert_eq!(Beside::read(&endless), Beside::default());
    endless[..size_of::<usize>()].copy_from_slice(&0_usize.to_ne_bytes());
    assert_eq!(Beside::read(&endless), Beside::default());
}

#[test]
fn errors_of_the_network_are_told_apart_from_stamps() {
    let report = |errno, origin, info| {
        let bytes = control(libc::SOL_IPV6, IPV6_RECVERR, &extended(errno, origin, info, 3));
        Beside::read(&bytes).report()
    };
    assert_eq!(report(111, 2, 0), Report::Error(Errno::CONNREFUSED));
    assert_eq!(report(0, 2, 0), Report::Unreadable);
    let zero = Report::Stamp { sending: Sending::Other(9), id: 3, times: Times::default() };
    assert_eq!(report(42, 4, 9), zero);
    assert_eq!(Beside::default().report(), Report::Unreadable);
}

/// Two sockets, each connected to the other.
fn pair() -> [UdpSocket; 2] {
    let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    one.connect(other.local_addr().unwrap()).unwrap();
    other.connect(one.local_addr().unwrap()).unwrap();
    [one, other]
}

/// What comes within a while.
fn reports(socket: &UdpSocket, count: usize) -> Vec<Report> {
    let (mut queue, mut reports) = (ErrorQueue::default(), Vec::new());
    for _ in 0..10_000 {
        queue.read(socket, |report| reports.push(report)).unwrap();
        if reports.len() >= count {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    reports
}

#[test]
fn flags_are_read_back_and_unknown_ones_refused() {
    let [one, _] = pair();
    if let Err(errno) = set(&one, WANTED) {
        return crate::tests::skip(&errno);
    }
    assert_eq!(get(&one), Ok(WANTED));
    assert_eq!(set(&one, Flags(1 << 31)), Err(Errno::INVAL));
    assert_eq!(get(&one), Ok(WANTED));
}

#[test]
fn each_datagram_on_loopback_is_stamped_in_the_order_of_its_way_with_its_number() {
    let [one, other] = pair();
    if let Err(errno) = set(&one, WANTED).and_then(|()| set(&other, WANTED)) {
        return crate::tests::skip(&errno);
    }
    let mut received = Vec::new();
    for number in 0..5_u8 {
        assert_eq!(send(&one, &[number; 9], None, 0, Asked::default()), Ok(9));
        let came = receive(&other, &mut [0; 20], 0).unwrap();
        assert_eq!((came.length, came.times.hardware), (9, None));
        received.push(came.times.software);
    }
    let reports = reports(&one, 10);
    assert_eq!(reports.len(), 10, "{reports:?}");
    for (number, pair) in reports.chunks(2).enumerate() {
        let at = |wanted: Sending| {
            pair.iter().find_map(|report| match report {
                Report::Stamp { sending, id, times } if *sending == wanted => {
                    assert_eq!(*id as usize, number);
                    times.software
                }
                _ => None,
            })
        };
        let (scheduled, sent) = (at(Sending::Scheduled).unwrap(), at(Sending::Sent).unwrap());
        assert!(scheduled <= sent, "{pair:?}");
        // The first packets after stamping began may have none.
        assert!(received[number].is_none_or(|at| sent <= at), "{pair:?} {received:?}");
    }
}

#[test]
fn one_message_asks_for_itself_by_an_id_of_the_callers() {
    let [one, _other] = pair();
    let told = Flags::SOFTWARE.with(Flags::OPT_ID).with(Flags::OPT_TSONLY);
    if let Err(errno) = set(&one, told) {
        return crate::tests::skip(&errno);
    }
    let asked = |id| Asked { records: Some(Flags::TX_SOFTWARE), id };
    send(&one, b"unasked", None, 0, Asked::default()).unwrap();
    match send(&one, b"asked", None, 0, asked(Some(0xffff_fffe))) {
        Err(Errno::INVAL) => return crate::tests::skip(&"no ids of the caller's"),
        sent => assert_eq!(sent, Ok(5)),
    }
    let reports = reports(&one, 1);
    let [Report::Stamp { sending: Sending::Sent, id: 0xffff_fffe, times }] = reports[..] else {
        panic!("{reports:?}");
    };
    assert!(times.software.is_some());
}

#[test]
fn an_empty_error_queue_is_not_waited_for() {
    let [one, _other] = pair();
    if std::env::var_os("WHYLATE_EMULATED").is_some() {
        return crate::tests::skip(&"an emulator gives messages back without their control data");
    }
    let none = ErrorQueue::default().read(&one, |report| panic!("{report:?}"));
    assert_eq!(none, Ok(0));
}
