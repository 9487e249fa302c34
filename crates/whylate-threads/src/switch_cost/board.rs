//! The board that runners write onto: memory that threads and processes have in common.
//!
//! The crew's side writes what a trial is before it opens the gate, the runners' side what came of
//! it. Each word has one writer at a time. Words to wait for lie a cache line apart.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use whylate_model::{CpuId, Pid, Ticks, TicksDelta};
use whylate_sys::SysError;
use whylate_sys::futex;
use whylate_sys::process;
use whylate_sys::shared_memory::SharedMemory;

use super::hot::Terms;
use super::runner::{Class, Seating};

/// Runners of a board at most.
pub const MOST_RUNNERS: u32 = 32;
/// What tells a board from other memory, with the version of its layout.
const MAGIC: u64 = 0x7768_796c_6174_6502;

/// Words to wait for: a cache line apart.
const LINE: usize = 16;
const GATE: usize = 0;
const QUIT: usize = LINE;
const STOP: usize = 2 * LINE;
const TURN: usize = 3 * LINE;

/// Words of the head, and of a runner's row.
const HEAD: usize = 16;
const ROW: usize = 16;
/// Words of a stretch: its first reading and its last.
const STRETCH: usize = 2;

/// What is in the head.
#[derive(Debug, Clone, Copy)]
enum Head {
    Magic,
    Runners,
    Room,
    Cpu,
    Class,
    How,
    Active,
    Quantum,
    Threshold,
    Look,
    Begin,
    End,
    Crew,
}

/// What is in the row of a runner.
#[derive(Debug, Clone, Copy)]
enum Row {
    State,
    Tid,
    Count,
    Work,
    Voluntary,
    Involuntary,
    Ended,
}

/// How far a runner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    Absent = 0,
    Ready = 1,
    Refused = 2,
}

/// How runners give the CPU up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum How {
    /// Not at all: the kernel takes it.
    Never = 0,
    /// By `sched_yield`.
    Yield = 1,
    /// By waking the next and waiting.
    HandOff = 2,
}

/// Why a trial was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stop {
    No = 0,
    Told = 1,
    Full = 2,
}

/// The board of one crew.
#[derive(Debug)]
pub struct Board {
    memory: SharedMemory,
    runners: u32,
    room: usize,
}

impl Board {
    /// A board for so many runners with room for so many stretches each.
    pub fn new(runners: u32, room: usize, seating: Seating) -> Result<Self, SysError> {
        let runners = runners.clamp(1, MOST_RUNNERS);
        let memory = SharedMemory::new(words(runners, room))?;
        let board = Self { memory, runners, room };
        board.set(Head::Runners, u64::from(runners));
        board.set(Head::Room, room as u64);
        board.set(Head::Cpu, u64::from(seating.cpu.0));
        board.set(Head::Class, number_of(seating.class));
        board.set(Head::Crew, process::pid().0 as u64);
        board.set(Head::Magic, MAGIC);
        Ok(board)
    }

    /// The board that another process made. Nothing in it is trusted.
    #[must_use]
    pub fn inherited(memory: SharedMemory) -> Option<Self> {
        let head = |of: Head| memory.data().get(of as usize).map(|word| word.load(Acquire));
        let runners = head(Head::Runners)?;
        let room = usize::try_from(head(Head::Room)?).ok()?;
        let sound = head(Head::Magic)? == MAGIC && (1..=u64::from(MOST_RUNNERS)).contains(&runners);
        let fits = room <= memory.data().len()
            && sound
            && words(runners as u32, room) <= memory.data().len();
        fits.then_some(Self { runners: runners as u32, room, memory })
    }

    /// Where and how its runners run.
    #[must_use]
    pub fn seating(&self) -> Seating {
        Seating { cpu: CpuId(self.get(Head::Cpu) as u32), class: class_of(self.get(Head::Class)) }
    }

    /// The process that made it, and that its runners serve.
    #[must_use]
    pub(super) fn crew(&self) -> Pid {
        Pid(self.get(Head::Crew) as i32)
    }

    /// When a runner first had no room for another stretch; none where all have.
    #[must_use]
    pub fn filled_at(&self) -> Option<Ticks> {
        let last = |runner| {
            let stretches = self.stretches(runner);
            stretches.last().filter(|_| stretches.len() >= self.room).map(|(_, last)| *last)
        };
        (0..self.runners).filter_map(last).min()
    }

    /// How many runners it has.
    #[must_use]
    pub fn runners(&self) -> u32 {
        self.runners
    }

    /// The thread of a runner; none before it is ready.
    #[must_use]
    pub fn tid(&self, runner: u32) -> Option<Pid> {
        let tid = self.row(runner, Row::Tid).load(Acquire) as i32;
        (tid > 0).then_some(Pid(tid))
    }

    /// The stretches of a runner in the last trial, in the order of time.
    #[must_use]
    pub fn stretches(&self, runner: u32) -> Vec<(Ticks, Ticks)> {
        let count = self.row(runner, Row::Count).load(Acquire) as usize;
        let words = &self.log(runner)[..count.min(self.room) * STRETCH];
        let read = |word: &AtomicU64| Ticks(word.load(Relaxed));
        words.chunks_exact(STRETCH).map(|pair| (read(&pair[0]), read(&pair[1]))).collect()
    }

    /// Iterations of a runner's work in the last trial.
    #[must_use]
    pub fn work(&self, runner: u32) -> u64 {
        self.row(runner, Row::Work).load(Acquire)
    }

    /// How often the kernel switched the runner out in the last trial: `(voluntary, involuntary)`.
    #[must_use]
    pub fn switches(&self, runner: u32) -> (u64, u64) {
        let read = |of| self.row(runner, of).load(Acquire);
        (read(Row::Voluntary), read(Row::Involuntary))
    }

    pub(super) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Writes a trial and opens its gate.
    pub(super) fn open_gate(&self, how: How, active: u64, terms: &Terms) -> u32 {
        for runner in 0..self.runners {
            for of in [Row::Count, Row::Work, Row::Voluntary, Row::Involuntary] {
                self.row(runner, of).store(0, Relaxed);
            }
            self.turn(runner).store(0, Relaxed);
        }
        self.control(STOP).store(Stop::No as u32, Relaxed);
        self.set(Head::How, how as u64);
        self.set(Head::Active, active);
        self.set(Head::Quantum, terms.quantum.0);
        self.set(Head::Threshold, terms.threshold.0);
        self.set(Head::Look, terms.look.0);
        self.set(Head::Begin, terms.begin.0);
        self.set(Head::End, terms.end.0);
        if let Some(first) = (0..self.runners).find(|runner| active >> runner & 1 == 1) {
            self.turn(first).store(1, Release);
        }
        let trial = self.control(GATE).load(Relaxed).wrapping_add(1);
        self.control(GATE).store(trial, Release);
        self.wake(GATE);
        trial
    }

    /// The trial that its runners are told of.
    pub(super) fn trial(&self) -> (How, u64, Terms) {
        let how = match self.get(Head::How) {
            1 => How::Yield,
            2 => How::HandOff,
            _ => How::Never,
        };
        let ticks = |of| TicksDelta(self.get(of));
        let terms = Terms {
            quantum: ticks(Head::Quantum),
            threshold: ticks(Head::Threshold),
            look: ticks(Head::Look),
            begin: Ticks(self.get(Head::Begin)),
            end: Ticks(self.get(Head::End)),
        };
        (how, self.get(Head::Active), terms)
    }

    /// Waits for a trial after `seen`; none when the crew is dismissed.
    pub(super) fn wait_at_gate(&self, seen: u32) -> Result<Option<u32>, SysError> {
        loop {
            if self.control(QUIT).load(Acquire) != 0 {
                return Ok(None);
            }
            let gate = self.control(GATE).load(Acquire);
            if gate != seen {
                return Ok(Some(gate));
            }
            futex::wait_shared(self.control(GATE), seen)?;
        }
    }

    /// Dismisses all runners; those that are in a trial end it.
    pub(super) fn dismiss(&self) {
        self.control(QUIT).store(1, Release);
        self.stop(Stop::Told);
        // So that no runner that is about to sleep at the gate finds it as it was.
        self.control(GATE).fetch_add(1, Release);
        self.wake(GATE);
    }

    /// Ends the trial.
    pub(super) fn stop(&self, why: Stop) {
        let _ = self.control(STOP).compare_exchange(Stop::No as u32, why as u32, Release, Relaxed);
        for runner in 0..self.runners {
            self.turn(runner).store(1, Release);
            self.wake(TURN + LINE * runner as usize);
        }
    }

    /// Was the trial told to end?
    pub(super) fn stop_word(&self) -> &AtomicU32 {
        self.control(STOP)
    }

    pub(super) fn is_full(&self) -> bool {
        self.control(STOP).load(Acquire) == Stop::Full as u32
    }

    /// Waits until it is this runner's turn, and takes it.
    #[inline]
    pub(super) fn take_turn(&self, runner: u32) -> Result<(), SysError> {
        let turn = self.turn(runner);
        while turn.swap(0, Acquire) == 0 {
            futex::wait_shared(turn, 0)?;
        }
        Ok(())
    }

    /// Gives the turn to a runner.
    #[inline]
    pub(super) fn give_turn(&self, runner: u32) -> Result<(), SysError> {
        let turn = self.turn(runner);
        turn.store(1, Release);
        futex::wake_shared(turn, 1).map(|_| ())
    }

    /// The runner says that it is there.
    pub(super) fn ready(&self, runner: u32, tid: Pid) {
        self.row(runner, Row::Tid).store(tid.0 as u64, Relaxed);
        self.row(runner, Row::State).store(State::Ready as u64, Release);
    }

    /// The runner says why it cannot be there. Its log takes the words.
    pub(super) fn refuse(&self, runner: u32, why: &str) {
        let log = self.log(runner);
        let bytes = why.as_bytes();
        let most = log.len().saturating_sub(1) * size_of::<u64>();
        let bytes = &bytes[..bytes.len().min(most)];
        if let Some(length) = log.first() {
            length.store(bytes.len() as u64, Relaxed);
        }
        for (word, chunk) in log.iter().skip(1).zip(bytes.chunks(size_of::<u64>())) {
            let mut full = [0; size_of::<u64>()];
            full[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(full), Relaxed);
        }
        self.row(runner, Row::State).store(State::Refused as u64, Release);
    }

    /// How far a runner is, and what it said where it refused.
    pub(super) fn state(&self, runner: u32) -> (State, String) {
        match self.row(runner, Row::State).load(Acquire) {
            1 => (State::Ready, String::new()),
            2 => {
                let log = self.log(runner);
                let length = log.first().map_or(0, |word| word.load(Relaxed)) as usize;
                let words = log.iter().skip(1).flat_map(|word| word.load(Relaxed).to_le_bytes());
                let bytes: Vec<u8> = words.take(length).collect();
                (State::Refused, String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => (State::Absent, String::new()),
        }
    }

    /// The runner has ended a trial.
    pub(super) fn end(&self, runner: u32, trial: u32, did: &Did) {
        self.row(runner, Row::Work).store(did.work, Relaxed);
        self.row(runner, Row::Voluntary).store(did.voluntary, Relaxed);
        self.row(runner, Row::Involuntary).store(did.involuntary, Relaxed);
        self.row(runner, Row::Ended).store(u64::from(trial), Release);
    }

    pub(super) fn has_ended(&self, runner: u32, trial: u32) -> bool {
        self.row(runner, Row::Ended).load(Acquire) == u64::from(trial)
    }

    /// Where a runner writes its stretches, and their count.
    pub(super) fn pages(&self, runner: u32) -> (&[AtomicU64], &AtomicU64) {
        (self.log(runner), self.row(runner, Row::Count))
    }

    fn wake(&self, word: usize) {
        // A wake that fails is that of a word which nobody can wait for either.
        let _ = futex::wake_shared(self.control(word), u32::MAX);
    }

    fn control(&self, word: usize) -> &AtomicU32 {
        &self.memory.control()[word]
    }

    fn turn(&self, runner: u32) -> &AtomicU32 {
        self.control(TURN + LINE * runner as usize)
    }

    fn get(&self, of: Head) -> u64 {
        self.memory.data()[of as usize].load(Acquire)
    }

    fn set(&self, of: Head, value: u64) {
        self.memory.data()[of as usize].store(value, Release);
    }

    fn row(&self, runner: u32, of: Row) -> &AtomicU64 {
        &self.memory.data()[HEAD + ROW * runner as usize + of as usize]
    }

    fn log(&self, runner: u32) -> &[AtomicU64] {
        let begin = HEAD + ROW * self.runners as usize + runner as usize * self.room * STRETCH;
        &self.memory.data()[begin..begin + self.room * STRETCH]
    }
}

/// What a runner did in a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Did {
    pub(super) work: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

/// Numbers of real-time priorities begin behind those of the other classes.
const FIFO: u64 = 2;

fn number_of(class: Class) -> u64 {
    match class {
        Class::Ordinary => 0,
        Class::Batch => 1,
        Class::Fifo(priority) => FIFO + u64::from(priority),
    }
}

fn class_of(number: u64) -> Class {
    match number.checked_sub(FIFO).map(u8::try_from) {
        Some(Ok(priority)) => Class::Fifo(priority),
        _ if number == 1 => Class::Batch,
        _ => Class::Ordinary,
    }
}

fn words(runners: u32, room: usize) -> usize {
    let log = room.saturating_mul(STRETCH).saturating_mul(runners as usize);
    log.saturating_add(HEAD + ROW * runners as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATING: Seating = Seating { cpu: CpuId(3), class: Class::Fifo(7) };

    fn again(board: &Board) -> Option<Board> {
        let file = board.memory().descriptor().try_clone_to_owned().unwrap();
        Board::inherited(SharedMemory::inherited(file).unwrap())
    }

    #[test]
    fn another_process_finds_the_same_board() {
        let board = Board::new(4, 100, SEATING).unwrap();
        let other = again(&board).unwrap();
        assert_eq!((other.runners(), other.seating()), (4, SEATING));
        assert_eq!(other.crew(), process::pid());
        let (log, count) = other.pages(3);
        for (at, word) in [5, 9, 12, 40].into_iter().enumerate() {
            log[at].store(word, Relaxed);
        }
        count.store(2, Release);
        assert_eq!(board.stretches(3), [(Ticks(5), Ticks(9)), (Ticks(12), Ticks(40))]);
        assert!(board.stretches(2).is_empty());
    }

    #[test]
    fn a_board_that_lies_about_its_size_is_none() {
        let board = Board::new(2, 10, SEATING).unwrap();
        for (of, value) in [
            (Head::Room, 11),
            (Head::Room, u64::MAX),
            (Head::Runners, 0),
            (Head::Runners, 33),
            (Head::Magic, 1),
        ] {
            let before = board.get(of);
            board.set(of, value);
            assert!(again(&board).is_none(), "{of:?} {value}");
            board.set(of, before);
        }
        assert!(again(&board).is_some());
        // A count beyond the room is cut to it.
        board.row(0, Row::Count).store(u64::MAX, Relaxed);
        assert_eq!(board.stretches(0).len(), 10);
    }

    #[test]
    fn the_first_log_that_is_full_says_when_the_trial_ended() {
        let board = Board::new(3, 2, SEATING).unwrap();
        assert_eq!(board.filled_at(), None);
        for (runner, begin, count) in [(0, 500, 2), (1, 100, 1), (2, 300, 2)] {
            let (log, written) = board.pages(runner);
            for (at, word) in log.iter().enumerate() {
                word.store(begin + at as u64, Relaxed);
            }
            written.store(count, Release);
        }
        assert_eq!(board.filled_at(), Some(Ticks(303)), "1 has room");
    }

    #[test]
    fn classes_are_numbers_and_back() {
        for class in [Class::Ordinary, Class::Batch, Class::Fifo(1), Class::Fifo(99)] {
            assert_eq!(class_of(number_of(class)), class);
        }
        assert_eq!(class_of(u64::MAX), Class::Ordinary);
    }

    #[test]
    fn a_refusal_is_told_word_for_word_as_far_as_there_is_room() {
        let board = Board::new(2, 20, SEATING).unwrap();
        board.refuse(1, "cannot give this thread SCHED_FIFO 10");
        assert_eq!(board.state(1).1, "cannot give this thread SCHED_FIFO 10");
        assert_eq!(board.state(0), (State::Absent, String::new()));
        board.refuse(0, &"x".repeat(10_000));
        assert_eq!(board.state(0).1.len(), 39 * 8);
    }
}
