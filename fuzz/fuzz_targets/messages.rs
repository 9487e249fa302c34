//! Any bytes as messages of every protocol, one at a time and as a stream: each is read, answered or
//! foreign; no answer grows, no account is longer than the farewell that asks for it, and a frame is
//! never longer than a message may be.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_net::protocol::tap::numbers;
use whylate_net::protocol::{Answer, Incoming};
use whylate_net::{Cookie, ReflectorReport, Speaks};
use whylate_port::Frame;

fuzz_target!(|data: &[u8]| {
    // What both ends read, a box on the way reads as well.
    let (raw, marked) = (Speaks::Raw.with(Cookie(1)), numbers(Speaks::Raw)(data));
    if raw.sequence(data).is_some() {
        assert_eq!(marked.map(|mark| mark.cookie), Some(raw.flow(data)));
    }
    for protocol in Speaks::ALL.map(|speaks| speaks.with(Cookie(1))) {
        let _ = protocol.read(data, data.len());
        let _ = protocol.flow(data);
        let other = protocol.other_version(data);
        assert!(other.is_none() || protocol.read(data, data.len()) == Incoming::Foreign);
        let mut message = data.to_vec();
        if protocol.answer(&mut message) == Answer::Farewell
            && let Some(length) = protocol.account(ReflectorReport::default(), &mut message)
        {
            assert!(length <= data.len(), "an account of {length} for {} bytes", data.len());
        }
        let frame = protocol.framing();
        let mut rest = data;
        while let Frame::Length(length) = frame(rest) {
            assert!(protocol.sizes().contains(&length), "a frame of {length} bytes");
            let Some(next) = rest.get(length..) else { break };
            rest = next;
        }
    }
});
