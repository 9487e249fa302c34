//! Tests that are left out or claim nothing, said where somebody hears it: the harness keeps what a test prints that
//! passes. Who runs a suite may have them written into a file as well, to count them.

use std::fmt::Display;
use std::io::Write;

use crate::say;

/// Names that file to those that a suite starts.
pub const LEFT_OUT: &str = "WHYLATE_TESTS_LEFT_OUT";
/// What a line of either kind begins with.
pub const SKIPPED: &str = "skipped";
/// See [`SKIPPED`].
pub const NO_CLAIM: &str = "no claim";

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
    tell(SKIPPED, &reason.to_string());
}

/// Says that the host or others spoilt every run of a test, by evidence: nothing was missing, nothing is claimed, and
/// nothing fails.
pub fn spoilt(reason: &(impl Display + ?Sized)) {
    tell(NO_CLAIM, &reason.to_string());
}

fn tell(kind: &str, reason: &str) {
    let thread = std::thread::current();
    // The harness names the threads of tests after them.
    let test = thread.name().filter(|name| *name != "main");
    let named = test.map_or_else(String::new, |test| format!(" ({test})"));
    say(&format!("{kind}: {reason}{named}"));
    let Some(file) = std::env::var_os(LEFT_OUT) else { return };
    let reason = reason.replace(['\n', '\t'], " ");
    let line = format!("{kind}: {reason}\t{}\n", test.unwrap_or_default());
    // At once, so that it stays whole beside others. Where it cannot be written it has been said.
    let file = std::fs::File::options().append(true).create(true).open(file);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{LEFT_OUT, absent, missing, spoilt};

    /// What the child lacks.
    const LACKS: &str = "WHYLATE_TEST_LACKS";

    #[test]
    #[ignore = "run by the other test as its child process"]
    fn one_that_lacks_something() {
        match std::env::var(LACKS).as_deref() {
            Ok("offered") => missing("no tracefs"),
            Ok("time") => spoilt("the host took\nit all"),
            Ok(_) => absent("no IPv6"),
            Err(_) => {}
        }
    }

    #[test]
    fn what_is_left_out_is_heard_with_its_name_though_it_passes_and_fails_where_nothing_may_be() {
        if std::env::var_os("WHYLATE_EMULATED").is_some() {
            return absent("an emulator starts no other process");
        }
        let file = std::env::temp_dir().join(format!("left-out-{}", std::process::id()));
        for (lacks, require, passes) in [
            ("offered", "nothing", true),
            ("offered", "everything", false),
            ("rare", "nothing", true),
            ("rare", "everything", true),
            ("time", "everything", true),
        ] {
            let _ = std::fs::remove_file(&file);
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--ignored", "--test-threads", "2", "one_that_lacks_something"]);
            child.env(LACKS, lacks).env("WHYLATE_TESTS_REQUIRE", require).env(LEFT_OUT, &file);
            let output = child.output().unwrap();
            assert_eq!(output.status.success(), passes, "{lacks} {require}: {output:?}");
            let [out, err] =
                [output.stdout, output.stderr].map(|of| String::from_utf8(of).unwrap());
            let reason = match lacks {
                "rare" => "skipped: no IPv6",
                "time" => "no claim: the host took\nit all",
                _ => "skipped: no tracefs",
            };
            let test = "skips::tests::one_that_lacks_something";
            let said = format!("{reason} ({test})\n");
            assert_eq!(err.contains(&said), passes, "{out}{err}");
            // And kept for who counts them, a line each.
            let kept = std::fs::read_to_string(&file).unwrap_or_default();
            let line = format!("{}\t{test}\n", reason.replace('\n', " "));
            assert_eq!(kept, if passes { line.as_str() } else { "" }, "{lacks} {require}");
            assert!(passes || out.contains("nothing may be skipped, but: no tracefs"), "{out}");
        }
        let _ = std::fs::remove_file(&file);
    }
}
