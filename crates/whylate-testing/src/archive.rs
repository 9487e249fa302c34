//! A root file system that a kernel unpacks when it starts, in the format that it reads (cpio's `newc`).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

/// Files and directories by their paths, with their modes.
#[derive(Default)]
pub struct Archive(BTreeMap<String, (u32, Vec<u8>)>);

impl Archive {
    /// A directory, and those above it.
    pub fn directory(&mut self, path: &str) {
        if let Some((above, _)) = path.trim_start_matches('/').rsplit_once('/') {
            self.directory(above);
        }
        self.put(path, DIRECTORY, Vec::new());
    }

    /// A file that may be run.
    pub fn file(&mut self, path: &str, content: Vec<u8>) {
        if let Some((above, _)) = path.trim_start_matches('/').rsplit_once('/') {
            self.directory(above);
        }
        self.put(path, FILE, content);
    }

    fn put(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.0.insert(path.trim_start_matches('/').to_owned(), (mode, content));
    }

    /// A program of this host, and the libraries that it is linked with, where it looks for them.
    pub fn program(&mut self, from: &Path, to: &str) {
        self.file(to, std::fs::read(from).unwrap());
        let linked = Command::new("ldd").arg(from).output().unwrap();
        let linked = String::from_utf8(linked.stdout).unwrap();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            self.file(library, std::fs::read(library).unwrap());
        }
    }

    /// All of it, as the kernel reads it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, (path, (mode, content))) in (1..).zip(&self.0) {
            entry(&mut bytes, number, (path, *mode), content);
        }
        entry(&mut bytes, 0, ("TRAILER!!!", 0), &[]);
        bytes
    }
}

/// One entry: its head in hexadecimal digits, its name and its content, each filled up to four bytes.
fn entry(to: &mut Vec<u8>, number: u32, (path, mode): (&str, u32), content: &[u8]) {
    let (length, name) = (content.len(), path.len() + 1);
    write!(to, "070701{number:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}", 0, 1).unwrap();
    write!(to, "{length:08x}{0:08x}{0:08x}{0:08x}{0:08x}{name:08x}{0:08x}", 0).unwrap();
    write!(to, "{path}\0").unwrap();
    to.resize(to.len().next_multiple_of(4), 0);
    to.extend_from_slice(content);
    to.resize(to.len().next_multiple_of(4), 0);
}
