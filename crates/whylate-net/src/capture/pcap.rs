//! pcap: a header of 24 bytes, then each packet behind 16 bytes with its time and length. Numbers
//! have the byte order of the machine that wrote them. (draft-ietf-opsawg-pcap)

use std::io::Read;

use super::input::{Fault, Input, Order};
use super::{Raw, Taker};

const PACKET: &str = "a packet";

/// How a file is written, by its first four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    order: Order,
    /// Parts of a second.
    per_second: u32,
}

impl Format {
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        const MICROS: u32 = 0xa1b2_c3d4;
        const NANOS: u32 = 0xa1b2_3c4d;
        [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(magic) {
            MICROS => Some(Self { order, per_second: 1_000_000 }),
            NANOS => Some(Self { order, per_second: 1_000_000_000 }),
            _ => None,
        })
    }

    /// Reads what comes behind the first four bytes.
    pub(super) fn packets<R: Read, T: Taker>(
        self,
        input: &mut Input<R>,
        taker: &mut T,
    ) -> Result<(), Fault> {
        taker.format("pcap");
        let header = input.must::<4>("its header")?;
        let [a, b, c, d] = header;
        let version = (self.order.u16([a, b]), self.order.u16([c, d]));
        if version.0 != 2 {
            let (major, minor) = version;
            return Err(Fault::Damaged(format!("it has version {major}.{minor} of pcap, not 2")));
        }
        let [.., link] = self.order.four(input.must::<16>("its header")?);
        // Beside the kind of link there may be how long its checksums are.
        let link = link as u16;
        let resolution_ps = 1_000_000_000_000 / u64::from(self.per_second);
        input.is_whole();
        while let Some(header) = input.next::<16>(PACKET)? {
            let [seconds, part, captured, length] = self.order.four(header);
            if part >= self.per_second {
                let what = format!("a packet {part} of {} into a second", self.per_second);
                return Err(Fault::Damaged(what));
            }
            input.keep(captured, T::WANTED, PACKET)?;
            let second = i128::from(seconds) * 1_000_000_000_000;
            let at = second + i128::from(part) * i128::from(resolution_ps);
            taker.packet(&Raw { at, resolution_ps, link, bytes: input.kept(), length })?;
            input.is_whole();
        }
        Ok(())
    }
}
