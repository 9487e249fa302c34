//! Planted trees, and processes of these tests' own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::processes::Process;
use super::*;

const THROTTLING: &str = "proc/sys/kernel/sched_rt_runtime_us";
const TRACING: &str = "sys/kernel/tracing/tracing_on";
const INSTANCES: &str = "sys/kernel/tracing/instances";
const PAGES: &str = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

/// A machine of files, with these settings.
fn machine(settings: &[(&str, &str)]) -> Result<TempDir> {
    let root = tempfile::tempdir()?;
    for folder in ["tmp", "run", "proc/sys/kernel/random"] {
        std::fs::create_dir_all(root.path().join(folder))?;
    }
    write(root.path(), "proc/sys/kernel/random/boot_id", "one")?;
    settings.iter().try_for_each(|(path, value)| write(root.path(), path, value))?;
    Ok(root)
}

fn write(root: &Path, path: &str, value: &str) -> Result<()> {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().context("a folder")?)?;
    Ok(std::fs::write(path, format!("{value}\n"))?)
}

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap_or_default().trim().to_owned()
}

/// A suite that is killed: its file of what it found stays, its lock does not.
fn killed(root: &Path, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let held = suite::hold_in(root, &|_| {});
    let found = std::fs::read(root.join("run/whylate-tests.found"))?;
    drop(held);
    meanwhile()?;
    Ok(std::fs::write(root.join("run/whylate-tests.found"), found)?)
}

fn said_by_the_next(root: &Path) -> Vec<String> {
    let said = std::cell::RefCell::new(Vec::new());
    drop(suite::hold_in(root, &|line| said.borrow_mut().push(line.to_owned())));
    said.into_inner()
}

#[test]
fn settings_that_a_killed_suite_left_are_put_back_and_those_of_others_are_not() -> Result<()> {
    let root = machine(&[(THROTTLING, "950000"), (TRACING, "1"), (PAGES, "0")])?;
    let root = root.path();
    killed(root, || {
        write(root, THROTTLING, "-1")?;
        write(root, TRACING, "0")?;
        write(root, PAGES, "64")
    })?;
    let said = said_by_the_next(root);
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(
        said[0],
        format!("left by a suite that was killed: /{THROTTLING} was -1, is 950000 again")
    );
    assert_eq!([THROTTLING, TRACING, PAGES].map(|path| read(root, path)), ["950000", "1", "0"]);
    assert_eq!(said_by_the_next(root), [""; 0], "once");
    // What no test does is somebody else's: another limit, fewer pages; and after a reboot all is new.
    killed(root, || write(root, THROTTLING, "900000"))?;
    assert_eq!(said_by_the_next(root), [""; 0]);
    assert_eq!(read(root, THROTTLING), "900000");
    killed(root, || {
        write(root, TRACING, "0")?;
        write(root, "proc/sys/kernel/random/boot_id", "two")
    })?;
    assert_eq!(said_by_the_next(root), [""; 0]);
    assert_eq!(read(root, TRACING), "0");
    Ok(())
}

#[test]
fn what_a_suite_found_first_stands_until_it_is_put_back() -> Result<()> {
    let root = machine(&[(THROTTLING, "950000")])?;
    let root = root.path();
    let held = suite::hold_in(root, &|_| {});
    write(root, THROTTLING, "-1")?;
    drop(held);
    assert_eq!(read(root, THROTTLING), "950000", "a test of a suite that ends left it");
    assert!(!root.join("run/whylate-tests.found").exists());
    // A machine that had it so before keeps it.
    write(root, THROTTLING, "-1")?;
    assert_eq!(said_by_the_next(root), [""; 0]);
    assert_eq!(read(root, THROTTLING), "-1");
    Ok(())
}

#[test]
fn a_second_suite_waits_and_says_for_whom() -> Result<()> {
    let root = machine(&[])?;
    let first = suite::hold_in(root.path(), &|_| {});
    let place = root.path().to_owned();
    let (tell, told) = std::sync::mpsc::channel();
    let second = std::thread::spawn(move || {
        let held = suite::hold_in(&place, &|line| {
            let _ = tell.send(line.to_owned());
        });
        let _ = tell.send("it has it".to_owned());
        drop(held);
    });
    let minute = std::time::Duration::from_secs(60);
    let waits = told.recv_timeout(minute)?;
    assert!(waits.contains("another suite runs on this machine"), "{waits}");
    assert!(waits.contains(&format!("(process {})", std::process::id())), "{waits}");
    assert!(told.try_recv().is_err(), "it has it although the first does");
    drop(first);
    assert_eq!(told.recv_timeout(minute)?, "it has it");
    assert!(second.join().is_ok());
    Ok(())
}

#[test]
fn a_lock_in_the_hands_of_another_user_locks_all_the_same() -> Result<()> {
    let root = machine(&[])?;
    let lock = root.path().join("tmp/whylate-tests.lock");
    std::fs::write(&lock, "")?;
    let mut mode = std::fs::metadata(&lock)?.permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&lock, mode)?;
    assert_eq!(said_by_the_next(root.path()), [""; 0]);
    // One that cannot even be made is said, and nothing is put back beside another suite.
    std::fs::remove_file(&lock)?;
    std::fs::remove_dir(root.path().join("tmp"))?;
    let said = said_by_the_next(root.path());
    assert!(said[0].starts_with("two suites at once are not kept apart: "), "{said:?}");
    Ok(())
}

#[test]
fn the_kernel_tells_who_has_a_lock() {
    let locks = "1: POSIX  ADVISORY  WRITE 5 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 8 fe:00:77 0 EOF\n\
                 2: FLOCK  ADVISORY  WRITE 71 fe:00:77 0 EOF\n";
    assert_eq!(suite::holder(locks, 77), Some(71));
    assert_eq!(suite::holder(locks, 7), None);
}

#[test]
fn instances_and_groups_of_the_dead_go_and_those_of_the_living_and_of_others_stay() -> Result<()> {
    let root = machine(&[])?;
    let root = root.path();
    write(root, "proc/71/stat", "")?;
    write(
        root,
        "proc/mounts",
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\ntmpfs /tmp tmpfs rw 0 0",
    )?;
    let groups = "sys/fs/cgroup/cpuset";
    write(root, TRACING, "1")?;
    for path in ["whylate-71-a", "whylate-72-a", "whylate-lab", "mine/whylate-test-72", "other-72"]
    {
        std::fs::create_dir_all(root.join(groups).join(path))?;
        std::fs::create_dir_all(root.join(INSTANCES).join(path))?;
    }
    assert_eq!(remove_directories(root, &cgroups(root), "cgroup"), [""; 0], "a container");
    std::fs::create_dir_all(root.join("proc/self/ns"))?;
    std::os::unix::fs::symlink(ALL_PROCESSES, root.join("proc/self/ns/pid"))?;
    let told = remove_directories(root, &cgroups(root), "cgroup");
    let gone = |path: &str| !root.join(groups).join(path).exists();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(gone("whylate-72-a") && gone("mine/whylate-test-72"), "{told:?}");
    assert!(!gone("whylate-71-a") && !gone("whylate-lab") && !gone("other-72"));
    let told = remove_directories(root, &instances(root), "trace instance");
    assert_eq!(
        told,
        [format!("removed trace instance {}/{}/whylate-72-a", root.display(), INSTANCES)]
    );
    // What the kernel does not let go is said.
    write(root, &format!("{INSTANCES}/whylate-73-a/busy"), "")?;
    let told = remove_directories(root, &instances(root), "trace instance");
    assert!(told[0].starts_with("cannot remove trace instance "), "{told:?}");
    Ok(())
}

#[test]
fn the_kernels_tracing_is_mended_wherever_it_is_mounted_and_where_it_is_not_nothing_is_said()
-> Result<()> {
    for place in ["sys/kernel/tracing", "sys/kernel/debug/tracing", "mnt/a b"] {
        let root = machine(&[("proc/mounts", "none /mnt/a\\040b tracefs rw 0 0")])?;
        let root = root.path();
        // The folder that waits for it is there and empty.
        std::fs::create_dir_all(root.join("sys/kernel/tracing"))?;
        std::fs::create_dir_all(root.join("proc/self/ns"))?;
        std::os::unix::fs::symlink(ALL_PROCESSES, root.join("proc/self/ns/pid"))?;
        killed(root, || Ok(()))?;
        assert_eq!(said_by_the_next(root), [""; 0], "nothing is mounted");
        assert!(instances(root).is_empty());
        let (switch, left) =
            (format!("{place}/tracing_on"), format!("{place}/instances/whylate-72-a"));
        write(root, &switch, "1")?;
        std::fs::create_dir_all(root.join(&left))?;
        killed(root, || write(root, &switch, "0"))?;
        let said = said_by_the_next(root);
        let again = format!("left by a suite that was killed: /{switch} was 0, is 1 again");
        assert_eq!((said, read(root, &switch)), (vec![again], "1".to_owned()));
        let told = remove_directories(root, &instances(root), "trace instance");
        assert_eq!(told, [format!("removed trace instance {}/{left}", root.display())]);
    }
    Ok(())
}

#[test]
fn a_line_of_the_kernel_about_a_process_is_read() {
    let line = |state: &str| {
        format!("71 (a (b) c) {state} 1 71 71 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 345 9 9")
    };
    let found = Process::parse(&line("S"));
    assert_eq!(found.as_ref().map(|of| (of.pid, of.name.as_str())), Some((71, "a (b) c")));
    assert_eq!(Process::parse(&line("Z")), None);
    assert_eq!(Process::parse("71"), None);
}

/// A process of this test, ended with it.
struct Sleeps(Child);

impl Sleeps {
    fn new(variable: &str, value: &str) -> Result<Self> {
        let mut sleep = Command::new("sleep");
        sleep
            .arg("600")
            .env_remove(suite::HOLDER)
            .env_remove("XDG_STATE_HOME")
            .env(variable, value);
        Ok(Self(sleep.stdin(Stdio::null()).spawn()?))
    }
}

impl Drop for Sleeps {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_left_where_its_suite_has_ended_and_stays_where_that_lives_or_none_is_told()
-> Result<()> {
    let state = Path::new("/no/such/state");
    // No process began at that time, whatever its number.
    let dead = Sleeps::new(suite::HOLDER, &format!("{}-7", std::process::id()))?;
    let living = Sleeps::new(suite::HOLDER, &suite::this_process())?;
    let garbled = Sleeps::new(suite::HOLDER, "yes")?;
    // Its parent lives, and minds it.
    let minded = Sleeps::new("XDG_STATE_HOME", "/no/such/state")?;
    let found: Vec<u32> = processes::left(Path::new("/"), state).iter().map(|of| of.pid).collect();
    assert!(found.contains(&dead.0.id()), "{found:?}");
    for other in [&living, &garbled, &minded] {
        assert!(!found.contains(&other.0.id()), "{found:?}");
    }
    assert!(!found.contains(&std::process::id()));
    Ok(())
}

#[test]
fn the_folder_of_temporary_files_is_emptied_and_a_foreign_one_is_not() -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("whylate-tests-0");
    suite::make_folder(&folder)?;
    assert_eq!(temporary::clear(&folder), [""; 0]);
    suite::make_folder(&folder)?;
    write(&folder, ".tmpAAAAAA/run/run.json", "{}")?;
    write(&folder, "whylate-net-71", "")?;
    let told = temporary::clear(&folder);
    assert_eq!(told, [format!("removed 2 temporary files and folders in {}", folder.display())]);
    assert!(!folder.exists());
    let theirs = home.path().join("theirs");
    write(&theirs, "a", "")?;
    std::os::unix::fs::symlink(&theirs, &folder)?;
    assert!(suite::make_folder(&folder).is_err());
    assert!(temporary::clear(&folder)[0].contains("is left alone"));
    assert!(theirs.join("a").exists());
    Ok(())
}

#[test]
fn what_is_mounted_below_the_folder_is_found_the_last_first() {
    let mounts = "tmpfs /t tmpfs rw 0 0\nnsfs /t/a nsfs rw 0 0\nnsfs /tt nsfs rw 0 0\ntmpfs /t/a/b tmpfs rw 0 0\n";
    let found = temporary::mounted_below(mounts, Path::new("/t"));
    assert_eq!(found, [Path::new("/t/a/b"), Path::new("/t/a")]);
}

#[test]
fn memory_holds_temporary_files_where_it_is_large_and_programs_run_from_it() {
    const MEMORY_KIB: u64 = 4 << 20;
    let of = |line: &str, kib| {
        let mounts = format!("a /dev/shm tmpfs ro 0 0\n{line}\n");
        suite::in_memory(&mounts, "/dev/shm", kib)
    };
    let large = "tmpfs /dev/shm tmpfs rw,nosuid,nodev,relatime,size=2097152k 0 0";
    let of_half = "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0";
    assert!(of(large, MEMORY_KIB) && of(of_half, MEMORY_KIB));
    assert!(!of(large, MEMORY_KIB - 2) && !of(of_half, MEMORY_KIB - 2));
    for line in [
        "tmpfs /dev/shm tmpfs rw,size=2097151k 0 0",
        "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0",
        "tmpfs /dev/shm tmpfs rw,noexec,size=9999999k 0 0",
        "/dev/vda /dev/shm ext4 rw 0 0",
        "tmpfs /dev/shm tmpfs ro 0 0",
        "tmpfs /dev/shmem tmpfs rw 0 0",
    ] {
        assert!(!of(line, MEMORY_KIB), "{line}");
    }
}
