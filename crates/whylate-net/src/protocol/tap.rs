//! What the messages of each protocol tell to whoever looks on between both ends.

use whylate_model::breakdown::Leg;
use whylate_model::tap::Heading;

use super::{Speaks, sockperf};
use crate::delay::{Mark, Tells};
use crate::message::{Cookie, Header, Kind};

/// Reads the beginnings of a protocol's messages. With a cookie those of other clients are none, where
/// the protocol has cookies.
pub fn reader(
    speaks: Speaks,
    cookie: Option<Cookie>,
) -> impl Fn(&[u8]) -> Option<Heading> + Send + 'static {
    move |bytes| match speaks {
        Speaks::Raw => raw(bytes, cookie),
        Speaks::Sockperf => sockperf::heading(bytes),
    }
}

/// Reads number and cookie of a protocol's messages, whoever's they are: what a box on their way keeps of
/// them ([`crate::delay`]).
#[must_use]
pub fn numbers(speaks: Speaks) -> Tells {
    match speaks {
        Speaks::Raw => Box::new(|bytes| {
            let (header, _) = Header::beginning(bytes)?;
            let number = raw(bytes, None)?.number;
            Some(Mark { number, cookie: Some(header.cookie.0) })
        }),
        Speaks::Sockperf => Box::new(|bytes| {
            let number = sockperf::heading(bytes)?.number;
            Some(Mark { number, cookie: None })
        }),
    }
}

fn raw(bytes: &[u8], cookie: Option<Cookie>) -> Option<Heading> {
    let (header, length) = Header::beginning(bytes)?;
    // A client of compact messages has half of it.
    if cookie.is_some_and(|cookie| ![cookie, cookie.half()].contains(&header.cookie)) {
        return None;
    }
    let leg = match header.kind {
        Kind::Welcome | Kind::WarmReply | Kind::Reply | Kind::Farewell => Leg::Reply,
        Kind::Hello | Kind::Warm | Kind::Probe | Kind::End | Kind::WarmOneWay | Kind::OneWay => {
            Leg::Request
        }
    };
    let measured = matches!(header.kind, Kind::Probe | Kind::Reply | Kind::OneWay);
    Some(Heading { leg, number: measured.then_some(header.sequence), length: length as u32 })
}

#[cfg(test)]
mod tests {
    use whylate_model::tap::HEADING_BYTES;

    use super::*;
    use crate::message::HEADER_BYTES;
    use crate::protocol::Phase;

    #[test]
    fn a_request_and_its_reply_have_one_number_and_the_warm_up_has_none() {
        for speaks in Speaks::ALL {
            let cookie = Cookie(7);
            let protocol = speaks.with(cookie);
            let read = reader(speaks, Some(cookie));
            for (phase, expected) in [(Phase::Measured, Some(300)), (Phase::WarmUp, None)] {
                let mut message = [0; 100];
                protocol.prepare(&mut message);
                protocol.number(phase, 300, &mut message);
                let heading = |leg| Some(Heading { leg, number: expected, length: 100 });
                assert_eq!(read(&message[..HEADING_BYTES]), heading(Leg::Request), "{speaks}");
                protocol.answer(&mut message);
                assert_eq!(read(&message), heading(Leg::Reply), "{speaks}");
                assert_eq!(read(&message[..8]), None, "{speaks}: too little of it");
            }
        }
    }

    #[test]
    fn compact_messages_are_told_by_half_of_the_cookie_also_where_more_follows_in_a_stream() {
        let cookie = Cookie(0xaaaa_bbbb_0000_0007);
        let protocol = Speaks::Raw.with(cookie);
        let mut message = [0; 18];
        protocol.prepare(&mut message);
        protocol.number(Phase::Measured, 300, &mut message);
        let heading = Some(Heading { leg: Leg::Request, number: Some(300), length: 18 });
        let read = reader(Speaks::Raw, Some(cookie));
        assert_eq!(read(&message), heading);
        let two = [message, message].concat();
        assert_eq!(read(&two[..HEADING_BYTES]), heading);
        assert_eq!(read(&message[..17]), None, "too little of it");
        assert_eq!(reader(Speaks::Raw, Some(Cookie(8)))(&message), None, "another client's");
        let mark = Mark { number: Some(300), cookie: Some(7) };
        assert_eq!(numbers(Speaks::Raw)(&message), Some(mark));
    }

    #[test]
    fn a_box_on_their_way_reads_number_and_cookie_of_measured_messages() {
        for speaks in Speaks::ALL {
            let protocol = speaks.with(Cookie(7));
            let tells = numbers(speaks);
            for (phase, number) in [(Phase::Measured, Some(300)), (Phase::WarmUp, None)] {
                let mut message = [0; 100];
                protocol.prepare(&mut message);
                protocol.number(phase, 300, &mut message);
                let cookie = (speaks == Speaks::Raw).then_some(7);
                assert_eq!(tells(&message), Some(Mark { number, cookie }), "{speaks}");
            }
            assert_eq!(tells(&[0xff; 64]), None, "{speaks}");
        }
    }

    #[test]
    fn messages_of_other_clients_and_other_bytes_are_none() {
        let mut message = [0; HEADER_BYTES];
        let other = Header { kind: Kind::Probe, cookie: Cookie(8), sequence: 1 };
        other.write(&mut message);
        assert_eq!(reader(Speaks::Raw, Some(Cookie(7)))(&message), None);
        assert!(reader(Speaks::Raw, None)(&message).is_some());
        for speaks in Speaks::ALL {
            assert_eq!(reader(speaks, None)(&[0xff; 64]), None, "{speaks}");
        }
    }
}
