//! Any text as the way of a proxy, and any bytes as what it carries: a way that is written as it is read or
//! a reason that is safe to print; a number that the reader of the protocol finds as well, or none.
//!
//! Good seeds: `udp:127.0.0.1:4100=127.0.0.1:4021`, and messages as `messages` has them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use whylate_net::Speaks;
use whylate_net::delay::ProxyWay;
use whylate_net::protocol::tap::{numbers, reader};

fuzz_target!(|data: &[u8]| {
    match String::from_utf8_lossy(data).parse::<ProxyWay>() {
        Ok(way) => {
            assert!(way.listen != way.to && way.to.port() > 0, "{way}");
            assert_eq!(way.to_string().parse::<ProxyWay>().ok(), Some(way));
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() < 2_000 && !told.chars().any(char::is_control), "{told:?}");
        }
    }
    for speaks in Speaks::ALL {
        let heading = reader(speaks, None)(data);
        let told = numbers(speaks)(data);
        assert_eq!(told.is_some(), heading.is_some(), "{speaks}");
        assert_eq!(told.and_then(|of| of.number), heading.and_then(|of| of.number), "{speaks}");
    }
});
