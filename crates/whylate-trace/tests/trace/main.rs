//! Tests of formats, pages and events: built by hand, recorded, and taken live from the kernel.

#[cfg(test)]
mod builder;
#[cfg(test)]
mod events;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod live;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod rendering;
