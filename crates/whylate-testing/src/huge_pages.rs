//! Huge pages for testpmd, given back with what is returned, and by the next start of whylate where this
//! process was killed.
//!
//! On small ones its driver for AF_XDP sends from beyond the memory that it has told the kernel of, and such
//! frames go nowhere.

use std::path::Path;

use whylate_host::guard::Settings;
use whylate_host::journal::Journal;

const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
/// Of 2 MB: testpmd's memory.
const NEEDED: u64 = 160;

fn reserved() -> Option<u64> {
    number_in(PAGES)
}

/// How many there are that nobody uses.
pub fn free() -> Option<u64> {
    number_in(FREE)
}

fn number_in(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Does this kernel have any such pages?
pub fn can_be_had() -> Result<(), String> {
    reserved().map(|_| ()).ok_or_else(|| "this kernel has no huge pages of 2 MB".to_owned())
}

/// Has the kernel keep as many more as it takes, or tells why it does not.
pub fn reserve() -> Result<Settings, String> {
    can_be_had()?;
    let before = reserved().unwrap_or_default();
    let journal = Journal::open().map_err(|error| error.to_string())?;
    let mut settings = Settings::new(&journal);
    match settings.set(Path::new(PAGES), &(before + NEEDED).to_string()) {
        Ok(_) => Ok(settings),
        Err(refusal) => Err(format!("testpmd has no huge pages: {refusal}")),
    }
}
