//! Safe wrappers of the kernel interfaces that whylate uses.
