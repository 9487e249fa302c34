//! Links and addresses, by the program `ip` with words fixed here.
//!
//! A bed takes a dozen calls, once: `ip` of iproute2 is on every machine that has namespaces, and
//! speaks netlink so that we need not. It works inside the namespace named, never outside.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use whylate_host::bed::{self, Role};
use whylate_model::lab::LinkStatus;

use crate::error::NetError;

/// What a program says is kept up to here.
const MOST_SAID: usize = 500;
/// Links of a namespace that are listed.
const MOST_LINKS: usize = 64;

/// Is this program in PATH?
pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Refuses where iproute2 is not installed.
pub(super) fn needed() -> Result<(), NetError> {
    if is_installed("ip") {
        return Ok(());
    }
    Err(NetError::NoProgram { what: "a bed", program: "ip", package: "iproute2" })
}

/// Runs a program to its end; what it printed.
pub(super) fn run(mut command: Command) -> Result<String, NetError> {
    let shown = || {
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let program = Path::new(command.get_program()).display().to_string();
        std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
    };
    let shown = shown();
    let failed = |said: String| NetError::Program { command: shown.clone(), said };
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(MOST_SAID).collect();
    Err(failed(if said.is_empty() { output.status.to_string() } else { said }))
}

/// Runs `ip` inside a namespace of the bed.
pub(super) fn ip(name: &str, role: Role, words: &str) -> Result<String, NetError> {
    let mut command = Command::new("ip");
    command.args(["-n", &bed::namespace(name, role)]).args(words.split_whitespace());
    run(command)
}

/// Whether packets pass. The kernel's own word for it follows up to a second later.
fn state(link: &Value) -> &'static str {
    let flags = link.get("flags").and_then(Value::as_array);
    let has = |flag: &str| {
        flags.is_some_and(|flags| flags.iter().any(|known| known.as_str() == Some(flag)))
    };
    match (has("UP"), has("LOWER_UP")) {
        (true, true) => "up",
        (true, false) => "no carrier",
        (false, _) => "down",
    }
}

/// The links of a namespace with their addresses; none where they cannot be read.
pub(super) fn links(name: &str, role: Role) -> Option<Vec<LinkStatus>> {
    let mut command = Command::new("ip");
    command.args(["-j", "-n", &bed::namespace(name, role), "addr", "show"]);
    let listed: Value = serde_json::from_str(&run(command).ok()?).ok()?;
    let link = |link: &Value| {
        let address = |address: &Value| {
            let prefix = address.get("prefixlen")?.as_u64()?;
            Some(format!("{}/{prefix}", address.get("local")?.as_str()?))
        };
        let addresses = link.get("addr_info").and_then(Value::as_array);
        Some(LinkStatus {
            name: link.get("ifname")?.as_str()?.to_owned(),
            state: state(link).to_owned(),
            addresses: addresses.into_iter().flatten().filter_map(address).collect(),
        })
    };
    Some(listed.as_array()?.iter().take(MOST_LINKS).filter_map(link).collect())
}
