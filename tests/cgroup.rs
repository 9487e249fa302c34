//! Measuring inside a cgroup.

use std::fs;
use std::path::PathBuf;

use crate::needs;
use crate::program::{self, Started, whylate};

/// A cpuset of version 1 with one CPU, removed with the value.
struct Cpuset {
    directory: PathBuf,
    name: String,
}

impl Cpuset {
    fn make(cpu: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let here = fields[2] == "cgroup" && fields[3].split(',').any(|o| o == "cpuset");
            here.then(|| PathBuf::from(fields[1]))
        });
        let Some(mount) = mount else {
            needs::absent("no cpuset hierarchy of version 1");
            return None;
        };
        let name = format!("whylate-test-{}", std::process::id());
        let directory = mount.join(&name);
        if let Err(error) = fs::create_dir(&directory) {
            needs::missing(&format!("no cpuset can be made: {error}"));
            return None;
        }
        let made = Self { directory, name };
        let memories = fs::read_to_string(mount.join("cpuset.mems")).unwrap();
        fs::write(made.directory.join("cpuset.mems"), memories.trim()).unwrap();
        fs::write(made.directory.join("cpuset.cpus"), cpu).unwrap();
        Some(made)
    }

    fn holds(&self, thread: i32) -> bool {
        let tasks = fs::read_to_string(self.directory.join("tasks")).unwrap();
        tasks.lines().any(|line| line.parse() == Ok(thread))
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // Tasks that have just ended may still be listed for a moment.
        for _ in 0..50 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn the_measuring_thread_is_inside_the_cgroup_and_the_housekeeping_is_not() {
    let _alone = program::alone();
    let (true, Some(cpus)) = (needs::root(), needs::cpus(2)) else { return };
    let Some(cpuset) = Cpuset::make(&cpus[1].to_string()) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["gaps", "--duration", "2s", "--warmup", "200ms", "--cpus"]);
    command.arg(format!("cgroup:/{}", cpuset.name)).arg("-o").arg(&directory);
    let mut started = Started::new(command);
    let measuring = started.measuring_thread();
    assert!(cpuset.holds(measuring.0), "the measuring thread is outside");
    program::until("the recording's own thread is back outside", || {
        (!cpuset.holds(started.pid().0)).then_some(())
    });
    let status = started.status();
    let run = program::read(&directory);
    program::ended(status, &run);
    assert_eq!(run.gaps.iter().map(|gaps| gaps.cpu).collect::<Vec<_>>(), [cpus[1]]);
}
