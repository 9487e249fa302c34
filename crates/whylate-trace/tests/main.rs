//! Tests of formats, pages and events: built by hand, recorded, and taken live from the kernel.

mod builder;
mod events;
mod formats;
mod hostile;
mod live;
mod pages;
mod recorded;
mod rendering;
