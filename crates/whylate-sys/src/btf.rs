//! The kernel's own types: which number a function of the kernel has for a program that calls it.
//!
//! [BTF](https://docs.kernel.org/bpf/btf.html), `/sys/kernel/btf/vmlinux` (Linux 5.4, where the kernel
//! was built with it). Capability: none. Nothing of it is kept but the one number.

use std::path::Path;

use rustix::io::Errno;

use crate::error::SysError;

/// Where the kernel's types are.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// Bytes that are read at most: those of a kernel with everything are about 10 MB.
const MOST_BYTES: u64 = 64 << 20;

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// Bytes of each type before what its kind adds.
const TYPE: usize = 12;
const FUNCTION: u32 = 12;

/// The number of a function of the kernel that programs may call; none where the kernel has no such one,
/// or does not tell its types.
pub fn kernel_function(name: &str) -> Result<Option<u32>, SysError> {
    let what = || format!("read the types of the kernel in {KERNEL}");
    let bytes = match read(Path::new(KERNEL)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            return Err(SysError::call("read", what(), errno));
        }
    };
    function(&bytes, name).map_err(|why| SysError::invalid(what(), why))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The number of the function of this name among these types, which begin at 1.
fn function(bytes: &[u8], name: &str) -> Result<Option<u32>, &'static str> {
    let cut = "the types are cut short";
    let word = |at: usize| u32_at(bytes, at).ok_or(cut);
    if bytes.get(..2) != Some(&MAGIC.to_ne_bytes()[..]) {
        return Err("these are no types in this machine's order of bytes");
    }
    let header = word(4)? as usize;
    if header < HEADER {
        return Err("the header is too short");
    }
    let part = |offset: u32, length: u32| {
        let from = header.checked_add(offset as usize)?;
        bytes.get(from..from.checked_add(length as usize)?)
    };
    let types = part(word(8)?, word(12)?).ok_or(cut)?;
    let strings = part(word(16)?, word(20)?).ok_or(cut)?;
    let mut rest = types;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let (at, info) = (u32_at(rest, 0).ok_or(cut)?, u32_at(rest, 4).ok_or(cut)?);
        let (kind, members) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        if kind == FUNCTION && is_called(strings, at as usize, name) {
            return Ok(Some(number));
        }
        let more = added(kind, members).ok_or("a type of a kind that is not known")?;
        rest = rest.get(TYPE + more..).ok_or(cut)?;
    }
    Ok(None)
}

/// Bytes behind a type of this kind with so many members.
fn added(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, names, functions and floats have none.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers; variables and tags on declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections and wide enumerations.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumerations and prototypes.
        6 | 13 => 8 * members,
        _ => return None,
    })
}

fn is_called(strings: &[u8], at: usize, name: &str) -> bool {
    let Some(found) = strings.get(at..) else { return false };
    found.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of these kinds with so many members, each named by where its name stands in the strings.
    fn types(all: &[(u32, u32, usize)], strings: &str) -> Vec<u8> {
        let mut body = Vec::new();
        for &(name, kind, members) in all {
            for word in [name, (kind << 24) | members as u32, 0] {
                body.extend(word.to_ne_bytes());
            }
            body.extend(vec![0xee; added(kind, members).unwrap()]);
        }
        let mut bytes = Vec::from(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let words = [HEADER as u32, 0, body.len() as u32, body.len() as u32, strings.len() as u32];
        for word in words {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(body);
        bytes.extend(strings.as_bytes());
        bytes
    }

    /// An integer, a structure with two members, a prototype, and three functions.
    fn planted() -> Vec<u8> {
        let strings = "\0int\0call\0call_me\0other\0";
        let all = [(1, 1, 0), (5, 4, 2), (0, 13, 3), (10, 12, 0), (5, 12, 0), (18, 12, 0)];
        types(&all, strings)
    }

    #[test]
    fn a_function_has_the_number_of_its_place_and_nothing_else_of_that_name_is_one() {
        let bytes = planted();
        assert_eq!(function(&bytes, "call_me"), Ok(Some(4)));
        // A structure has the same name and comes before it.
        assert_eq!(function(&bytes, "call"), Ok(Some(5)));
        assert_eq!(function(&bytes, "other"), Ok(Some(6)));
        assert_eq!(function(&bytes, "int"), Ok(None));
        assert_eq!(function(&bytes, "othe"), Ok(None));
    }

    #[test]
    fn whatever_is_cut_or_claims_too_much_is_no_panic() {
        let bytes = planted();
        for length in 0..bytes.len() {
            let _ = function(&bytes[..length], "nowhere");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 4, 0x1f, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                let _ = function(&broken, "nowhere");
            }
        }
        assert!(function(b"ELF", "call").is_err());
    }

    #[test]
    fn this_kernel_has_functions_for_programs_or_does_not_tell() {
        if !Path::new(KERNEL).exists() {
            return crate::tests::skip(&"this kernel does not tell its types");
        }
        // Every kernel that tells its types has this one since Linux 5.13 or so.
        assert!(kernel_function("bpf_prog_run").unwrap_or(None).is_none_or(|id| id > 0));
        assert_eq!(kernel_function("no_kernel_has_such_a_function").unwrap(), None);
    }
}
