//! What cannot be opened, and ends that go away.

use whylate_model::Nanos;
use whylate_port::device::{Device, DeviceName};
use whylate_port::frames::{Amount, Ring};
use whylate_port::{Frames, LinkOptions, PortError, Setup, Wait};

use crate::peer::{Testpmd, installed};
use crate::{device, frame, opened, received, send, setup};

fn refused(words: &str) -> String {
    match opened(words) {
        Ok(port) => panic!("opened: {:?}", port.facts()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn devices_that_cannot_be_are_refused_by_name_with_what_dpdk_said() {
    let told = refused("net_nonesuch0");
    assert!(told.contains("`net_nonesuch0`") && told.contains("DPDK said: "), "{told}");
    let told = refused("net_af_packet20,iface=nosuchport");
    assert!(told.contains("nosuchport") && told.contains("DPDK said: "), "{told}");
    let told = refused("null0");
    assert!(told.contains("net_null0"), "{told}");
    // What failed costs the next one nothing.
    drop(opened("net_null20").unwrap());
    drop(opened("net_null20").unwrap());
}

#[test]
fn a_device_that_somebody_of_this_process_has_is_refused() {
    let _held = opened("net_null21").unwrap();
    let told = refused("net_null21,size=9");
    assert!(told.contains("`net_null21`") && told.contains("open already"), "{told}");
}

#[test]
fn buffers_rings_waits_and_queues_that_do_not_fit_are_refused_with_numbers() {
    let with = |change: &dyn Fn(&mut LinkOptions), wait| {
        let mut options = device("net_null22");
        change(&mut options);
        match whylate_dpdk::open(&options, Setup { wait, ..setup() }) {
            Ok(port) => panic!("opened: {:?}", port.facts()),
            Err(error) => error,
        }
    };
    let error = with(&|options| options.buffer = Some(512), Wait::Spin);
    assert!(
        matches!(error, PortError::BufferTooSmall { needed: 1_522, bytes: 512, .. }),
        "{error}"
    );
    let error = with(&|options| options.ring = Some(1 << 20), Wait::Spin);
    assert!(matches!(error, PortError::RingUnfit { .. }), "{error}");
    let error = with(&|options| options.queues = vec![1], Wait::Spin);
    assert!(matches!(error, PortError::RingUnfit { asked: 1, .. }), "{error}");
    let error = with(&|options| options.device = Device::default(), Wait::Spin);
    assert!(matches!(error, PortError::DeviceMissing), "{error}");
    for wait in [Wait::Block, Wait::Poll, Wait::Epoll, Wait::BusyPoll, Wait::IoUring] {
        let error = with(&|_| (), wait);
        assert!(matches!(error, PortError::WaitUnfit { .. }), "{error}");
    }
}

#[test]
fn a_card_is_refused_where_dpdk_runs_without_cards() {
    let _running = opened("net_null23").unwrap();
    let mut options = device("");
    options.device.name = Some(DeviceName::Pci("0000:03:00.0".to_owned()));
    let error = whylate_dpdk::open(&options, setup()).err().map(|error| error.to_string());
    let told = error.unwrap_or_default();
    assert!(told.contains("cannot be started a second time"), "{told}");
    assert!(told.contains("without cards") && told.contains("0000:03:00.0"), "{told}");
}

#[test]
fn the_other_end_is_another_process_and_when_it_is_killed_the_link_goes_down_and_nothing_hangs() {
    if !installed() {
        return;
    }
    let socket = format!("whylate-killed-{}", std::process::id());
    let server = format!("net_memif0,role=server,id=0,socket={socket}");
    let words = ["--forward-mode=macswap", "--no-lsc-interrupt"];
    let mut peer = Testpmd::start((0, 0), &[&server], &words);
    let up = peer.next(|line| line.contains("statistics for port").then_some(()));
    assert!(up.is_some(), "testpmd did not start");
    let mut near = opened(&format!("net_memif20,role=client,id=0,socket={socket}")).unwrap();
    assert!(near.is_up() && near.facts().instead.is_empty(), "{:?}", near.facts());
    // The link is up before the other end looks: what is sent until then it throws away.
    let greeted = (0..100).any(|_| {
        send(&mut near, &frame(0));
        near.receive(Nanos(100_000_000)).unwrap().count > 0
    });
    assert!(greeted, "nothing comes back");
    while near.receive(Nanos(200_000_000)).unwrap().count > 0 {}
    for number in 0..100 {
        send(&mut near, &frame(number));
        let mut wanted = frame(number);
        wanted[..12].rotate_left(6);
        assert_eq!(received(&mut near, 1), [wanted]);
    }
    peer.kill();
    // Frames that are put now cannot go; the link is asked after within so many looks.
    let mut put = 0;
    let error = (0..100_000_000).find_map(|_| {
        if let Some(place) = near.put(60) {
            place.fill(1);
            put += 1;
        }
        near.urge().and_then(|_| near.receive(Nanos(0))).err()
    });
    let error = error.unwrap_or_else(|| panic!("still up: {}", near.is_up()));
    assert!(matches!(error, PortError::LinkLost { what: "went down", .. }), "{error}");
    let drops = near.drops().unwrap();
    let given_up = drops.iter().find(|drops| drops.counter == "link_down").unwrap();
    assert_eq!(given_up.ring, Ring::Send);
    assert!(given_up.count > 0 && given_up.count <= put, "{given_up:?} of {put}");
    let (frames, bytes) = (given_up.count, 60 * given_up.count);
    assert_eq!(near.taken_back(), Amount { frames, bytes });
    drop(near);
    drop(opened("net_null24").unwrap());
}
