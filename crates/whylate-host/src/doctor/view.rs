//! Reading the files of a host for the checks: bounded, and never more certain than the file.
//!
//! A file gives text, or says why it gives none: absent, not permitted, larger than a setting can
//! be, not text. A link that leads out of a collected tree is not followed, since it would show
//! this host's settings as that one's. Nothing is written.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use whylate_model::doctor::Evidence;
use whylate_model::{CpuId, Printable};

use crate::cpus;
use crate::files::{open_plain, under};

/// Longest text of a setting: the kernel gives one page to a file of sysfs, and lists of CPUs of
/// the largest machines stay below four.
const MAX_SETTING: u64 = 64 << 10;

/// Longest text of a table: `/proc/interrupts` of a host with thousands of CPUs stays below.
const MAX_TABLE: u64 = 16 << 20;

/// Longest kernel configuration, unpacked: real ones stay below 400 KiB.
const MAX_CONFIG: u64 = 4 << 20;

/// Most entries of a directory that are looked at: processes or interrupts of a large host.
const MAX_ENTRIES: usize = 65_536;

/// Hexadecimal digits of the longest mask of CPUs: one bit for each of 65 536.
const MAX_MASK_DIGITS: usize = 16_384;

/// Characters of a value that evidence repeats.
const MAX_SAID: usize = 160;

/// The files below a root.
#[derive(Debug)]
pub(super) struct View {
    root: PathBuf,
    /// Where the root really is, for telling links that lead out of it; `None` for `/`.
    fence: Option<PathBuf>,
}

/// A value and where it was read.
#[derive(Debug, Clone)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) evidence: Evidence,
}

/// Why there is no value.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// There is no such file, which may be a fact about the kernel.
    pub(super) absent: bool,
    pub(super) evidence: Evidence,
}

pub(super) type Look<T> = Result<Said<T>, Missing>;

impl View {
    /// Fails when the root cannot be read at all.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        std::fs::read_dir(root)?;
        let fence = if root == Path::new("/") { None } else { Some(root.canonicalize()?) };
        Ok(Self { root: root.to_owned(), fence })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The trimmed text of a setting.
    pub(super) fn text(&self, path: &str) -> Look<String> {
        self.read(path, MAX_SETTING).map(|text| {
            let value = text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
            let evidence = seen(path, if value.is_empty() { "(empty)" } else { &value });
            Said { value, evidence }
        })
    }

    /// The text of a file that holds a table; evidence is for the check to quote.
    pub(super) fn table(&self, path: &str) -> Result<String, Missing> {
        self.read(path, MAX_TABLE)
    }

    /// A setting that `parse` understands; one that it does not is missing, with what it said.
    pub(super) fn look<T>(&self, path: &str, parse: impl Fn(&str) -> Option<T>) -> Look<T> {
        let said = self.text(path)?;
        match parse(&said.value) {
            Some(value) => Ok(Said { value, evidence: said.evidence }),
            None => Err(Missing {
                absent: false,
                evidence: seen(path, &format!("`{}`, which is not understood", said.evidence.said)),
            }),
        }
    }

    /// A whole number without sign.
    pub(super) fn number(&self, path: &str) -> Look<u64> {
        self.look(path, |text| text.parse().ok())
    }

    /// A list of CPUs; nothing, and `(null)` of features that are off, is an empty one.
    pub(super) fn cpu_list(&self, path: &str) -> Look<Vec<CpuId>> {
        self.look(path, cpu_list)
    }

    /// A hexadecimal mask of CPUs.
    pub(super) fn cpu_mask(&self, path: &str) -> Look<Vec<CpuId>> {
        self.look(path, cpu_mask)
    }

    /// The choice in brackets, as in `always [madvise] never`.
    pub(super) fn chosen(&self, path: &str) -> Look<String> {
        self.look(path, |text| {
            let (_, rest) = text.split_once('[')?;
            let (choice, others) = rest.split_once(']')?;
            // The kernel marks one; where two are, nobody knows which is in force.
            let one = !choice.is_empty() && !choice.contains('[') && !others.contains(['[', ']']);
            one.then(|| choice.to_owned())
        })
    }

    /// Names in a directory, sorted; none where it cannot be read.
    pub(super) fn names(&self, dir: &str) -> Vec<String> {
        let path = under(&self.root, dir);
        if !self.inside(&path) {
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
        let names = entries.take(MAX_ENTRIES).flatten();
        let mut names: Vec<String> =
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Numbers among the names in a directory, ascending.
    pub(super) fn numbers(&self, dir: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.names(dir).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        let path = under(&self.root, path);
        self.inside(&path) && path.exists()
    }

    /// The configuration the kernel of this release was built with, and where it was found.
    pub(super) fn kernel_config(&self, release: Option<&str>) -> Option<(String, &'static str)> {
        self.any_config(release).filter(|(text, _)| is_config(text))
    }

    fn any_config(&self, release: Option<&str>) -> Option<(String, &'static str)> {
        if let Some(config) = self.packed_config() {
            return Some((config, "/proc/config.gz"));
        }
        // The release comes from a file: it must not lead elsewhere.
        let release = release.filter(|name| !name.is_empty() && !name.contains('/'))?;
        let at = |path: String| self.read(&path, MAX_CONFIG).ok();
        at(format!("/boot/config-{release}")).map(|config| (config, "/boot/config-*")).or_else(
            || Some((at(format!("/lib/modules/{release}/config"))?, "/lib/modules/*/config")),
        )
    }

    fn packed_config(&self) -> Option<String> {
        let path = under(&self.root, "/proc/config.gz");
        let packed = self.inside(&path).then(|| open_plain(&path).ok())??;
        let mut config = Vec::new();
        let unpacked = flate2::read::GzDecoder::new(packed.take(MAX_CONFIG));
        unpacked.take(MAX_CONFIG + 1).read_to_end(&mut config).ok()?;
        (config.len() as u64 <= MAX_CONFIG).then_some(())?;
        String::from_utf8(config).ok()
    }

    fn read(&self, path: &str, most: u64) -> Result<String, Missing> {
        let file = under(&self.root, path);
        let missing = |absent, why: &str| Err(Missing { absent, evidence: seen(path, why) });
        if !self.inside(&file) {
            return missing(false, "a link that leads out of the tree");
        }
        let mut bytes = Vec::new();
        let read = open_plain(&file).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
        if let Err(why) = read {
            let absent = why.kind() == io::ErrorKind::NotFound;
            let why = match why.kind() {
                io::ErrorKind::NotFound => "absent".to_owned(),
                io::ErrorKind::PermissionDenied => "not permitted to read".to_owned(),
                _ => format!("not readable: {why}"),
            };
            return missing(absent, &why);
        }
        if bytes.len() as u64 > most {
            return missing(false, &format!("longer than {most} bytes, which it never is"));
        }
        if bytes.is_empty() {
            // A list without CPUs is a line of its own. A copy that failed leaves nothing.
            return missing(false, "empty, and the kernel ends every line");
        }
        match String::from_utf8(bytes) {
            Ok(text) if is_text(&text) => Ok(text),
            _ => missing(false, "not text"),
        }
    }

    /// Does this path stay below the root? One that does not exist does.
    fn inside(&self, path: &Path) -> bool {
        let Some(fence) = &self.fence else { return true };
        path.canonicalize().map_or(true, |real| real.starts_with(fence))
    }
}

/// Every kernel of these architectures has a rate of its tick; what lacks one is no configuration,
/// and no option is missing from it.
fn is_config(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("CONFIG_HZ="))
}

/// Device trees end with NUL; no file of a host holds another control character.
fn is_text(text: &str) -> bool {
    text.trim_end_matches('\0').chars().all(|c| !c.is_control() || c.is_whitespace())
}

/// Evidence, fit to print.
pub(super) fn seen(source: &str, said: &str) -> Evidence {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = Printable(&line).to_string();
    let said = match line.char_indices().nth(MAX_SAID) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    };
    Evidence { source: Printable(source).to_string(), said }
}

pub(super) fn cpu_list(text: &str) -> Option<Vec<CpuId>> {
    if text.is_empty() || text == "(null)" {
        return Some(Vec::new());
    }
    let mut list = cpus::parse_list(text).ok()?;
    list.sort_unstable();
    list.dedup();
    Some(list)
}

/// `ff`, or groups of 32 bits: `3,ffffffff`.
pub(super) fn cpu_mask(text: &str) -> Option<Vec<CpuId>> {
    if text.len() > MAX_MASK_DIGITS + MAX_MASK_DIGITS / 8 {
        return None;
    }
    let groups: Vec<&str> = text.split(',').collect();
    let mut list = Vec::new();
    for (place, group) in (0_u32..).zip(groups.iter().rev()) {
        let whole = groups.len() == 1 || place as usize + 1 == groups.len() || group.len() == 8;
        let digits = !group.is_empty() && group.bytes().all(|b| b.is_ascii_hexdigit());
        if !whole || !digits || group.len() > 8 {
            return None;
        }
        let bits = u32::from_str_radix(group, 16).ok()?;
        let set = (0..32).filter(|bit| bits & (1 << bit) != 0);
        list.extend(set.map(|bit| CpuId(place * 32 + bit)));
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::Tree;

    fn view(tree: &Tree) -> View {
        View::open(tree.root()).unwrap()
    }

    fn why(look: Look<String>) -> (bool, String) {
        let missing = look.unwrap_err();
        (missing.absent, missing.evidence.said)
    }

    #[test]
    fn a_setting_is_its_text_without_the_space_around_it() {
        let tree = Tree::empty();
        tree.file("/sys/knob", " 1\n").bytes("/sys/model", b"board\0");
        assert_eq!(view(&tree).text("/sys/knob").unwrap().value, "1");
        assert_eq!(view(&tree).text("/sys/model").unwrap().value, "board");
        assert_eq!(view(&tree).text("/sys/knob").unwrap().evidence, seen("/sys/knob", "1"));
    }

    #[test]
    fn what_cannot_be_read_says_why_and_only_an_absent_file_is_absent() {
        let tree = Tree::empty();
        tree.bytes("/sys/binary", &[0xff, 0xfe, b'1'])
            .bytes("/sys/zeros", &[0, 0, b'1'])
            .bytes("/sys/huge", &vec![b'1'; MAX_SETTING as usize + 1])
            .file("/sys/dir/file", "")
            .file("/sys/nothing", "");
        std::os::unix::fs::symlink("/proc/version", tree.root().join("sys/link")).unwrap();
        let view = view(&tree);
        let told = |path| why(view.text(path));
        assert_eq!(told("/sys/none"), (true, "absent".to_owned()));
        assert_eq!(told("/sys/binary"), (false, "not text".to_owned()));
        assert_eq!(told("/sys/zeros"), (false, "not text".to_owned()));
        assert!(told("/sys/nothing").1.starts_with("empty"));
        assert!(told("/sys/huge").1.contains("longer than"));
        assert!(told("/sys/dir").1.contains("not a plain file"));
        assert!(told("/sys/link").1.contains("out of the tree"));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let tree = Tree::empty();
        tree.file("/sys/x", "");
        let pipe = tree.root().join("sys/pipe");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        );
        if let Err(refusal) = made {
            return crate::tree::skip(&refusal);
        }
        assert!(why(view(&tree).text("/sys/pipe")).1.contains("not a plain file"));
    }

    #[test]
    fn a_value_that_is_not_understood_is_missing_and_quoted() {
        let tree = Tree::empty();
        tree.file("/sys/knob", "banana\n");
        let missing = view(&tree).number("/sys/knob").unwrap_err();
        assert!(!missing.absent);
        assert!(missing.evidence.said.contains("banana"), "{missing:?}");
    }

    #[test]
    fn one_choice_is_in_brackets_and_two_are_none() {
        let tree = Tree::empty();
        let chosen = |text: &str| {
            tree.file("/sys/knob", text);
            view(&tree).chosen("/sys/knob").map(|said| said.value).ok()
        };
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        for lie in ["[always] [never]\n", "[always [never]\n", "[always] never]\n", "[]\n", "x\n"] {
            assert_eq!(chosen(lie), None, "{lie}");
        }
    }

    #[test]
    fn masks_are_read_in_groups_of_32() {
        let ids = |list: &[u32]| list.iter().copied().map(CpuId).collect::<Vec<_>>();
        assert_eq!(cpu_mask("3"), Some(ids(&[0, 1])));
        assert_eq!(cpu_mask("00"), Some(ids(&[])));
        assert_eq!(cpu_mask("1,80000001"), Some(ids(&[0, 31, 32])));
        for nonsense in ["", "x", "1,1", "-1", "1,,1", "123456789"] {
            assert_eq!(cpu_mask(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn evidence_is_one_printable_line() {
        let evidence = seen("/sys/\u{1b}x", "a\n b\u{1b}[31m");
        assert_eq!(evidence.said, "a b\\u{1b}[31m");
        assert!(!evidence.source.contains('\u{1b}'));
        assert!(seen("/x", &"y".repeat(1000)).said.len() < 200);
    }

    proptest! {
        #[test]
        fn any_text_is_a_mask_or_none(text in ".{0,60}") {
            let _ = cpu_mask(&text);
            let _ = cpu_list(&text);
        }
    }
}
