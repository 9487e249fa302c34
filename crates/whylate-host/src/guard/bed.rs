//! A private bed that is being set up.

use whylate_model::warning::Warning;

use super::Guard;
use super::changes::Changes;
use crate::bed;
use crate::error::HostError;
use crate::journal::{Journal, Undo};

/// What exists of a bed goes with this value, unless the bed is whole and kept. It is announced in
/// the journal first: the next start removes what a killed process left half done.
#[derive(Debug)]
pub struct BedInTheMaking {
    name: String,
    changes: Changes,
}

impl BedInTheMaking {
    /// Announces the bed `name`, of which nothing exists.
    pub fn begin(journal: &Journal, name: &str) -> Result<Self, HostError> {
        let failed = |what: &str| {
            let what = format!("{what} the bed {name}");
            move |source| HostError::Bed { what, source }
        };
        if bed::exists(name) {
            return Err(failed("set up")(std::io::ErrorKind::AlreadyExists.into()));
        }
        let mut changes = Changes::new(journal);
        changes.announce(vec![Undo::RemoveBed { name: name.to_owned() }])?;
        let making = Self { name: name.to_owned(), changes };
        std::fs::create_dir_all(bed::run_directory(name)).map_err(failed("make notes of"))?;
        Ok(making)
    }

    /// It is whole, and stays until it is taken down.
    pub fn keep(mut self) -> Result<(), HostError> {
        self.changes.withdraw(|_| true)
    }
}

impl Guard for BedInTheMaking {
    fn describe(&self) -> Vec<String> {
        vec![format!("network namespaces of the bed {} made", self.name)]
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.changes.restore()
    }
}
