//! The rings of a port: what was received, what waits for being sent, and bursts that go from the one to
//! the other as they are.
//!
//! A frame that is passed on is its buffer: nobody reads its bytes, and what the driver wrote of it in
//! front of them says whether it fits. Guarantee: each buffer has one owner at a time, which is a slot
//! here, a ring of DPDK or a pool.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use whylate_port::frame::{ETHERNET, Tag, TagKind};
use whylate_port::frames::{Amount, BURST};
use whylate_port::passing::hot::write;
use whylate_port::passing::{Carried, Counts, Room};

use super::{
    Buffer, EMPTY, Frame, OneWay, Pass, Port, SLOTS, TAKEN, why_are_plain, why_finish, why_look,
    why_pass, why_receive, why_receive_bare, why_release, why_rounds, why_send, why_show, why_take,
};
use crate::hot::{Passed, Way};
use crate::sharing::Member;

/// Frames that are passed on at once: more of them would drive each other's buffers out of the nearest
/// cache, and their pages out of the table of translations, before they come round again.
pub(crate) const PASSED: usize = BURST / 2;
const SHORTEST: u32 = ETHERNET as u32;

/// The receiving ring of a port, and the frames of its last burst.
#[derive(Debug)]
pub(crate) struct Received {
    buffers: Box<[*mut Buffer; BURST]>,
    frames: Box<[Frame; BURST]>,
    count: usize,
    /// Was it said of the last burst what its buffers have?
    shown: bool,
    /// Frames in several pieces that no buffer holds in one: dropped.
    lost: u64,
    number: u16,
    port: Arc<Port>,
}

// SAFETY: buffers belong to whoever has them, not to a thread.
unsafe impl Send for Received {}

impl Received {
    pub(super) fn new(port: Arc<Port>) -> Self {
        let buffers = Box::new([null_mut(); BURST]);
        let frames = Box::new([EMPTY; BURST]);
        Self { buffers, frames, count: 0, shown: true, lost: 0, number: port.number, port }
    }

    /// Gives the last burst back and takes another one; how many frames it has.
    #[inline]
    pub(crate) fn look(&mut self) -> usize {
        self.release();
        let (buffers, frames) = (self.buffers.as_mut_ptr(), self.frames.as_mut_ptr());
        let lost = &raw mut self.lost;
        // SAFETY: both have room for a burst, there is a place for the sum, and the ring is ours.
        let count = unsafe { why_receive(self.number, buffers, frames, BURST as u16, lost) };
        (self.count, self.shown) = (usize::from(count), true);
        if self.port.blank {
            self.wipe();
        }
        self.count
    }

    /// Looks at a burst that was taken without a look. Frames in pieces that cannot be joined are gone from
    /// it then.
    #[cold]
    fn show(&mut self) {
        if self.shown {
            return;
        }
        let (buffers, frames) = (self.buffers.as_mut_ptr(), self.frames.as_mut_ptr());
        let lost = &raw mut self.lost;
        // SAFETY: that many buffers are ours, both have room for them, and there is a place for the sum.
        let count = unsafe { why_look(buffers, frames, self.count as u16, lost) };
        (self.count, self.shown) = (usize::from(count), true);
    }

    /// Frames that were in several pieces and could not be joined: dropped.
    pub(crate) fn lost_in_pieces(&self) -> u64 {
        self.lost
    }

    /// A null device shows what lies in its buffers, frames that were sent by it among them: whoever
    /// looks at bytes finds none of those.
    #[cold]
    fn wipe(&mut self) {
        for frame in &self.frames[..self.count] {
            // SAFETY: the buffer is ours, and has that many bytes from there on.
            unsafe { frame.data.write_bytes(0, frame.length as usize) };
        }
    }

    /// Gives the last burst back.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.count > 0 {
            // SAFETY: the buffers of the last burst are ours, and not used behind this; places of those
            // that were passed on are null, and are passed over.
            unsafe { why_release(self.buffers.as_mut_ptr(), self.count as u16) };
            self.count = 0;
        }
    }

    #[inline]
    pub(crate) fn frame(&self, at: usize) -> Carried<'_> {
        let frame = if self.shown { self.frames[..self.count][at] } else { self.asked(at) };
        let Frame { data, length, tag, tagged } = frame;
        // SAFETY: the buffer is ours until the next look, and has that many bytes from there on.
        let bytes = unsafe { std::slice::from_raw_parts(data, length as usize) };
        let stripped = (tagged != 0).then_some(Tag { kind: TagKind::Customer, control: tag });
        Carried { bytes, stripped }
    }

    /// What a buffer of a burst has of which it was not said.
    #[cold]
    fn asked(&self, at: usize) -> Frame {
        let (buffer, mut frame) = (self.buffers[..self.count][at], EMPTY);
        // SAFETY: the buffer is ours, and so is the place.
        unsafe { why_show(buffer, &raw mut frame) };
        frame
    }

    /// Gives the last burst back and takes another one of at most `most` frames, of which nothing is said
    /// but how many there are.
    #[inline]
    pub(crate) fn look_bare(&mut self, most: usize) -> usize {
        self.release();
        self.take(most)
    }

    /// Takes a burst of at most `most` frames without a look at them. The last one has to be gone.
    #[inline]
    pub(crate) fn take(&mut self, most: usize) -> usize {
        debug_assert!(self.count == 0, "a burst was passed on or released");
        let most = most.min(BURST) as u16;
        // SAFETY: there is room for a burst, and the ring is ours.
        let count = unsafe { why_receive_bare(self.number, self.buffers.as_mut_ptr(), most) };
        (self.count, self.shown) = (usize::from(count), false);
        self.count
    }

    /// Sends the last burst by `to`; what is not taken at once is released. How many went.
    #[inline]
    pub(crate) fn pass(&mut self, to: &mut Outgoing) -> usize {
        to.keep(&self.port);
        let count = std::mem::take(&mut self.count);
        let buffers = self.buffers.as_mut_ptr();
        // SAFETY: the buffers are ours; those that are taken are not any more.
        let sent = unsafe { why_send(to.number, to.queue, buffers, count as u16) };
        let sent = usize::from(sent).min(count);
        if sent < count {
            // SAFETY: within the array.
            let rest = unsafe { buffers.add(sent) };
            // SAFETY: what was not taken is still ours.
            unsafe { why_release(rest, (count - sent) as u16) };
        }
        sent
    }

    /// Looks once and sends what came by `to`, in one call where all of it fits and nothing waits there;
    /// counts what became of each frame. How many came.
    #[inline]
    pub(crate) fn pass_on(&mut self, to: &mut Outgoing, room: Room, counts: &mut Counts) -> usize {
        self.release();
        to.keep(&self.port);
        if to.waiting() > 0 && !to.is_empty_after_sending() {
            return self.pass_behind(to, room, counts);
        }
        let mut pass = Pass {
            bytes: 0,
            shortest: SHORTEST,
            longest: room.plain() as u32,
            from: self.number,
            to: to.number,
            queue: to.queue,
            most: PASSED as u16,
            sent: 0,
            odd: 0,
        };
        // SAFETY: there is room for a burst, and both rings are ours.
        let count = unsafe { why_pass(&raw mut pass, self.buffers.as_mut_ptr()) };
        let count = usize::from(count).min(PASSED);
        if count == 0 {
            return 0;
        }
        if pass.odd != 0 {
            (self.count, self.shown) = (count, false);
            to.take_over(self, room, counts);
            to.send();
            return count;
        }
        forwarded(counts, count, pass.bytes);
        let sent = usize::from(pass.sent).min(count);
        // What the device did not take waits, as what was copied does.
        to.append(&self.buffers[sent..count]);
        count
    }

    /// The same where frames wait: these go behind them.
    #[cold]
    fn pass_behind(&mut self, to: &mut Outgoing, room: Room, counts: &mut Counts) -> usize {
        let count = self.take(PASSED);
        if count > 0 {
            to.take_over(self, room, counts);
            to.send();
        }
        count
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.release();
        self.port.received.store(false, Ordering::Relaxed);
    }
}

/// A burst all of which leaves.
#[inline]
fn forwarded(counts: &mut Counts, frames: usize, bytes: u64) {
    counts.bursts += 1;
    counts.received += frames as u64;
    counts.received_bytes += bytes;
    counts.forwarded += frames as u64;
    counts.forwarded_bytes += bytes;
}

/// A sending ring of a port: frames that wait for it, then empty buffers, around a circle of slots.
#[derive(Debug)]
pub(crate) struct Outgoing {
    buffers: Box<[*mut Buffer; SLOTS]>,
    frames: Box<[Frame; SLOTS]>,
    first: usize,
    put: usize,
    /// The last of those that wait, whose buffers do not know their length yet.
    unset: usize,
    empty: usize,
    queue: u16,
    number: u16,
    /// The port that passed frames on to this one last, with whom it shares.
    keeps: Option<Member>,
    port: Arc<Port>,
}

// SAFETY: as of what was received.
unsafe impl Send for Outgoing {}

impl Outgoing {
    pub(super) fn new(port: Arc<Port>, queue: u16) -> Self {
        Self {
            buffers: Box::new([null_mut(); SLOTS]),
            frames: Box::new([EMPTY; SLOTS]),
            first: 0,
            put: 0,
            unset: 0,
            empty: 0,
            queue,
            number: port.number,
            keeps: None,
            port,
        }
    }

    /// Frames that wait.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.put
    }

    /// Room for a frame; none where all slots wait, the pool is empty, or it is too long.
    #[inline]
    pub(crate) fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.empty == 0 && !self.refill() {
            return None;
        }
        let slot = (self.first + self.put) % SLOTS;
        let frame = &mut self.frames[slot];
        if length > frame.length as usize {
            return None;
        }
        frame.length = length as u32;
        self.put += 1;
        self.unset += 1;
        self.empty -= 1;
        // SAFETY: the buffer is ours, and has room for that many bytes.
        Some(unsafe { std::slice::from_raw_parts_mut(frame.data, length) })
    }

    /// Takes empty buffers, where slots are free.
    fn refill(&mut self) -> bool {
        let from = (self.first + self.put) % SLOTS;
        let count = TAKEN.min(SLOTS - self.put).min(SLOTS - from);
        if count == 0 {
            return false;
        }
        let buffers = self.buffers[from..from + count].as_mut_ptr();
        let frames = self.frames[from..from + count].as_mut_ptr();
        // SAFETY: both have room for that many, and hold no buffer of ours there.
        let taken = unsafe { why_take(self.port.pool.0.as_ptr(), buffers, frames, count as u16) };
        if taken == 0 {
            self.empty = count;
        }
        taken == 0
    }

    /// Sends what waits, as far as the device takes it; how many went.
    #[inline]
    pub(crate) fn send(&mut self) -> usize {
        self.finish();
        let mut sent = 0;
        while self.put > 0 {
            let count = self.put.min(SLOTS - self.first);
            let buffers = self.buffers[self.first..self.first + count].as_mut_ptr();
            // SAFETY: that many buffers are ours; those that are taken are not any more.
            let taken = unsafe { why_send(self.number, self.queue, buffers, count as u16) };
            let taken = usize::from(taken).min(count);
            self.first = (self.first + taken) % SLOTS;
            self.put -= taken;
            sent += taken;
            if taken < count {
                break;
            }
        }
        sent
    }

    #[cold]
    fn is_empty_after_sending(&mut self) -> bool {
        self.send();
        self.put == 0
    }

    /// Tells buffers that were written the length of their frames.
    #[inline]
    fn finish(&mut self) {
        while self.unset > 0 {
            let from = (self.first + self.put - self.unset) % SLOTS;
            let count = self.unset.min(SLOTS - from);
            let buffers = self.buffers[from..from + count].as_mut_ptr();
            let frames = self.frames[from..from + count].as_ptr();
            // SAFETY: that many buffers are ours, and have room for so long frames.
            unsafe { why_finish(buffers, frames, count as u16) };
            self.unset -= count;
        }
    }

    /// Takes the buffers of the last burst of `from` over, behind those that wait, and counts what became
    /// of each frame; those that may not leave are released. Nothing is sent yet. Says which of them are
    /// to leave: bit 0 is the first.
    #[inline]
    pub(crate) fn take_over(
        &mut self,
        from: &mut Received,
        room: Room,
        counts: &mut Counts,
    ) -> u64 {
        self.keep(&from.port);
        let (frames, mut bytes) = (from.count, 0);
        let (buffers, longest) = (from.buffers.as_ptr(), room.plain() as u32);
        // SAFETY: that many buffers of a burst are there, and so is a place for the sum.
        let plain =
            unsafe { why_are_plain(buffers, frames as u16, SHORTEST, longest, &raw mut bytes) };
        if plain == 0 || frames > SLOTS - self.put {
            return self.take_over_singly(from, room, counts);
        }
        forwarded(counts, frames, bytes);
        from.count = 0;
        self.append(&from.buffers[..frames]);
        u64::MAX.checked_shr(u64::BITS - frames as u32).unwrap_or(0)
    }

    /// The same frame by frame: some of them are long, short, tagged, or more than there are slots.
    #[cold]
    fn take_over_singly(&mut self, from: &mut Received, room: Room, counts: &mut Counts) -> u64 {
        from.show();
        if from.count == 0 {
            return 0;
        }
        let mut leaving = 0;
        counts.bursts += 1;
        counts.received += from.count as u64;
        for at in 0..from.count {
            let frame = from.frame(at);
            let (length, tagged) = (frame.length(), frame.stripped.is_some());
            counts.received_bytes += length as u64;
            if frame.bytes.len() < ETHERNET {
                counts.runts += 1;
                continue;
            }
            if !room.holds(length, frame.bytes, frame.stripped) {
                counts.too_long += 1;
                continue;
            }
            let left = if tagged {
                // The tag goes back to its place, and the frame into a buffer with room for it.
                let place = self.put(length);
                place.map(|place| write(place, frame.bytes, frame.stripped)).is_some()
            } else {
                self.push(from.buffers[at])
            };
            if !left {
                counts.ring_full += 1;
                continue;
            }
            if !tagged {
                from.buffers[at] = null_mut();
            }
            counts.forwarded += 1;
            counts.forwarded_bytes += length as u64;
            leaving |= 1_u64.wrapping_shl(at as u32);
        }
        from.release();
        leaving
    }

    /// Puts buffers with frames behind those that wait; there have to be slots for them.
    #[inline]
    fn append(&mut self, buffers: &[*mut Buffer]) {
        for buffer in buffers {
            let put = self.push(*buffer);
            debug_assert!(put, "there is a slot for each of them");
        }
    }

    /// Puts a buffer with its frame behind those that wait; false where there is no slot.
    #[inline]
    fn push(&mut self, buffer: *mut Buffer) -> bool {
        if self.put == SLOTS {
            return false;
        }
        self.finish();
        self.give_empty_back();
        self.buffers[(self.first + self.put) % SLOTS] = buffer;
        self.put += 1;
        true
    }

    /// Gives the empty buffers back.
    #[inline]
    fn give_empty_back(&mut self) {
        if self.empty > 0 {
            self.release(self.put, self.empty);
            self.empty = 0;
        }
    }

    /// Makes one frame of the last two that wait.
    #[cfg(test)]
    pub(crate) fn chain_last(&mut self) {
        self.finish();
        self.give_empty_back();
        let slot = |behind: usize| (self.first + self.put - behind) % SLOTS;
        let (head, tail) = (self.buffers[slot(2)], self.buffers[slot(1)]);
        // SAFETY: both are ours, and the second one is a part of the first from here on.
        let refused = unsafe { super::why_chain(head, tail) };
        assert_eq!(refused, 0, "two pieces are no more than a frame can have");
        self.put -= 1;
    }

    /// What waits, in frames and bytes.
    #[cold]
    pub(crate) fn amount(&self) -> Amount {
        let known = self.put - self.unset;
        let length = |behind: usize| {
            let slot = (self.first + behind) % SLOTS;
            let mut frame = self.frames[slot];
            if behind < known {
                // SAFETY: the buffer is ours, and so is the place.
                unsafe { why_show(self.buffers[slot], &raw mut frame) };
            }
            frame.length as usize
        };
        (0..self.put).map(length).collect()
    }

    /// Gives up what waits, and all empty buffers; what the frames were.
    pub(crate) fn give_up(&mut self) -> Amount {
        let frames = self.amount();
        self.release(0, self.put + self.empty);
        (self.put, self.unset, self.empty) = (0, 0, 0);
        frames
    }

    /// Releases so many buffers from the one on that is `from` slots behind the first.
    #[cold]
    fn release(&mut self, from: usize, count: usize) {
        for at in from..from + count {
            let slot = (self.first + at) % SLOTS;
            // SAFETY: the buffer is ours, and not used behind this.
            unsafe { why_release(&raw mut self.buffers[slot], 1) };
        }
    }

    /// From now on buffers of this port may lie in our ring.
    #[inline]
    fn keep(&mut self, from: &Port) {
        if self.keeps != Some(from.member) {
            self.port.keep(from);
            self.keeps = Some(from.member);
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.give_up();
        if let Some(mine) = self.port.sending.get(usize::from(self.queue)) {
            mine.store(false, Ordering::Relaxed);
        }
    }
}

/// Passes bursts of at most `most` frames on by both ways in turn, so many times; what a device does not
/// take is released.
pub(crate) fn rounds(ways: &mut [Way<'_>; 2], most: usize, rounds: u32, passed: &mut [Passed; 2]) {
    let mut both = ways.each_mut().map(|way| {
        debug_assert!(way.from.count == 0, "a burst was passed on or released");
        way.to.keep(&way.from.port);
        OneWay {
            received: 0,
            sent: 0,
            bursts: 0,
            empty: 0,
            from: way.from.number,
            to: way.to.number,
            queue: way.to.queue,
            most: most.min(BURST) as u16,
        }
    });
    // SAFETY: there are two ways, no burst is longer than the room there, and all rings are ours.
    unsafe { why_rounds(both.as_mut_ptr(), rounds) };
    for (passed, way) in passed.iter_mut().zip(&both) {
        passed.received += way.received;
        passed.sent += way.sent;
        passed.bursts += way.bursts;
        passed.empty += way.empty;
    }
}
