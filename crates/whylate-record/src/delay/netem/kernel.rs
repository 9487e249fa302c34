//! Has this kernel netem already? Asking for it would load its module, which is a change of the machine:
//! so files are read, and nothing is asked for.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file that is read: a configuration has a few hundred KiB.
const MAX_BYTES: u64 = 8 << 20;
/// The module, and where the kernel has it in its tree.
const MODULE: &str = "sch_netem";
/// What the configuration says of one that is built in.
const BUILT_IN: &str = "CONFIG_NET_SCH_NETEM=y";

/// Where netem is to be had without a module being loaded, in words.
///
/// # Errors
/// It is not, and why.
pub(super) fn already(root: &Path) -> Result<&'static str, String> {
    let modules = text(root, "proc/modules");
    let is_loaded =
        |text: &String| text.lines().any(|line| line.split_whitespace().next() == Some(MODULE));
    if modules.as_ref().is_some_and(is_loaded) {
        return Ok("its module was loaded before");
    }
    if root.join("sys/module").join(MODULE).exists() || is_built_in(root) {
        return Ok("it is built in");
    }
    // A kernel that cannot load modules loads none for being asked.
    if modules.is_none() {
        return Ok("this kernel loads no modules");
    }
    Err(format!(
        "its module is not loaded, and to load it would change this machine: `modprobe {MODULE}` does, and \
         `rmmod {MODULE}` undoes it"
    ))
}

fn is_built_in(root: &Path) -> bool {
    let Some(release) = text(root, "proc/sys/kernel/osrelease") else { return false };
    let release = release.trim();
    // It comes from a file: it must not lead elsewhere.
    if release.is_empty() || release.contains('/') || release.starts_with('.') {
        return false;
    }
    let names = |path: String, is: &dyn Fn(&str) -> bool| {
        text(root, &path).is_some_and(|text| text.lines().any(is))
    };
    let file = format!("/{MODULE}.ko");
    names(format!("lib/modules/{release}/modules.builtin"), &|line: &str| line.ends_with(&file))
        || names(format!("boot/config-{release}"), &|line: &str| line == BUILT_IN)
        || names(format!("lib/modules/{release}/config"), &|line: &str| line == BUILT_IN)
}

fn text(root: &Path, path: &str) -> Option<String> {
    let mut text = String::new();
    let file = File::open(root.join(path)).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with these files.
    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_module_that_is_loaded_or_built_in_is_found_and_one_that_would_be_loaded_is_refused() {
        const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.1.0\n");
        let none = ("proc/modules", "sch_fq 20480 0 - Live 0x0\nsch_netem_not 1 0 - Live 0x0\n");
        let builtin = "lib/modules/6.1.0/modules.builtin";
        let already = |files: &[(&str, &str)]| already(host(files).path());
        let refused = already(&[none, RELEASE]).unwrap_err();
        assert!(refused.contains("modprobe sch_netem"), "{refused}");
        let loaded = ("proc/modules", "sch_netem 32768 1 - Live 0x0\n");
        assert_eq!(already(&[loaded]), Ok("its module was loaded before"));
        for file in [
            ("sys/module/sch_netem/refcnt", "0\n"),
            (builtin, "kernel/net/sched/sch_fq.ko\nkernel/net/sched/sch_netem.ko\n"),
            ("boot/config-6.1.0", "CONFIG_X=m\nCONFIG_NET_SCH_NETEM=y\n"),
        ] {
            assert_eq!(already(&[none, RELEASE, file]), Ok("it is built in"), "{file:?}");
        }
        for file in [
            (builtin, "kernel/net/sched/sch_fq.ko\n"),
            ("boot/config-6.1.0", "CONFIG_NET_SCH_NETEM=m\n"),
        ] {
            assert!(already(&[none, RELEASE, file]).is_err(), "{file:?}");
        }
        assert_eq!(already(&[RELEASE]), Ok("this kernel loads no modules"));
        // A release that leads elsewhere names nothing.
        let elsewhere = ("proc/sys/kernel/osrelease", "../../boot\n");
        assert!(already(&[none, elsewhere]).is_err());
    }
}
