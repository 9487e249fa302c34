//! Cargo, for what is compiled before it is measured.

use std::path::Path;
use std::process::{Command, Stdio};

/// Does cargo succeed with these words and this environment? It says on stderr what it does.
pub(crate) fn succeeds(words: &str, environment: &[(&str, &str)]) -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package in a repository");
    let mut command = Command::new(cargo);
    command.args(words.split(' ')).envs(environment.iter().copied()).current_dir(root);
    let status = command.stdin(Stdio::null()).status().expect("cargo can be run");
    status.success()
}
