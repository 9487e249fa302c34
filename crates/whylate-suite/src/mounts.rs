//! Where file systems of the kernel are mounted, on the machine whose files lie below a root.

use std::path::{Path, PathBuf};

/// The usual places of the kernel's tracing, in the order in which whylate looks at them. The second stands in
/// the list of mounts only once it was entered.
const TRACING: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Places where file systems of this kind are mounted.
#[must_use]
pub fn mounted(root: &Path, is_kind: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string(root.join("proc/mounts")).unwrap_or_default();
    let place = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        is_kind(kind).then(|| root.join(plain(place).trim_start_matches('/')))
    };
    mounts.lines().filter_map(place).collect()
}

/// As the kernel writes a path there, spaces, tabs, line ends and backslashes are `\ooo`.
fn plain(path: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(path.to_owned(), |path, (written, meant)| path.replace(written, meant))
}

/// Where the kernel's tracing is: at the usual places, or wherever else it is mounted. Nowhere for whoever may
/// not enter it.
#[must_use]
pub fn tracefs(root: &Path) -> Option<PathBuf> {
    let usual = TRACING.iter().map(|place| root.join(place));
    let others = mounted(root, |kind| kind == "tracefs");
    // The folder that waits for a mount is empty.
    usual.chain(others).find(|place| place.join("tracing_on").is_file())
}

/// The file of a setting; none where the kernel's tracing, which it belongs to, is not mounted.
pub(crate) fn place(root: &Path, setting: &str) -> Option<PathBuf> {
    let of_tracing = Path::new(setting).strip_prefix(TRACING[0]);
    of_tracing.map_or_else(|_| Some(root.join(setting)), |file| Some(tracefs(root)?.join(file)))
}
