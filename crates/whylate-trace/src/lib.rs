//! Kernel trace formats and ring-buffer pages, parsed into events.
