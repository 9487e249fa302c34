//! The name of a thread, as traces and `ps` show it.
//!
//! [`PR_SET_NAME(2const)`](https://man7.org/linux/man-pages/man2/PR_SET_NAME.2const.html).
//! Capability: none.

use std::ffi::CString;

use crate::SysError;

/// Bytes that the kernel keeps of a name.
pub const NAME_BYTES: usize = 15;

/// The calling thread's name.
#[must_use]
pub fn name() -> String {
    rustix::thread::name()
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// Names the calling thread; a name that the kernel would cut is refused.
pub fn set_name(name: &str) -> Result<(), SysError> {
    let what = || format!("name this thread `{name}`");
    if name.len() > NAME_BYTES {
        let why = format!("it has {} bytes, the kernel keeps {NAME_BYTES}", name.len());
        return Err(SysError::invalid(what(), why));
    }
    let text = CString::new(name).map_err(|_| SysError::invalid(what(), "it holds a zero byte"))?;
    rustix::thread::set_name(&text).map_err(|errno| SysError::call("prctl", what(), errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_name_it_was_given() {
        std::thread::spawn(|| {
            set_name("whylate/3").unwrap();
            assert_eq!(name(), "whylate/3");
            assert!(set_name("a name of 16 b..").is_err());
            assert!(set_name("a\0b").is_err());
            assert_eq!(name(), "whylate/3");
        })
        .join()
        .unwrap();
    }
}
