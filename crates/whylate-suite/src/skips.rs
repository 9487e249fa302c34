//! Tests that are left out, said where somebody hears it: the harness keeps what a test prints that passes.

use std::fmt::Display;

use crate::say;

/// Says that a test is left out for want of what the test machines offer; where
/// `WHYLATE_TESTS_REQUIRE=everything` is set that is a failure.
///
/// # Panics
/// There.
pub fn missing(reason: &(impl Display + ?Sized)) {
    let everything = std::env::var("WHYLATE_TESTS_REQUIRE").is_ok_and(|v| v == "everything");
    assert!(!everything, "nothing may be skipped, but: {reason}");
    absent(reason);
}

/// Says that a test, or a part of it, is left out for what other kernels and hosts rightly lack: never a
/// failure.
pub fn absent(reason: &(impl Display + ?Sized)) {
    // The harness names the threads of tests after them.
    match std::thread::current().name().filter(|name| *name != "main") {
        Some(test) => say(&format!("skipped: {reason} ({test})")),
        None => say(&format!("skipped: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{absent, missing};

    /// What the child lacks.
    const LACKS: &str = "WHYLATE_TEST_LACKS";

    #[test]
    #[ignore = "run by the other test as its child process"]
    fn one_that_lacks_something() {
        match std::env::var(LACKS).as_deref() {
            Ok("offered") => missing("no tracefs"),
            Ok(_) => absent("no IPv6"),
            Err(_) => {}
        }
    }

    #[test]
    fn what_is_left_out_is_heard_with_its_name_though_it_passes_and_fails_where_nothing_may_be() {
        if std::env::var_os("WHYLATE_EMULATED").is_some() {
            return absent("an emulator starts no other process");
        }
        for (lacks, require, passes) in [
            ("offered", "nothing", true),
            ("offered", "everything", false),
            ("rare", "nothing", true),
            ("rare", "everything", true),
        ] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--ignored", "--test-threads", "2", "one_that_lacks_something"]);
            child.env(LACKS, lacks).env("WHYLATE_TESTS_REQUIRE", require);
            let output = child.output().unwrap();
            assert_eq!(output.status.success(), passes, "{lacks} {require}: {output:?}");
            let [out, err] =
                [output.stdout, output.stderr].map(|of| String::from_utf8(of).unwrap());
            let reason = if lacks == "rare" { "no IPv6" } else { "no tracefs" };
            let said = format!("skipped: {reason} (skips::tests::one_that_lacks_something)");
            assert_eq!(err.lines().any(|line| line == said), passes, "{out}{err}");
            assert!(passes || out.contains("nothing may be skipped, but: no tracefs"), "{out}");
        }
    }
}
