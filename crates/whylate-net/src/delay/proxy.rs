//! The delay line for messages: datagrams or streams, from clients to one server and back, through ordinary
//! sockets and without a capability.
//!
//! The same laws, seeds and truths as for frames. A message arrives when the system call that took it has
//! returned, and departs immediately before the one that hands it on: the kernel's stacks on both sides are
//! in what a client measures, and not in the residence. One thread serves all sockets. Bounded: clients,
//! connections, messages and bytes that wait; a delay that needs more than that is refused, a datagram that
//! finds no room all the same is dropped and counted, a stream is not read until it does.

mod base;
mod error;
mod line;
mod run;
mod tcp;
mod udp;
mod words;

pub use error::ProxyError;
pub use line::{MOST_MESSAGES, MOST_WAITING_BYTES};
pub use run::{OpenedProxy, PROXY_CAPACITY, Proxy, ProxyPlan, ProxyTold, open_proxy};
pub use tcp::{MOST_CONNECTIONS, MOST_UNDER_WAY};
pub use udp::MOST_CLIENTS;
pub(crate) use words::leads_to_itself;
pub use words::{ProxyKind, ProxyWay};
