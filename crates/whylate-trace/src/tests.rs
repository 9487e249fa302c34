//! Tests of formats, pages and events: built by hand, recorded, and made of anything.

mod builder;
mod events;
mod formats;
mod hostile;
mod messages;
mod pages;
mod recorded;
mod rendering;
