//! A recursive walk that reads every file, over and over.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::Advice;

use super::failed;
use crate::child::Meter;
use crate::error::LoadError;

/// Bytes of one read.
const CHUNK: usize = 64 << 10;
/// Directories below one another: our trees have two.
const DEEPEST: usize = 8;

/// Walks until it is told to stop. What was read is dropped from the page cache, so that the next
/// walk reads it from the file system again.
pub(super) fn walk(tree: &Path, meter: &Meter) -> Result<(), LoadError> {
    let mut buffer = vec![0; CHUNK];
    while !meter.stopped() {
        directory(tree, 0, &mut buffer, meter).map_err(failed("walk over its files"))?;
    }
    Ok(())
}

fn directory(path: &Path, depth: usize, buffer: &mut [u8], meter: &Meter) -> std::io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        if meter.stopped() {
            return Ok(());
        }
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if depth < DEEPEST {
                directory(&entry.path(), depth + 1, buffer, meter)?;
            }
            continue;
        }
        let mut file = File::open(entry.path())?;
        while file.read(buffer)? > 0 {}
        // A file system without a cache of pages has nothing to drop.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        meter.add(1);
    }
    Ok(())
}
