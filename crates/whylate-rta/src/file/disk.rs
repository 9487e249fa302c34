//! The one place of this crate that reads files: task sets and tables, plain files of a limited
//! size.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use super::{File, FileError, LONGEST_FILE, parse};

/// A million rows of sixteen bytes.
const LONGEST_TABLE: usize = 16 << 20;

/// Reads a task set. Tables are looked for beside it and below: a task set that somebody else wrote
/// opens nothing elsewhere.
pub fn read(path: &Path) -> Result<File, FileError> {
    let read = |why| FileError::Read { path: path.to_owned(), why };
    let Some(text) = text(path, LONGEST_FILE).map_err(read)? else {
        return Err(FileError::TooLarge);
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, &|name| beside(folder, name))
}

/// The text of the table at `path`, or why it cannot be had: for tables that a user named.
pub fn table(path: &str) -> Result<String, String> {
    table_at(Path::new(path))
}

fn table_at(path: &Path) -> Result<String, String> {
    let text = text(path, LONGEST_TABLE).map_err(|why| why.to_string())?;
    text.ok_or_else(|| {
        format!("it has more than {LONGEST_TABLE} bytes: shorten it, it is repeated anyway")
    })
}

/// The text of the table `name` in `folder` or below it: for tables that a task set names.
pub fn beside(folder: &Path, name: &str) -> Result<String, String> {
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("put it beside the task set, and name it without .. and without / at the \
                    beginning"
            .to_owned());
    }
    table_at(&folder.join(name))
}

/// The text of a plain file; none when it has more than `limit` bytes.
pub(crate) fn text(path: &Path, limit: usize) -> io::Result<Option<String>> {
    // Asked before it is opened: opening a pipe would wait for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_beside_the_set_is_read_and_one_elsewhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let set = |table: &str| {
            format!(
                "format_version = 1\n[[thread]]\nname = \"video\"\n\
                 workload = \"PERIODIC steps 33ms\"\nsteps = [\"run table({table})\"]\n"
            )
        };
        fs::write(folder.path().join("frames.txt"), "3ms\n4ms\n").unwrap();
        let path = folder.path().join("set.toml");
        fs::write(&path, set("frames.txt")).unwrap();
        assert_eq!(read(&path).unwrap().set.threads.len(), 1);
        for table in ["/etc/passwd", "../frames.txt", "gone.txt", "."] {
            fs::write(&path, set(table)).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("line 5, column 10: cannot read the table"), "{error}");
        }
    }

    #[test]
    fn what_is_no_plain_small_text_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.toml");
        let refusal = |path: &Path| read(path).unwrap_err().to_string();
        assert!(refusal(&path).contains("examples/*.toml"));
        assert!(refusal(folder.path()).contains("not a plain file"));
        assert!(refusal(Path::new("/dev/zero")).contains("not a plain file"));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(refusal(&path).contains("not UTF-8"));
        fs::write(&path, "#".repeat(LONGEST_FILE + 1)).unwrap();
        assert!(refusal(&path).contains("more than 1048576 bytes"));
        assert!(table("/dev/zero").is_err());
    }
}
