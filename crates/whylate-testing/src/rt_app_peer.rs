//! rt-app itself, on the file that whylate runs: preprocessed to what it reads, for a bounded time,
//! and what its own logs say.
//!
//! It reads each key of an object once, and a thread that is suspended on itself must say so: its
//! authors' preprocessor sees to that, and needs Python 2. So the file is read with our reader and
//! written again. Its calibration takes a minute; it is asked for once, and given to every run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use whylate_rta::rtapp::json::{self, Entry, Node, Value};

use crate::needs;
use crate::rt_app_rows::numbers;

/// The most that its calibration takes, and what a run takes beyond its time.
const CALIBRATION: Duration = Duration::from_secs(150);
const BEYOND: Duration = Duration::from_secs(20);

/// rt-app, with the nanoseconds of its loop by its own calibration.
pub struct RtApp {
    program: PathBuf,
    loop_ns: u64,
}

/// What its log says of one thread: sums over all rows, in microseconds.
#[derive(Debug, Default)]
pub struct Logged {
    pub thread: String,
    pub rows: usize,
    /// Running, and what was configured.
    pub run: (f64, f64),
    /// Length of passes with a period, and what was configured.
    pub period: (f64, f64),
}

/// rt-app, where it is installed and calibrates itself.
pub fn rt_app() -> Option<&'static RtApp> {
    static CALIBRATED: OnceLock<Option<RtApp>> = OnceLock::new();
    CALIBRATED.get_or_init(RtApp::calibrated).as_ref()
}

impl RtApp {
    fn calibrated() -> Option<Self> {
        let program = needs::program("rt-app")?;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("calibrate.json");
        let text = r#"{ "tasks" : { "a" : { "loop" : 1, "run" : 1000 } },
                        "global" : { "duration" : 1, "calibration" : "CPU0", "logdir" : "./" } }"#;
        std::fs::write(&file, text).unwrap();
        let told = run(&program, &file, home.path(), CALIBRATION).ok()?;
        let number = told.split("pLoad = ").nth(1)?.split("ns").next()?.parse().ok();
        number.map(|loop_ns| Self { program, loop_ns })
    }

    /// Runs a workload for so many seconds; what its logs say of each thread, or why it does not run.
    pub fn run(&self, file: &Path, seconds: u64) -> Result<Vec<Logged>, String> {
        let home = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let text = self.preprocessed(&text, home.path(), seconds)?;
        let workload = home.path().join("workload.json");
        std::fs::write(&workload, text).unwrap();
        run(&self.program, &workload, home.path(), Duration::from_secs(seconds) + BEYOND)?;
        let mut threads = Vec::new();
        for entry in std::fs::read_dir(home.path()).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(thread) = name.strip_prefix("beside-").and_then(|n| n.strip_suffix(".log"))
            else {
                continue;
            };
            threads.push(logged(thread, &std::fs::read_to_string(entry.path()).unwrap()));
        }
        threads.sort_by(|a, b| a.thread.cmp(&b.thread));
        Ok(threads)
    }

    /// The file with each key once, and with settings under which nothing but its threads is written.
    fn preprocessed(&self, text: &str, home: &Path, seconds: u64) -> Result<String, String> {
        let root = json::read(text).map_err(|wrong| wrong.reason)?;
        let Value::Object(entries) = &root.value else { return Err("no object".to_owned()) };
        let mut out = "{".to_owned();
        let mut kept = String::new();
        for entry in entries {
            if entry.key == "global" {
                kept = global(&entry.node);
            } else {
                let _ = write!(out, "{}:", quoted(&entry.key));
                strict(&entry.node, &entry.key, &mut out);
                out.push(',');
            }
        }
        let _ = write!(
            out,
            "\"global\":{{{kept}\"duration\":{seconds},\"calibration\":{},\"lock_pages\":false,\
             \"logdir\":{},\"log_basename\":\"beside\",\"ftrace\":false,\"gnuplot\":false}}}}",
            self.loop_ns,
            quoted(&home.display().to_string())
        );
        Ok(out)
    }
}

/// What of the global settings decides what the threads do.
fn global(node: &Node) -> String {
    let mut kept = String::new();
    let Value::Object(entries) = &node.value else { return kept };
    for entry in entries {
        let of = ["default_policy", "pi_enabled", "io_device", "mem_buffer_size"];
        if of.contains(&entry.key.as_str()) {
            let _ = write!(kept, "{}:{},", quoted(&entry.key), entry.node.value);
        }
    }
    kept
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Writes a value with each key once; `task` is what a thread that is suspended without a name is
/// called.
fn strict(node: &Node, task: &str, out: &mut String) {
    match &node.value {
        Value::Object(entries) => {
            out.push('{');
            let mut taken = BTreeSet::new();
            for (index, Entry { key, node, .. }) in entries.iter().enumerate() {
                let mut unique = key.clone();
                let mut number = 1;
                while !taken.insert(unique.clone()) {
                    number += 1;
                    unique = format!("{key}{number}");
                }
                let comma = if index > 0 { "," } else { "" };
                let _ = write!(out, "{comma}{}:", quoted(&unique));
                let inside = if task == "tasks" { key } else { task };
                match &node.value {
                    Value::Absent => out.push_str(&quoted(task)),
                    _ => strict(node, inside, out),
                }
            }
            out.push('}');
        }
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                strict(item, task, out);
            }
            out.push(']');
        }
        value => {
            let _ = write!(out, "{value}");
        }
    }
}

/// Runs it to its end, which must come within `limit`; everything it said.
fn run(program: &Path, file: &Path, home: &Path, limit: Duration) -> Result<String, String> {
    let (log, path) = (home.join("said"), home.join("said"));
    let log = std::fs::File::create(log).unwrap();
    let mut child = Command::new(program)
        .arg(file)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let ended = wait(&mut child, limit);
    let told = std::fs::read_to_string(path).unwrap();
    match ended {
        Some(true) => Ok(told),
        Some(false) => {
            let wrong = told.lines().find(|line| line.contains("crit") || line.contains("error"));
            Err(format!("it says: {}", wrong.unwrap_or("nothing").trim()))
        }
        None => Err(format!("it had not ended {} s after it was to", BEYOND.as_secs())),
    }
}

/// Did it end well? None where it had to be ended.
fn wait(child: &mut Child, limit: Duration) -> Option<bool> {
    const STEP: Duration = Duration::from_millis(50);
    for _ in 0..limit.as_millis() / STEP.as_millis() {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.success());
        }
        std::thread::sleep(STEP);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Adds up the rows of a log.
fn logged(thread: &str, text: &str) -> Logged {
    let mut sum = Logged { thread: thread.to_owned(), ..Logged::default() };
    for row in text.lines().filter_map(numbers) {
        sum.rows += 1;
        let add = |to: &mut (f64, f64), measured: f64, configured: f64| {
            if configured > 0.0 {
                *to = (to.0 + measured, to.1 + configured);
            }
        };
        add(&mut sum.run, row[2], row[8]);
        add(&mut sum.period, row[3], row[9]);
    }
    sum
}

#[test]
fn a_workload_is_written_as_rt_app_reads_it() {
    let text = r#"{ /* as people write it */ "tasks" : { "a" : { "run" : 1, "run" : 2, suspend,
                    "phases" : { "p" : { "cpus" : [0, 1,], "lock" : "m" }, "p" : { "run" : 3 } } } },
                    "global" : { "duration" : 600, "ftrace" : "x", "default_policy" : "SCHED_FIFO" } }"#;
    let app = RtApp { program: PathBuf::new(), loop_ns: 28 };
    let text = app.preprocessed(text, Path::new("/tmp/x"), 2).unwrap();
    assert_eq!(
        text,
        "{\"tasks\":{\"a\":{\"run\":1,\"run2\":2,\"suspend\":\"a\",\"phases\":{\"p\":{\"cpus\":[0,1],\
         \"lock\":\"m\"},\"p2\":{\"run\":3}}}},\"global\":{\"default_policy\":\"SCHED_FIFO\",\
         \"duration\":2,\"calibration\":28,\"lock_pages\":false,\"logdir\":\"/tmp/x\",\
         \"log_basename\":\"beside\",\"ftrace\":false,\"gnuplot\":false}}"
    );
    let log =
        "# policy\n#idx perf run\n0 1 1100 9000 0 0 0 0 1000 10000 5\n0 1 900 500 0 0 0 0 1000 0 5";
    let sum = logged("a-0", log);
    assert_eq!((sum.rows, sum.run, sum.period), (2, (2_000.0, 2_000.0), (9_000.0, 10_000.0)));
}
