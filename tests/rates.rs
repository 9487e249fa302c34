//! Huge pages for the tests of boxes between two hosts.

use whylate_host::guard::Settings;

use crate::needs;

/// Huge pages for testpmd, given back with this. Memory in one piece is not to be had at every moment.
pub(crate) fn huge_pages() -> Option<Settings> {
    crate::huge_pages::reserve().map_err(|why| needs::absent(&why)).ok()
}
