//! The guest of the tests of the whole tool.

#[path = "../../tests/guest/archive.rs"]
mod archive;
#[path = "../../tests/guest/machine.rs"]
pub(crate) mod machine;
