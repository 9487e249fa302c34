//! Both ways to tracefs, and what its files and pipes do.

use super::*;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::{affinity, process};

/// Tracefs, or `None` with the reason printed.
fn tracefs() -> Option<Tracefs> {
    Tracefs::open().inspect_err(crate::tests::skip).ok()
}

/// A mount of tracefs for this process alone, or `None` with the reason printed.
fn private() -> Option<Tracefs> {
    Tracefs::open_private().inspect_err(crate::tests::skip).ok()
}

/// An instance of this test alone, removed when the test ends, however it ends.
struct Made<'a> {
    tracefs: &'a Tracefs,
    name: String,
}

impl<'a> Made<'a> {
    fn new(tracefs: &'a Tracefs, purpose: &str) -> Option<(Self, Instance)> {
        let name = format!("whylate-test-{purpose}-{}", process::pid());
        let instance = tracefs.create_instance(&name).inspect_err(crate::tests::skip).ok()?;
        Some((Self { tracefs, name }, instance))
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let _ = self.tracefs.remove_instance(&self.name);
    }
}

/// Runs `body` with the thread bound to one CPU and gives that CPU to it.
fn bound<T: Send>(body: impl FnOnce(CpuId) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let cpu = affinity::get()[0];
            affinity::set(&[cpu]).unwrap();
            body(cpu)
        });
        thread.join().unwrap()
    })
}

/// How many bytes of a page count, by the plain layout of a 64-bit kernel.
fn committed(page: &[u8]) -> usize {
    u64::from_ne_bytes(page[8..16].try_into().unwrap()) as usize & 0xfff_ffff
}

fn contains(page: &[u8], text: &str) -> bool {
    page.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn an_instance_is_created_listed_and_removed() {
    let Some(tracefs) = tracefs() else { return };
    let Some((made, instance)) = Made::new(&tracefs, "listed") else { return };
    assert_eq!(instance.name(), made.name);
    assert!(tracefs.instances().unwrap().contains(&made.name));
    assert!(instance.exists("trace_clock") && !instance.exists("no_such_file"));
    let again = tracefs.create_instance(&made.name).unwrap_err();
    assert_eq!(again.errno(), Some(Errno::EXIST), "{again}");
    tracefs.remove_instance(&made.name).unwrap();
    assert!(!tracefs.instances().unwrap().contains(&made.name));
    assert_eq!(tracefs.remove_instance(&made.name).unwrap_err().errno(), Some(Errno::NOENT));
}

#[test]
fn what_is_written_to_an_instance_is_read_back_and_the_machine_keeps_its_own() {
    let Some(tracefs) = tracefs() else { return };
    let Some((_made, instance)) = Made::new(&tracefs, "written") else { return };
    let machine = tracefs.read("trace_clock").unwrap();
    instance.write("trace_clock", "mono_raw").unwrap();
    assert!(instance.read("trace_clock").unwrap().contains("[mono_raw]"));
    assert_eq!(tracefs.read("trace_clock").unwrap(), machine);
    let refusal = instance.write("trace_clock", "sundial").unwrap_err();
    assert_eq!(refusal.errno(), Some(Errno::INVAL));
    assert!(refusal.to_string().contains("`sundial`"), "{refusal}");
    assert!(refusal.to_string().contains("instances/whylate-test-written"), "{refusal}");
}

#[test]
fn files_come_whole_whether_short_or_long() {
    let Some(tracefs) = tracefs() else { return };
    let header = tracefs.read("events/header_page").unwrap();
    assert!(header.contains("timestamp") && header.contains("data;"), "{header}");
    let events = tracefs.read("available_events").unwrap();
    assert!(events.len() > 16 << 10 && events.ends_with('\n'), "{} bytes", events.len());
}

#[test]
fn names_cannot_leave_tracefs() {
    let Some(tracefs) = tracefs() else { return };
    for rel in ["/etc/passwd", "../etc/passwd", "instances/../../x", "", "."] {
        assert!(matches!(tracefs.read(rel), Err(SysError::Invalid { .. })), "{rel}");
        assert!(!tracefs.exists(rel), "{rel}");
    }
    for name in ["", "a/b", "..", "."] {
        assert!(matches!(tracefs.remove_instance(name), Err(SysError::Invalid { .. })), "{name}");
    }
}

#[test]
fn a_partly_filled_page_is_handed_over_once() {
    let Some(tracefs) = tracefs() else { return };
    let Some((_made, instance)) = Made::new(&tracefs, "partial") else { return };
    bound(|cpu| {
        let pipe = instance.raw_pipe(cpu).unwrap();
        let mut page = vec![0xaa; pipe.page_bytes()];
        assert_eq!(pipe.read(&mut page).unwrap(), None);
        instance.write("trace_marker", "first mark").unwrap();
        assert_eq!(pipe.read(&mut page).unwrap(), Some(pipe.page_bytes()));
        let first = committed(&page);
        assert!((16..256).contains(&first), "{first} bytes for one short mark");
        assert!(contains(&page[16..16 + first], "first mark"));
        assert_eq!(pipe.read(&mut page).unwrap(), None);

        instance.write("trace_marker", "second mark").unwrap();
        assert_eq!(pipe.read(&mut page).unwrap(), Some(pipe.page_bytes()));
        let counted = &page[16..16 + committed(&page)];
        assert!(contains(counted, "second mark") && !contains(counted, "first mark"));
        assert_eq!(pipe.read(&mut page).unwrap(), None);
    });
}

#[test]
fn every_mark_comes_out_exactly_once_and_in_order() {
    let Some(tracefs) = tracefs() else { return };
    let Some((_made, instance)) = Made::new(&tracefs, "order") else { return };
    bound(|cpu| {
        let pipe = instance.raw_pipe(cpu).unwrap();
        let mut page = vec![0; pipe.page_bytes()];
        let mut text = String::new();
        for mark in 0..500 {
            instance.write("trace_marker", &format!("<{mark}>")).unwrap();
            // Read at odd moments, so that full and partly filled pages both occur.
            while mark % 170 == 0 && pipe.read(&mut page).unwrap().is_some() {
                text.push_str(&marks(&page));
            }
        }
        while pipe.read(&mut page).unwrap().is_some() {
            text.push_str(&marks(&page));
        }
        let written: Vec<String> = (0..500).map(|mark| format!("<{mark}>")).collect();
        assert_eq!(text, written.concat());
    });
}

/// The `<...>` of digits in the bytes of a page that count.
fn marks(page: &[u8]) -> String {
    let counted = String::from_utf8_lossy(&page[16..16 + committed(page)]).into_owned();
    let inside = counted.split('<').skip(1).filter_map(|rest| {
        let (mark, _) = rest.split_once('>')?;
        let is_mark = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_digit());
        is_mark.then(|| format!("<{mark}>"))
    });
    inside.collect()
}

#[test]
fn a_buffer_smaller_than_a_page_is_refused_and_loses_nothing() {
    let Some(tracefs) = tracefs() else { return };
    let Some((_made, instance)) = Made::new(&tracefs, "small") else { return };
    bound(|cpu| {
        let pipe = instance.raw_pipe(cpu).unwrap();
        instance.write("trace_marker", "kept").unwrap();
        let mut page = vec![0; pipe.page_bytes()];
        let short = page.len() - 1;
        assert!(matches!(pipe.read(&mut page[..short]), Err(SysError::Invalid { .. })));
        assert!(pipe.read(&mut page).unwrap().is_some());
        assert!(contains(&page, "kept"));
    });
}

#[test]
fn an_instance_with_an_open_pipe_is_busy() {
    let Some(tracefs) = tracefs() else { return };
    let Some((made, instance)) = Made::new(&tracefs, "busy") else { return };
    let pipe = instance.raw_pipe(affinity::get()[0]).unwrap();
    let refusal = tracefs.remove_instance(&made.name).unwrap_err();
    assert_eq!(refusal.errno(), Some(Errno::BUSY));
    assert!(refusal.to_string().contains("close it first"), "{refusal}");
    drop(pipe);
    tracefs.remove_instance(&made.name).unwrap();
}

/// Runs `body` on a thread that has mounts of its own: what it mounts nobody else sees.
fn with_own_mounts(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: only this thread's view of mounts changes, and it ends with the thread.
            let answer = unsafe { libc::unshare(libc::CLONE_NEWNS) };
            if answer < 0 {
                return whylate_suite::missing(&"a mount namespace needs CAP_SYS_ADMIN");
            }
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            rustix::mount::mount_change("/", private).unwrap();
            body();
        });
        thread.join().unwrap();
    });
}

fn unmount_everywhere() {
    while let Ok(Tracefs { place: Place::Mounted(path), .. }) = Tracefs::open() {
        rustix::mount::unmount(&path, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn tracefs_is_found_where_it_is_mounted_whatever_the_path() {
    with_own_mounts(|| {
        if tracefs().is_none() {
            return;
        }
        unmount_everywhere();
        let folder = tempfile::Builder::new().prefix("a b").tempdir().unwrap();
        let flags = MountFlags::empty();
        rustix::mount::mount("none", folder.path(), "tracefs", flags, None).unwrap();
        let tracefs = Tracefs::open().unwrap();
        assert_eq!(tracefs.place(), &Place::Mounted(folder.path().to_owned()));
        assert!(tracefs.read("available_events").unwrap().contains("sched:sched_switch"));
        rustix::mount::unmount(folder.path(), UnmountFlags::DETACH).unwrap();
    });
}

#[test]
fn tracefs_is_reached_though_it_is_mounted_nowhere() {
    with_own_mounts(|| {
        if private().is_none() {
            return;
        }
        unmount_everywhere();
        let before = std::fs::read("/proc/thread-self/mounts").unwrap();
        let tracefs = Tracefs::open().unwrap();
        assert_eq!(tracefs.place(), &Place::Private);
        assert!(tracefs.read("available_events").unwrap().contains("sched:sched_switch"));
        let Some((_made, instance)) = Made::new(&tracefs, "private") else { return };
        instance.write("tracing_on", "0").unwrap();
        assert_eq!(instance.read("tracing_on").unwrap(), "0\n");
        assert_eq!(std::fs::read("/proc/thread-self/mounts").unwrap(), before);
    });
}

#[test]
fn a_mount_that_is_read_only_is_not_preferred_to_a_private_one() {
    with_own_mounts(|| {
        if private().is_none() {
            return;
        }
        unmount_everywhere();
        let folder = tempfile::tempdir().unwrap();
        let flags = MountFlags::empty();
        rustix::mount::mount("none", folder.path(), "tracefs", flags, None).unwrap();
        rustix::mount::mount_remount(folder.path(), MountFlags::BIND | MountFlags::RDONLY, "")
            .unwrap();
        assert_eq!(Tracefs::open().unwrap().place(), &Place::Private);
        rustix::mount::unmount(folder.path(), UnmountFlags::DETACH).unwrap();
    });
}

#[test]
fn both_ways_lead_to_the_same_files() {
    let Some(tracefs) = tracefs() else { return };
    let Some((made, _instance)) = Made::new(&tracefs, "shared") else { return };
    let Some(private) = private() else { return };
    assert!(private.instances().unwrap().contains(&made.name));
    let instance = private.open_instance(&made.name).unwrap();
    drop(private);
    // Files outlast the mount they were opened through.
    assert!(instance.exists("trace"));
}
