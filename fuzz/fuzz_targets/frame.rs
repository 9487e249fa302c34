//! Any bytes as a frame: a message that lies within them, or a reason that is safe to print.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_port::frame::{Packet, Tag, TagKind, parse};

fuzz_target!(|data: &[u8]| {
    let Some((choice, frame)) = data.split_first() else { return };
    let stripped = match choice % 3 {
        0 => None,
        1 => Some(Tag { kind: TagKind::Customer, control: u16::from(*choice) << 3 }),
        _ => Some(Tag { kind: TagKind::Service, control: u16::from(*choice) }),
    };
    match parse(frame, stripped) {
        Ok(seen) => {
            assert!(seen.link.tags.count() <= 2 && seen.link.payload.len() < frame.len());
            if let Packet::Datagram(datagram) = seen.packet {
                let (outer, inner) = (frame.as_ptr_range(), datagram.message.as_ptr_range());
                assert!(outer.start <= inner.start && inner.end <= outer.end);
                assert_eq!(datagram.from.is_ipv4(), datagram.to.is_ipv4());
            }
        }
        Err(defect) => {
            let told = defect.to_string();
            assert!(told.len() < 200 && told.chars().all(|c| !c.is_control()), "{told}");
        }
    }
});
