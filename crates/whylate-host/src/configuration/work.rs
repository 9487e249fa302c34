//! What all steps of a configuration share: guards in order, readings, and what is missing.

use std::fmt;
use std::path::{Path, PathBuf};

use whylate_model::Pid;
use whylate_model::warning::Warning;

use super::{KnobReading, NotHere, Plan, Subject};
use crate::error::HostError;
use crate::files::{trimmed, under};
use crate::guard::{Guard, ReadBack, Settings};
use crate::journal::{Journal, choice};

/// The host that is configured, and how much of it: tests confine what they move.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// Where its `/proc` and `/sys` lie.
    pub(super) root: PathBuf,
    /// Tasks that are moved: these processes only, or all but the box.
    pub(super) others: Option<Vec<Pid>>,
    /// Interrupts that are moved: these only, or all.
    pub(super) interrupts: Option<Vec<u32>>,
}

impl Ground {
    /// All of this host.
    pub(super) fn here() -> Self {
        Self { root: PathBuf::from("/"), others: None, interrupts: None }
    }

    /// Is it this host, with its devices, and not a tree of files?
    pub(super) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// Guards, taken back last first.
#[derive(Default)]
pub(super) struct Stack(Vec<Box<dyn Guard>>);

impl Stack {
    pub(super) fn describe(&self) -> Vec<String> {
        self.0.iter().flat_map(|guard| guard.describe()).collect()
    }

    pub(super) fn restore(&mut self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        while let Some(mut guard) = self.0.pop() {
            warnings.extend(guard.restore());
        }
        warnings
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.describe()).finish()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // A vector would drop the first one first.
        while let Some(guard) = self.0.pop() {
            drop(guard);
        }
    }
}

/// A knob that is a file, for looking at it again.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) got: String,
}

/// A configuration that is being put in force. When it goes before its end, so does all of it.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) plan: &'a Plan,
    pub(super) subject: &'a Subject,
    pub(super) ground: &'a Ground,
    pub(super) journal: &'a Journal,
    pub(super) guards: Stack,
    pub(super) knobs: Vec<KnobReading>,
    pub(super) missing: Vec<NotHere>,
    pub(super) watched: Vec<Watched>,
}

impl Work<'_> {
    pub(super) fn keep(&mut self, guard: impl Guard + 'static) {
        self.guards.0.push(Box::new(guard));
    }

    /// A knob was set, or read where nothing is asked.
    pub(super) fn read(&mut self, name: &str, before: String, asked: Option<&str>, got: String) {
        let asked = asked.map(str::to_owned);
        self.knobs.push(KnobReading { name: name.to_owned(), before, asked, got });
    }

    /// This host does not offer a knob.
    pub(super) fn lacks(&mut self, knob: &str, why: impl Into<String>) {
        self.missing.push(NotHere { knob: knob.to_owned(), why: why.into() });
    }

    /// What was refused is not offered here, and listed; what was taken and not kept, and what says
    /// that nothing may be changed, is an error.
    pub(super) fn offered<T>(
        &mut self,
        knob: &str,
        result: Result<T, HostError>,
    ) -> Result<Option<T>, HostError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(HostError::NotKept { wanted, found, .. }) => {
                Err(HostError::KnobNotKept { knob: knob.to_owned(), asked: wanted, got: found })
            }
            Err(
                error @ (HostError::KnobNotKept { .. }
                | HostError::JournalWrite { .. }
                | HostError::NoJournal { .. }
                | HostError::NowhereToMove { .. }
                | HostError::BoxEnded { .. }),
            ) => Err(error),
            Err(HostError::Read { path, source })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                self.lacks(knob, format!("{} is absent", path.display()));
                Ok(None)
            }
            Err(error) => {
                self.lacks(knob, error.to_string());
                Ok(None)
            }
        }
    }

    /// What a file of the host says; of one that lists choices, the one in force.
    pub(super) fn says(&self, path: &str) -> Option<String> {
        trimmed(&under(&self.ground.root, path)).map(|text| choice(&text).to_owned())
    }

    /// Sets a knob that is a file.
    pub(super) fn set(
        &mut self,
        settings: &mut Settings,
        name: &str,
        path: &str,
        value: &str,
    ) -> Result<(), HostError> {
        let file = under(&self.ground.root, path);
        let set = settings.set(&file, value);
        if let Some(ReadBack { before, now }) = self.offered(name, set)? {
            self.watched.push(Watched { name: name.to_owned(), path: file, got: now.clone() });
            self.read(name, before, Some(value), now);
        }
        Ok(())
    }
}
