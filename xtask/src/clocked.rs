//! What took long: each stage of a suite, and the slowest of the tests that run one by one.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When `make test` began, in seconds since 1970: before it installed what tests use, and compiled this.
pub(crate) const BEGAN: &str = "WHYLATE_TESTS_BEGAN";
/// What was done by then.
const BEFORE: &str = "installing and compiling xtask";
/// So many tests are named.
const NAMED: usize = 10;

/// Passes on what tests print that run one by one, and notes how long each took. The program of tests ends a
/// test's line as the test ends.
pub(crate) struct Clocked<W> {
    out: W,
    line: Vec<u8>,
    at: Instant,
    took: Vec<(Duration, String)>,
}

impl<W: Write> Clocked<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, line: Vec::new(), at: now(), took: Vec::new() }
    }

    /// A line has ended.
    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let (now, name) = (now(), test_of(&line));
        if let Some(name) = name {
            self.took.push((now - self.at, name.to_owned()));
        }
        if name.is_some() || line.starts_with("running ") {
            self.at = now;
        }
        self.line.clear();
    }

    /// The tests that took longest, the longest first.
    pub(crate) fn slowest(&self) -> String {
        let lines = self.lines().take(NAMED).map(|line| format!("\n  {line}"));
        format!("the slowest of {} live tests:{}", self.took.len(), lines.collect::<String>())
    }

    /// The same of all of them, a line each.
    pub(crate) fn all(&self) -> String {
        self.lines().map(|line| line + "\n").collect()
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let mut all: Vec<&(Duration, String)> = self.took.iter().collect();
        all.sort_by(|a, b| b.cmp(a));
        all.into_iter().map(|(took, name)| format!("{:>5.1} s  {name}", took.as_secs_f64()))
    }
}

impl<W: Write> Write for Clocked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        for byte in &bytes[..written] {
            match byte {
                b'\n' => self.end_line(),
                other => self.line.push(*other),
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The name in `test NAME ... ok`, whatever stands between the two.
fn test_of(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.split_once(" ... ")?.0)
}

/// What a suite did, one thing after the other, and how long each took.
pub(crate) struct Stages {
    at: Instant,
    ended: Vec<(&'static str, Duration)>,
}

impl Stages {
    /// From where [`BEGAN`] says, or from now on.
    pub(crate) fn begin() -> Self {
        let since_1970 = since_1970();
        Self::begin_after(std::env::var(BEGAN).ok().and_then(|began| before(&began, since_1970)))
    }

    fn begin_after(before: Option<Duration>) -> Self {
        Self { at: now(), ended: before.map(|before| (BEFORE, before)).into_iter().collect() }
    }

    /// What was done since the last has ended.
    pub(crate) fn end(&mut self, what: &'static str) {
        let now = now();
        self.ended.push((what, now - self.at));
        self.at = now;
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = |took: &Duration| took.as_secs_f64() / 60.0;
        let all: Duration = self.ended.iter().map(|(_, took)| *took).sum();
        write!(f, "{:.1} minutes:", minutes(&all))?;
        for (n, (what, took)) in self.ended.iter().enumerate() {
            write!(f, "{} {what} {:.1}", if n == 0 { "" } else { "," }, minutes(took))?;
        }
        Ok(())
    }
}

/// How long ago that was; nothing of what is no time, or is still to come.
fn before(began: &str, since_1970: Duration) -> Option<Duration> {
    since_1970.checked_sub(Duration::from_secs(began.parse().ok()?))
}

#[expect(clippy::disallowed_methods, reason = "counts minutes of tests; no latency is taken")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "counts minutes of tests; no latency is taken")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_has_the_time_between_the_ends_of_its_line_and_the_one_before() {
        let mut clocked = Clocked::new(Vec::new());
        let pause = Duration::from_millis(50);
        let printed =
            [("running 2 tests\n", 2), ("test a::slow ... ", 1), ("ok\ntest b ... a child", 0)];
        for (text, pauses) in printed {
            clocked.write_all(text.as_bytes()).unwrap();
            std::thread::sleep(pause * pauses);
        }
        clocked.write_all(b" says this\nok\n\ntest result: ok. 2 passed\n").unwrap();
        let all: String = printed.iter().map(|(text, _)| *text).collect();
        assert!(clocked.out.starts_with(all.as_bytes()));
        let [(slow, a), (_, b)] = clocked.took.as_slice() else { panic!("{:?}", clocked.took) };
        assert_eq!((a.as_str(), b.as_str()), ("a::slow", "b"));
        assert!(*slow >= pause * 3, "{slow:?}");
        let mut many = Clocked::new(Vec::new());
        many.took = (1..=12).map(|n| (Duration::from_secs(n), format!("t{n}"))).collect();
        let told = many.slowest();
        assert_eq!(told.lines().count(), 1 + NAMED);
        assert!(
            told.starts_with("the slowest of 12 live tests:\n   12.0 s  t12\n   11.0 s  t11\n")
        );
        let all = many.all();
        assert_eq!(all.lines().count(), 12);
        assert!(all.starts_with(" 12.0 s  t12\n") && all.ends_with("\n  1.0 s  t1\n"), "{all}");
    }

    #[test]
    fn stages_are_told_in_minutes_and_sum_to_all_of_them() {
        let mut stages = Stages::begin_after(None);
        assert!(stages.ended.is_empty());
        stages.ended =
            vec![("compiling", Duration::from_secs(90)), ("tests", Duration::from_secs(30))];
        assert_eq!(stages.to_string(), "2.0 minutes: compiling 1.5, tests 0.5");
        stages.end("no time");
        assert!(stages.to_string().ends_with(", no time 0.0"));
    }

    #[test]
    fn what_was_done_before_this_program_ran_is_the_first_stage_where_its_beginning_is_known() {
        let now = Duration::from_secs(1_090);
        let told = |began| Stages::begin_after(before(began, now)).to_string();
        assert_eq!(told("1000"), "1.5 minutes: installing and compiling xtask 1.5");
        for none in ["", "yesterday", "1091", "-5"] {
            assert_eq!(told(none), "0.0 minutes:", "{none}");
        }
        // `make test` says when it began, before it installs anything.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut make = std::process::Command::new("make");
        // Nothing is installed, and in place of cargo the shell tells it.
        make.args(["--silent", "--old-file=deps", "test"]).arg(format!("CARGO=echo $${BEGAN} #"));
        let said =
            make.current_dir(root).env_remove(BEGAN).env_remove("MAKEFLAGS").output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let began = said.trim().parse::<u64>();
        assert!(began.is_ok_and(|began| began <= since_1970().as_secs()), "{said}");
    }
}
