//! The same command several times, each in a process of its own, and the sum of what they recorded.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use whylate_model::identity::Component;
use whylate_model::output;
use whylate_report::merge::{Merged, Request, merge};
use whylate_sys::process;

use super::{Exit, finish, stored};
use crate::cli::Common;
use crate::out::say;
use crate::stopping::Stopping;

/// Options of the whole that a single run gets values of its own for.
const OWN: [&str; 6] = ["--runs", "--out", "--output", "--format", "--seed", "--percentiles"];
/// The same without a value: a single run is printed as JSON.
const OWN_SWITCH: &str = "--full";
/// The same, as one letter.
const OWN_SHORT: &str = "-o";
/// Bytes of tables that a sum copies.
const TABLE_BYTES: u64 = 1 << 30;

/// Runs this command line `runs` times into `run-1`, `run-2`, ... of the directory asked for, and
/// adds them up into `sum` beside them.
pub(super) fn several(runs: u32, common: &Common, stopping: &Stopping) -> Result<Exit> {
    let home = common.output.clone().unwrap_or_else(whylate_record::default_directory);
    output::make_directory(&home)
        .with_context(|| format!("cannot make {} for {runs} runs", home.display()))?;
    let mut directories = Vec::new();
    let (program, words) = this_command()?;
    for number in 1..=runs {
        let directory = home.join(format!("run-{number}"));
        say!("run {number} of {runs}: {}", directory.display());
        let mut command = Command::new(&program);
        command.args(&words).args(["--format", "json", "-o"]).arg(&directory);
        if let Some(seed) = common.seed {
            command.args(["--seed", &seed.wrapping_add(u64::from(number)).to_string()]);
        }
        // A sum that is killed records nothing more.
        process::end_with_parent(&mut command);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot start run {number}"))?;
        // A run whose limit was exceeded or that is not to be trusted is in the sum all the same,
        // and spoils it.
        let recorded = [Exit::Done, Exit::LimitExceeded, Exit::PoorTrust];
        if !recorded.iter().any(|exit| status.code() == Some(*exit as i32)) {
            bail!(
                "run {number} ended by {status}: what was recorded before is in {}",
                home.display()
            );
        }
        directories.push(directory);
        if stopping.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let into = home.join("sum");
    let Merged { run, left_out } = merge(&sum(directories), &into)?;
    for sentence in &left_out {
        say!("left out: {sentence}");
    }
    let place = stored::place(&into);
    let printed = super::print(&run, None, place, common.into());
    finish(&run, &into, printed, false)
}

fn sum(directories: Vec<PathBuf>) -> Request {
    Request {
        directories,
        across_cpus: false,
        // One command line asked for all of them: what each run held of its rate is told by the sum.
        across: vec![Component::Rate],
        skip_damaged: false,
        tables: true,
        table_bytes: TABLE_BYTES,
        command_line: whylate_record::command_line(),
    }
}

/// This program, and the words of its command line for a single run.
fn this_command() -> Result<(PathBuf, Vec<OsString>)> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    Ok((program, without_own(std::env::args_os().skip(1))))
}

fn without_own(mut words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if OWN.iter().any(|own| own.as_bytes() == bytes) || bytes == OWN_SHORT.as_bytes() {
            // Its value goes with it.
            words.next();
            continue;
        }
        if bytes == OWN_SWITCH.as_bytes() {
            continue;
        }
        let name = bytes.split(|byte| *byte == b'=').next().unwrap_or_default();
        let joined = OWN.iter().any(|own| own.as_bytes() == name);
        if !joined && !bytes.starts_with(OWN_SHORT.as_bytes()) {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_single_run_gets_all_words_but_those_of_the_whole() {
        let words = "rtt --rate 1kpps --runs 5 -o x --outstanding 1 --seed=3 --format json -oy --out z --full \
                     --percentiles 50 --quick";
        let kept = without_own(words.split(' ').map(OsString::from));
        assert_eq!(kept.join(OsStr::new(" ")), "rtt --rate 1kpps --outstanding 1 --quick");
        let odd = OsStr::from_bytes(b"/tmp/a\xff.toml").to_owned();
        assert_eq!(without_own([odd.clone()].into_iter()), [odd]);
    }
}
