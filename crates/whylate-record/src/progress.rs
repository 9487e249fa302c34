//! How far a recording is.

use whylate_model::Nanos;

/// One step of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is being measured.
    pub what: String,
    /// For how long already.
    pub elapsed: Nanos,
    /// For how long in all.
    pub duration: Nanos,
    /// What was found so far, in a few words.
    pub so_far: String,
}

impl Step {
    /// The beginning of something that takes so long.
    #[must_use]
    pub fn of(what: &str, duration: Nanos) -> Self {
        Self { what: what.to_owned(), elapsed: Nanos(0), duration, so_far: String::new() }
    }
}

/// Someone who wants to know. Called from the recording's own thread, never from a measured one.
pub trait Progress {
    /// A step was made.
    fn step(&mut self, step: &Step);
    /// Something to be told at once, such as a change to a host setting.
    fn say(&mut self, text: &str);
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _: &Step) {}
    fn say(&mut self, _: &str) {}
}
