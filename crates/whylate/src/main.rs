//! The `whylate` command.

fn main() {}
