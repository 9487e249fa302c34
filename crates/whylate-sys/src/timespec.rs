//! Nanoseconds as the kernel's pair of seconds and nanoseconds.

use rustix::time::Timespec;

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// For calls of `rustix`.
#[inline]
pub(crate) fn of(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / NANOS_PER_SECOND) as i64, tv_nsec: (ns % NANOS_PER_SECOND) as _ }
}

/// For calls of the C library and for raw ones.
#[inline]
pub(crate) fn raw(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / NANOS_PER_SECOND) as libc::time_t,
        tv_nsec: (ns % NANOS_PER_SECOND) as libc::c_long,
    }
}

/// Of what a clock wrote; times before its zero are zero.
#[inline]
pub(crate) fn nanos(of: libc::timespec) -> u64 {
    (of.tv_sec.max(0) as u64)
        .saturating_mul(NANOS_PER_SECOND)
        .saturating_add(of.tv_nsec.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_survive_the_pair() {
        for ns in [0, 1, 999_999_999, NANOS_PER_SECOND, 31 * NANOS_PER_SECOND + 7] {
            assert_eq!(nanos(raw(ns)), ns);
            let pair = of(ns);
            assert_eq!(pair.tv_sec as u64 * NANOS_PER_SECOND + pair.tv_nsec as u64, ns);
        }
        assert_eq!(nanos(libc::timespec { tv_sec: -1, tv_nsec: 5 }), 5);
    }
}
