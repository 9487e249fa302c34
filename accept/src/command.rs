//! The command line: which figures are taken, or told of.
//!
//! Rounds that were taken of the same state on the same machine are kept in `target/accept/` and not taken
//! again; `--fresh` begins anew, `--list` tells what there is, `--claims` how the row of each claim begins in
//! the table, `--table` takes nothing and brings the table in step with them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::figure::{Figure, LEAST_DEADLINE};
use crate::interrupt::{self, Interrupted};
use crate::journal::Journal;
use crate::round::{self, Apart};
use crate::{driver, state, table};
use whylate_suite as suite;

const USAGE: &str = "accept [--list | --claims | --table] [--fresh] [NAME..]";

/// What there is to take, and where.
#[derive(Debug)]
pub struct Stock<'a> {
    /// Figures that are taken where none is named, in their order.
    pub usual: &'a [&'a Figure],
    /// Figures that take long, or need what few machines have: taken by their whole names alone.
    pub by_name: &'a [&'a Figure],
    /// The repository.
    pub root: PathBuf,
    /// What must have been built before.
    pub program: Option<&'a Path>,
    /// No round hangs before.
    pub least_deadline: Duration,
    /// The root folder of the machine, in which the lock of suites lies.
    pub machine: PathBuf,
}

impl<'a> Stock<'a> {
    /// Of this repository, on this machine.
    #[must_use]
    pub fn here(usual: &'a [&'a Figure], by_name: &'a [&'a Figure], program: &'a Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        Self {
            usual,
            by_name,
            root: root.to_owned(),
            program: Some(program),
            least_deadline: LEAST_DEADLINE,
            machine: PathBuf::from("/"),
        }
    }

    /// Does what the command line says.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        match self.obey(std::env::args().skip(1).collect()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("accept: {error:#}");
                let interrupted = error.is::<Interrupted>();
                if interrupted { ExitCode::from(interrupt::STATUS) } else { ExitCode::FAILURE }
            }
        }
    }

    fn obey(&self, words: Vec<String>) -> Result<()> {
        let words_of: Vec<&str> = words.iter().map(String::as_str).collect();
        match words_of.as_slice() {
            [round::NEEDS, name, file] => {
                return round::answer(self.find(name)?, None, Path::new(file));
            }
            [round::ROUND, name, number, file] => {
                return round::answer(self.find(name)?, Some(number.parse()?), Path::new(file));
            }
            _ => {}
        }
        let (options, names): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| word.starts_with("--"));
        let has = |option: &str| options.iter().any(|of| of == option);
        let known = ["--fresh", "--list", "--claims", "--table"];
        let is_known = |of: &&String| known.contains(&of.as_str());
        if let Some(other) = options.iter().find(|of| !is_known(of)) {
            bail!("{other} is not known: usage: {USAGE}");
        }
        let chosen = self.chosen(&names)?;
        if has("--list") {
            print!("{}", self.list(&names, &chosen));
            return Ok(());
        }
        if has("--claims") {
            self.all().into_iter().flat_map(table::claims).for_each(|claim| println!("{claim}"));
            return Ok(());
        }
        if has("--table") {
            println!("{}", self.table(&state::day()?, "", &[])?.display());
            return Ok(());
        }
        self.take(&chosen, has("--fresh"))
    }

    fn all(&self) -> Vec<&'a Figure> {
        self.usual.iter().chain(self.by_name).copied().collect()
    }

    fn find(&self, name: &str) -> Result<&'a Figure> {
        let found = self.all().into_iter().find(|figure| figure.name == name);
        found.with_context(|| format!("no figure is named {name}"))
    }

    /// The usual ones whose names hold one of these words, or all; and those that are named.
    fn chosen(&self, names: &[String]) -> Result<Vec<&'a Figure>> {
        if names.is_empty() {
            return Ok(self.usual.to_vec());
        }
        let holds = |figure: &Figure, name: &str| {
            let whole = self.by_name.iter().any(|of| of.name == figure.name);
            if whole { figure.name == name } else { figure.name.contains(name) }
        };
        for name in names {
            if !self.all().iter().any(|figure| holds(figure, name)) {
                bail!("no figure is named {name}; --list tells which there are");
            }
        }
        let wanted = |figure: &&Figure| names.iter().any(|name| holds(figure, name));
        Ok(self.all().into_iter().filter(wanted).collect())
    }

    /// A line for each, `NAME ROUNDS x SECONDS s MOST METHOD`, and how long all of them take.
    fn list(&self, names: &[String], chosen: &[&Figure]) -> String {
        let line = |figure: &&Figure| {
            let most = figure.most_taken.map_or("-".to_owned(), |of| format!("{}%", 100.0 * of));
            let (name, method) = (figure.name, figure.method);
            format!(
                "{name:<40} {:>3} x {:>4} s {most:>5}  {method}\n",
                figure.rounds, figure.seconds
            )
        };
        let mut text: String = chosen.iter().map(line).collect();
        let seconds = driver::planned(chosen, |_, _| false);
        text.extend([format!("\n{} figures, planned to take {seconds:.0} s\n", chosen.len())]);
        if names.is_empty() && !self.by_name.is_empty() {
            text.push_str("\nbeside these, by their whole names alone:\n");
            text.extend(self.by_name.iter().map(line));
        }
        text
    }

    fn table(&self, day: &str, taken: &str, entries: &[table::Entry]) -> Result<PathBuf> {
        table::write(&self.root.join("acceptance"), day, taken, entries, &self.all())
    }

    fn take(&self, chosen: &[&Figure], fresh: bool) -> Result<()> {
        if let Some(missing) = self.program.filter(|program| !program.is_file()) {
            bail!("{} is not there: cargo build --release", missing.display());
        }
        let _held = (!suite::is_held()).then(|| suite::hold_in(&self.machine, &suite::say));
        // Until here it ends as any program does.
        interrupt::listen()?;
        let folder = self.root.join("target/accept");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let journal = folder.join("rounds.jsonl");
        if fresh && journal.exists() {
            std::fs::remove_file(&journal).with_context(|| journal.display().to_string())?;
        }
        let (day, commit, machine) = (state::day()?, state::commit(&self.root)?, state::machine());
        let mut journal = Journal::open(&journal, &format!("{commit} on {machine}"))?;
        let temporary = suite::folder_on_disk();
        suite::make_folder(&temporary).with_context(|| temporary.display().to_string())?;
        let apart = Apart {
            program: std::env::current_exe()?,
            environment: vec![
                (suite::HOLDER, suite::this_process().into()),
                ("TMPDIR", temporary.clone().into_os_string()),
            ],
            folder,
            least_deadline: self.least_deadline,
            machine: self.machine.clone(),
        };
        let taken = format!("{day}, {commit}, {machine}");
        let told = |entries: &[table::Entry]| self.table(&day, &taken, entries).map(drop);
        let ended = driver::take(chosen, &mut journal, &apart, &told);
        // It stays where a round that was killed left something in it: `cargo xtask mend` empties it.
        let _ = std::fs::remove_dir(&temporary);
        ended?;
        println!("{}", self.root.join("acceptance").join(format!("{day}.md")).display());
        Ok(())
    }
}
