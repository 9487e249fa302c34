//! Any bytes as what a tap saw: packets of a capture, crossings in them and requests of those, or a
//! reason that is safe to print.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whylate_breakdown::tap::{Pairing, Settings, wire};
use whylate_net::capture::Cut;
use whylate_net::capture::seen::packets_of;

fuzz_target!(|data: &[u8]| {
    let Some((choice, content)) = data.split_first() else { return };
    let cut = if choice % 2 == 0 { Cut::Refused } else { Cut::Taken };
    let name = if choice & 2 == 0 { "fuzzed" } else { "fuzzed.erf" };
    let server = "198.18.0.2:11111".parse().unwrap();
    let read = whylate_net::protocol::tap::reader(whylate_net::protocol::Speaks::Raw, None);
    let mut pairing = Pairing::new(Settings::numbered(Some(server)), read);
    let (mut seen, mut instants) = (0_u64, 0_u64);
    let read = packets_of(Path::new(name), content, cut, &mut |packet| {
        seen += 1;
        match wire::crossing(packet.at, packet.link, packet.bytes) {
            Ok(crossing) => pairing.crossing(&crossing, &mut |_, _, _| instants += 1),
            Err(unread) => pairing.unread(unread),
        }
    });
    match read {
        Ok(facts) => assert_eq!(facts.packets, seen),
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() < 1_000 && told.chars().all(|c| !c.is_control()), "{told}");
        }
    }
    let paired = pairing.finish();
    assert_eq!(paired.counts.requests + paired.counts.replies, instants);
});
