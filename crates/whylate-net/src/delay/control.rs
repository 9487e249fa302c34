//! Orders to a delay line that runs: one line each, by a Unix socket, answered by one line.
//!
//! A thread of its own parses and answers, and hands over what is well formed; the line itself looks at
//! [`Inbox`] now and then and says whether it can keep what was asked for. The socket's file is its owner's alone and goes with [`Control`]. Bounded: so
//! many connections, each closed when it says nothing for a while or more than a line holds.

mod error;
mod path;
mod words;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_model::Nanos;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::poll::PollSet;

use super::error::DelayError;
use super::law::{Law, LawError};
use super::{Order, Orders};
use words::{Change, Said};

pub use error::ControlError;

/// Connections at a time; another is closed at once.
const MOST_CONNECTIONS: usize = 8;
/// A connection that says nothing for so long is closed.
const IDLE: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Time between two looks whether it is to end.
const LOOK: Nanos = Nanos(50_000_000);
/// Orders that wait for the line at most.
const MOST_WAITING: usize = 64;
/// Mark of the listener; connections have their places after it.
const LISTENER: u64 = 0;

/// How long the line may take to say whether it keeps a law.
const PATIENCE: Duration = Duration::from_millis(500);

/// What `show` tells: one line, replaced by whoever counts.
pub type Shown = Arc<Mutex<String>>;

/// What becomes of a law by this line, as [`Control`] reads it: none where it changes no law.
///
/// # Errors
/// What is wrong with the line or with the law that it asks for, safe to be shown.
pub fn understood(line: &str, law: &Law) -> Result<Option<Law>, String> {
    match words::read(line)? {
        Said::Show | Said::Stop => Ok(None),
        Said::Set { change, .. } => {
            changed(&change, law).map(Some).map_err(|error| error.to_string())
        }
    }
}

/// The law with this part of it changed, where it can be kept.
fn changed(change: &Change, law: &Law) -> Result<Law, LawError> {
    let law = change.of(law);
    law.check().map(|()| law)
}

/// Takes orders until it is dropped.
#[derive(Debug)]
pub struct Control {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Where the line finds its orders, and leaves its answers.
#[derive(Debug)]
pub struct Inbox(Option<Ends>);

/// The line's ends of the ways there and back.
#[derive(Debug)]
struct Ends {
    orders: Receiver<Order>,
    answers: SyncSender<Result<Nanos, DelayError>>,
}

impl Inbox {
    /// One that nothing ever comes to.
    #[must_use]
    pub fn empty() -> Self {
        Self(None)
    }
}

impl Orders for Inbox {
    #[inline]
    fn next(&mut self) -> Option<Order> {
        self.0.as_ref()?.orders.try_recv().ok()
    }

    fn answer(&mut self, of: Result<Nanos, DelayError>) {
        if let Some(ends) = &self.0 {
            // Whoever asked may not wait any more.
            let _ = ends.answers.try_send(of);
        }
    }
}

impl Control {
    /// Listens at `path` for a line whose directions have these laws.
    ///
    /// # Errors
    /// The socket cannot be made, or somebody listens there.
    pub fn listen(
        path: &Path,
        laws: [Law; 2],
        shown: Shown,
    ) -> Result<(Self, Inbox), ControlError> {
        let (listener, bound) = path::listening(path)?;
        let (orders, taken) = sync_channel(MOST_WAITING);
        let (answers, told) = sync_channel(MOST_WAITING);
        let over = Arc::new(AtomicBool::new(false));
        let desk = Desk { laws, shown, orders, answers: told };
        let inbox = Inbox(Some(Ends { orders: taken, answers }));
        let until = Arc::clone(&over);
        let serve = move || {
            serve(&listener, desk, &until);
            drop(bound);
        };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(serve);
        let failed = |source| ControlError::Socket { path: path.to_owned(), source };
        let thread = Some(thread.map_err(failed)?);
        Ok((Self { over, thread }, inbox))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The file is gone when it has ended.
            let _ = thread.join();
        }
    }
}

/// Who answers.
struct Desk {
    laws: [Law; 2],
    shown: Shown,
    orders: SyncSender<Order>,
    answers: Receiver<Result<Nanos, DelayError>>,
}

impl Desk {
    /// Does what the line says; the answer.
    fn answer(&mut self, line: &str) -> String {
        match words::read(line) {
            Err(why) => format!("refused: {why}"),
            Ok(Said::Show) => self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Ok(Said::Stop) => match self.hand_over(Order::Stop) {
                Ok(()) => "stopping".to_owned(),
                Err(why) => format!("refused: {why}"),
            },
            Ok(Said::Set { direction, change }) => self.set(direction, &change),
        }
    }

    fn set(&mut self, direction: Option<usize>, change: &Change) -> String {
        let wanted = direction.map_or(vec![0, 1], |direction| vec![direction]);
        let kept = |at: &usize| changed(change, &self.laws[*at]).map(|law| (*at, law));
        let laws: Result<Vec<(usize, Law)>, LawError> = wanted.iter().map(kept).collect();
        let laws = match laws {
            Ok(laws) => laws,
            Err(error) => return format!("refused: {error}"),
        };
        let mut told = Vec::new();
        for (at, law) in laws {
            let way = if at == 0 { "there" } else { "back" };
            let order = Order::Set { direction: Some(at), law: law.clone() };
            match self.kept(order) {
                Err(why) => return format!("refused {way}: {why}"),
                Ok(at) => told.push(format!("{way} {law}, {at} after it began")),
            }
            self.laws[at] = law;
        }
        format!("set: {}", told.join("; "))
    }

    /// Hands a setting over, and waits for what the line says: when it began to hold.
    fn kept(&self, order: Order) -> Result<Nanos, String> {
        // Answers that came too late are answers to something else.
        while self.answers.try_recv().is_ok() {}
        self.hand_over(order)?;
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("the line has not answered: it may take it later".to_owned()),
        }
    }

    fn hand_over(&self, order: Order) -> Result<(), String> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => "the line takes no orders: is it still running?".to_owned(),
            TrySendError::Disconnected(_) => "the line has ended".to_owned(),
        })
    }
}

/// Somebody who gives orders.
struct Connection {
    stream: UnixStream,
    /// What was said of a line that is not whole.
    said: Vec<u8>,
    heard_ns: u64,
}

/// Whether a connection stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    Yes,
    No,
}

fn serve(listener: &UnixListener, mut desk: Desk, over: &AtomicBool) {
    let mut connections: Vec<Option<Connection>> = Vec::new();
    connections.resize_with(MOST_CONNECTIONS, || None);
    let mut set = PollSet::with_room(MOST_CONNECTIONS + 1);
    set.watch(listener, LISTENER);
    let mut marks = [0; MOST_CONNECTIONS + 1];
    while !over.load(Ordering::Relaxed) {
        let Ok(ready) = set.wait_ready(LOOK.0, &mut marks) else { return };
        let now = clock_ns(Clock::Monotonic);
        for mark in &marks[..ready] {
            if *mark == LISTENER {
                take(listener, &mut connections, &mut set, now);
                continue;
            }
            let place = &mut connections[*mark as usize - 1];
            let Some(connection) = place else { continue };
            if connection.hear(&mut desk, now) == Stays::No {
                set.forget(*mark);
                *place = None;
            }
        }
        for (mark, place) in (1..).zip(&mut connections) {
            if place.as_ref().is_some_and(|one| now.saturating_sub(one.heard_ns) > IDLE.0) {
                set.forget(mark);
                *place = None;
            }
        }
    }
}

/// Takes one more connection, where there is a place for it.
fn take(
    listener: &UnixListener,
    connections: &mut [Option<Connection>],
    set: &mut PollSet,
    now: u64,
) {
    let Ok((stream, _)) = listener.accept() else { return };
    let Some((mark, place)) = (1..).zip(connections).find(|(_, place)| place.is_none()) else {
        return;
    };
    // Answers are short: whoever does not take them is not waited for.
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    set.watch(&stream, mark);
    *place = Some(Connection { stream, said: Vec::new(), heard_ns: now });
}

impl Connection {
    /// Takes what was said, and answers each whole line.
    fn hear(&mut self, desk: &mut Desk, now: u64) -> Stays {
        self.heard_ns = now;
        let mut piece = [0; words::MOST_BYTES];
        let length = match self.stream.read(&mut piece) {
            Ok(0) => return Stays::No,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Stays::Yes,
            Err(_) => return Stays::No,
        };
        self.said.extend_from_slice(&piece[..length]);
        while let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=end).collect();
            if self.tell(&desk.answer(&String::from_utf8_lossy(&line))) == Stays::No {
                return Stays::No;
            }
        }
        if self.said.len() > words::MOST_BYTES {
            let most = words::MOST_BYTES;
            self.tell(&format!("refused: an order has {most} bytes at most"));
            return Stays::No;
        }
        Stays::Yes
    }

    fn tell(&mut self, answer: &str) -> Stays {
        let line = format!("{answer}\n");
        match self.stream.write_all(line.as_bytes()) {
            Ok(()) => Stays::Yes,
            Err(_) => Stays::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn listen(path: &Path) -> (Control, Inbox, Shown) {
        let shown = Shown::default();
        let laws = [Law::constant(Nanos(10)), Law::constant(Nanos(20))];
        let (control, inbox) = Control::listen(path, laws, Arc::clone(&shown)).unwrap();
        (control, inbox, shown)
    }

    /// Takes orders as a line does, until it is told to stop: what it took. It has no room for more than a
    /// millisecond.
    fn line(mut inbox: Inbox) -> JoinHandle<Vec<Order>> {
        std::thread::spawn(move || {
            let mut taken = Vec::new();
            loop {
                let Some(order) = inbox.next() else {
                    std::thread::yield_now();
                    continue;
                };
                taken.push(order.clone());
                match order {
                    Order::Stop => return taken,
                    Order::Set { direction, law } => inbox.answer(match law.longest() {
                        long if long > Nanos(1_000_000) => {
                            Err(DelayError::NoDirection(direction.unwrap_or(7)))
                        }
                        _ => Ok(Nanos(7_000)),
                    }),
                }
            }
        })
    }

    #[test]
    fn a_line_is_understood_as_it_is_followed() {
        let law = Law::constant(Nanos(10));
        let longer = Law::constant(Nanos(20_000));
        assert_eq!(understood("delay back 20us", &law), Ok(Some(longer)));
        assert_eq!(understood("show", &law), Ok(None));
        assert!(understood("rate 0.0001pps", &law).unwrap_err().contains("is none"));
        assert!(understood("dance", &law).unwrap_err().contains("is no order"));
    }

    fn ask(stream: &mut UnixStream, line: &str) -> String {
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&*stream).read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    #[test]
    fn orders_are_answered_and_handed_over_and_bad_ones_are_refused_with_the_reason() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control");
        let (control, inbox, shown) = listen(&path);
        let line = line(inbox);
        "{\"received\":7}".clone_into(&mut shown.lock().unwrap());
        let mut stream = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut stream, "show"), "{\"received\":7}");
        let after = |law: &str| format!("{law}, {} after it began", Nanos(7_000));
        let set = |laws: &[&str]| {
            format!("set: {}", laws.iter().map(|law| after(law)).collect::<Vec<_>>().join("; "))
        };
        assert_eq!(ask(&mut stream, "delay back 20us"), set(&["back 20us"]));
        let both = ["there 10ns, loss 50 %", "back 20us, loss 50 %"];
        assert_eq!(ask(&mut stream, "loss 0.5"), set(&both));
        let refused = ask(&mut stream, "delay 2ms");
        assert!(refused.starts_with("refused there: "), "{refused}");
        assert!(ask(&mut stream, "delay soon").contains("refused: `soon` is not a delay"));
        // What the line refused is not in the law that the next order changes.
        assert_eq!(ask(&mut stream, "loss there 0"), set(&["there 10ns"]));
        assert_eq!(ask(&mut stream, "stop"), "stopping");
        let back = Law::constant(Nanos(20_000));
        let lossy = |law: &Law| Law { loss: 0.5, ..law.clone() };
        let there = Law::constant(Nanos(10));
        let long = lossy(&Law::constant(Nanos(2_000_000)));
        let order = |at: usize, law: &Law| Order::Set { direction: Some(at), law: law.clone() };
        let expected = [
            order(1, &back),
            order(0, &lossy(&there)),
            order(1, &lossy(&back)),
            order(0, &long),
            order(0, &there),
            Order::Stop,
        ];
        assert_eq!(line.join().unwrap(), expected, "what is no order is not handed over");
        drop(control);
        assert!(!path.exists());
        assert!(Inbox::empty().next().is_none());
    }

    #[test]
    fn who_says_too_much_is_sent_away_and_others_are_answered_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control");
        let (_control, inbox, _shown) = listen(&path);
        let line = line(inbox);
        let mut noisy = UnixStream::connect(&path).unwrap();
        let _ = noisy.write_all(&[b'x'; 4 * words::MOST_BYTES]);
        let mut told = String::new();
        let _ = BufReader::new(&noisy).read_to_string(&mut told);
        assert!(told.is_empty() || told.contains("bytes at most"), "{told}");
        // Half a line holds nobody up.
        let mut slow = UnixStream::connect(&path).unwrap();
        slow.write_all(b"delay").unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        assert!(ask(&mut stream, "delay 30us").starts_with("set: "));
        assert!(ask(&mut slow, " 40us").starts_with("set: there 40us"));
        assert_eq!(ask(&mut stream, "stop"), "stopping");
        assert_eq!(line.join().unwrap().len(), 5);
        assert!(ask(&mut slow, "stop").contains("has ended"));
    }

    #[test]
    fn a_line_that_does_not_answer_holds_nobody_up_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control");
        let (_control, inbox, _shown) = listen(&path);
        let mut stream = UnixStream::connect(&path).unwrap();
        assert!(ask(&mut stream, "delay there 1us").contains("has not answered"));
        drop(inbox);
    }
}
