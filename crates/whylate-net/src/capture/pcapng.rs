//! pcapng: blocks, each with its type and its length at both ends. A section begins with the order of
//! its bytes; its interfaces tell how their packets' times are to be read, and how many were lost.
//! Blocks of other types are passed over. (draft-ietf-opsawg-pcapng)

use std::io::Read;

use super::input::{Fault, Input, Order};
use super::{Raw, Taker};

/// The first four bytes of a section, in either order.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
/// With 16 bits of interface and 16 of drops; otherwise as [`ENHANCED`]. Old, and still met.
const OLD_PACKET: u32 = 2;
const SIMPLE: u32 = 3;
/// What became of an interface's packets: how many were lost among it.
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;

/// What a block has around its content: type and length, and the length again.
const AROUND: u32 = 12;
/// Interfaces of a section at most.
const MOST_INTERFACES: usize = 4_096;
/// Bytes of an interface's description at most: names, filters, comments.
const LONGEST_DESCRIPTION: u32 = 1 << 18;

const BLOCK: &str = "a block";
const PACKET: &str = "a packet";

/// How times of an interface's packets are to be read.
#[derive(Debug, Clone, Copy)]
struct Stamps {
    resolution: Resolution,
    offset_seconds: i64,
}

/// Units of a second.
#[derive(Debug, Clone, Copy)]
enum Resolution {
    /// 10 to this power.
    Decimal(u32),
    /// 2 to this power.
    Binary(u32),
}

impl Stamps {
    const USUAL: Self = Self { resolution: Resolution::Decimal(6), offset_seconds: 0 };

    /// The smallest step, in picoseconds; 1 where it is finer.
    fn resolution_ps(self) -> u64 {
        match self.resolution {
            Resolution::Decimal(power) => 10_u64.pow(12_u32.saturating_sub(power)),
            Resolution::Binary(power) => (10_u64.pow(12)).checked_shr(power).unwrap_or(0).max(1),
        }
    }

    fn picos(self, units: u64) -> i128 {
        const PICOS: u32 = 12;
        let units = i128::from(units);
        let within = match self.resolution {
            Resolution::Decimal(power @ ..=PICOS) => units * 10_i128.pow(PICOS - power),
            Resolution::Decimal(power) => units / 10_i128.pow(power - PICOS),
            // 64 and 40 bits.
            Resolution::Binary(power) => (units * 10_i128.pow(PICOS)) >> power,
        };
        within + i128::from(self.offset_seconds) * 10_i128.pow(PICOS)
    }
}

/// Reads what comes behind the first four bytes.
pub(super) fn packets<R: Read, T: Taker>(input: &mut Input<R>, taker: &mut T) -> Result<(), Fault> {
    taker.format("pcapng");
    let mut section = Section::begin(input)?;
    input.is_whole();
    while let Some(kind) = input.next::<4>(BLOCK)? {
        if kind == SECTION {
            section = Section::begin(input)?;
        } else {
            section.block(kind, input, taker)?;
        }
        input.is_whole();
    }
    Ok(())
}

struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    stamps: Stamps,
    link: u16,
    /// Packets that were lost by what it has told last.
    lost: u64,
}

impl Section {
    /// Reads a section's header behind its type.
    fn begin<R: Read>(input: &mut Input<R>) -> Result<Self, Fault> {
        const WHAT: &str = "a section's header";
        const MAGIC: u32 = 0x1a2b_3c4d;
        let length = input.must::<4>(WHAT)?;
        let magic = input.must::<4>(WHAT)?;
        let orders = [Order::Little, Order::Big];
        let Some(order) = orders.into_iter().find(|order| order.u32(magic) == MAGIC) else {
            return Err(Fault::Damaged("a section without the order of its bytes".to_owned()));
        };
        let section = Self { order, interfaces: Vec::new() };
        let content = section.content(length, 16)?;
        input.skip(content - 4, WHAT)?;
        section.end(input, length, WHAT)?;
        Ok(section)
    }

    /// Bytes of a block between its first length and its last, which are this many at least.
    fn content(&self, length: [u8; 4], least: u32) -> Result<u32, Fault> {
        let length = self.order.u32(length);
        match length.checked_sub(AROUND) {
            Some(content) if content >= least && length.is_multiple_of(4) => Ok(content),
            _ => Err(Fault::Damaged(format!("a block of {length} bytes"))),
        }
    }

    fn end<R: Read>(
        &self,
        input: &mut Input<R>,
        length: [u8; 4],
        what: &'static str,
    ) -> Result<(), Fault> {
        let again = input.must::<4>(what)?;
        if again == length {
            return Ok(());
        }
        let (begin, end) = (self.order.u32(length), self.order.u32(again));
        Err(Fault::Damaged(format!("a block of {begin} bytes that ends as one of {end}")))
    }

    fn block<R: Read, T: Taker>(
        &mut self,
        kind: [u8; 4],
        input: &mut Input<R>,
        taker: &mut T,
    ) -> Result<(), Fault> {
        let length = input.must::<4>(BLOCK)?;
        match self.order.u32(kind) {
            INTERFACE => {
                let content = self.content(length, 8)?;
                if content > LONGEST_DESCRIPTION || self.interfaces.len() == MOST_INTERFACES {
                    let what = format!("an interface too many, or described in {content} bytes");
                    return Err(Fault::Damaged(what));
                }
                let description = input.many(content, BLOCK)?;
                self.end(input, length, BLOCK)?;
                let stamps = self.stamps(description.get(8..).unwrap_or_default())?;
                let [a, b, ..] = description[..] else { return Err(Fault::Ends(BLOCK)) };
                self.interfaces.push(Interface { stamps, link: self.order.u16([a, b]), lost: 0 });
            }
            kind @ (ENHANCED | OLD_PACKET) => self.packet(kind, length, input, taker)?,
            STATISTICS => {
                let content = self.content(length, 0)?;
                let many = content.min(LONGEST_DESCRIPTION);
                let told = input.many(many, BLOCK)?;
                input.skip(content - many, BLOCK)?;
                self.end(input, length, BLOCK)?;
                taker.lost(self.lost(&told));
            }
            SIMPLE => {
                let what = "a simple packet, which has no time".to_owned();
                return Err(Fault::Damaged(what));
            }
            _ => {
                let content = self.content(length, 0)?;
                input.skip(content, BLOCK)?;
                self.end(input, length, BLOCK)?;
            }
        }
        Ok(())
    }

    fn packet<R: Read, T: Taker>(
        &self,
        kind: u32,
        length: [u8; 4],
        input: &mut Input<R>,
        taker: &mut T,
    ) -> Result<(), Fault> {
        let content = self.content(length, 20)?;
        let header = input.must::<16>(PACKET)?;
        let [_, high, low, captured] = self.order.four(header);
        // The length of the packet as it was.
        let whole = self.order.u32(input.must::<4>(PACKET)?);
        if captured > content - 20 {
            let what = format!("a packet of {captured} bytes in a block for {content}");
            return Err(Fault::Damaged(what));
        }
        input.keep(captured, T::WANTED, PACKET)?;
        input.skip(content - 20 - captured, PACKET)?;
        self.end(input, length, PACKET)?;
        let interface = self.interface(kind, header);
        let Some(Interface { stamps, link, .. }) = self.interfaces.get(interface) else {
            let what = format!("a packet of interface {interface}, which was not described");
            return Err(Fault::Damaged(what));
        };
        taker.packet(&Raw {
            at: stamps.picos(u64::from(high) << 32 | u64::from(low)),
            resolution_ps: stamps.resolution_ps(),
            link: *link,
            bytes: input.kept(),
            length: whole,
        })
    }

    /// Packets that an interface lost since it told last. What is not told well is nothing.
    fn lost(&mut self, told: &[u8]) -> u64 {
        const END: u16 = 0;
        const BY_INTERFACE: u16 = 5;
        const BY_SYSTEM: u16 = 7;
        let order = self.order;
        let Some((number, mut options)) = told.split_first_chunk::<4>() else { return 0 };
        // The time of it.
        options = options.get(8..).unwrap_or_default();
        let mut all = 0_u64;
        while let Some((&[a, b, c, d], rest)) = options.split_first_chunk::<4>() {
            let (code, length) = (order.u16([a, b]), usize::from(order.u16([c, d])));
            let Some(value) = rest.get(..length) else { break };
            match (code, <[u8; 8]>::try_from(value)) {
                (END, _) => break,
                (BY_INTERFACE | BY_SYSTEM, Ok(count)) => all = all.saturating_add(order.u64(count)),
                _ => (),
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        let Some(interface) = self.interfaces.get_mut(order.u32(*number) as usize) else {
            return 0;
        };
        let since = all.saturating_sub(interface.lost);
        interface.lost = interface.lost.max(all);
        since
    }

    fn interface(&self, kind: u32, header: [u8; 16]) -> usize {
        let [a, b, c, d, ..] = header;
        match kind {
            OLD_PACKET => usize::from(self.order.u16([a, b])),
            _ => self.order.u32([a, b, c, d]) as usize,
        }
    }

    /// Looks for resolution and offset among the options of an interface.
    fn stamps(&self, mut options: &[u8]) -> Result<Stamps, Fault> {
        const END: u16 = 0;
        const RESOLUTION: u16 = 9;
        const OFFSET: u16 = 14;
        let mut stamps = Stamps::USUAL;
        while let Some((&[a, b, c, d], rest)) = options.split_first_chunk::<4>() {
            let (code, length) = (self.order.u16([a, b]), usize::from(self.order.u16([c, d])));
            let Some(value) = rest.get(..length) else {
                return Err(Fault::Damaged("an option that is longer than its block".to_owned()));
            };
            match (code, value) {
                (END, _) => break,
                (RESOLUTION, &[power]) => stamps.resolution = resolution(power)?,
                (OFFSET, value) => {
                    if let Ok(seconds) = value.try_into() {
                        stamps.offset_seconds = self.order.i64(seconds);
                    }
                }
                _ => (),
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(stamps)
    }
}

fn resolution(power: u8) -> Result<Resolution, Fault> {
    // Finer than 10^-30 s there is no time.
    match (power & 0x80 != 0, u32::from(power & 0x7f)) {
        (false, power @ 0..=30) => Ok(Resolution::Decimal(power)),
        (true, power @ 0..=100) => Ok(Resolution::Binary(power)),
        _ => Err(Fault::Damaged(format!("times of a resolution of {power:#x}"))),
    }
}
