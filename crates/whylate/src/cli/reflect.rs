//! `whylate reflect`, and the other end of a probe that whylate itself starts.

use std::path::PathBuf;

use clap::Args;
use whylate_model::Nanos;
use whylate_net::Speaks;
use whylate_port::{Transport, Wait};

use super::Findings;
use crate::parse;

/// Answers requests: the other end of a measurement.
///
/// Every well-formed request is answered, of as many clients as come; an answer is never longer than
/// its request. It says `listening on ADDRESS` on standard error when it does. At its end it tells
/// what was answered, what was not and why, and how long requests stayed here: its own share of each
/// round trip, from the counter's reading after the receiving system call to the one before the
/// sending one.
///
/// Example: whylate reflect --listen 198.18.0.2:11111 --port tcp --wait epoll --cpu 1
///
/// Cost: the CPU that the waiting takes: a whole one for spin and busy-poll, a wake-up for each
/// message otherwise.
///
/// Limits: 512 connections and accounts of 256 clients at a time; more are turned away and counted.
/// Without --listen it is reached from this host alone. It answers whoever reaches it: keep it off
/// networks that you do not trust.
///
/// Exit status: 0 done, 1 when it could not listen, 2 usage.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reflect {
    /// Address and port to listen at, or a path for unix; port 0 takes any that is free [default:
    /// 127.0.0.1:11111, or the server of the bed]
    #[arg(long, value_name = "WHERE", conflicts_with = "feed")]
    pub(crate) listen: Option<String>,
    /// What carries the messages: udp, tcp or unix
    #[arg(long, value_name = "PORT", default_value = "udp", conflicts_with = "feed")]
    pub(crate) port: Transport,
    /// Listen at all sockets of this list, with lines like U:198.18.0.2:11111 and T:[::1]:11111
    #[arg(long, value_name = "FILE")]
    pub(crate) feed: Option<PathBuf>,
    /// How to wait: block, poll, epoll, busy-poll, spin or io-uring [default: block for one socket,
    /// epoll for tcp and lists]
    #[arg(long, value_name = "WAIT")]
    pub(crate) wait: Option<Wait>,
    /// What the clients speak: raw (whylate's own) or sockperf
    #[arg(long, value_name = "NAME", default_value = "raw")]
    pub(crate) protocol: Speaks,
    /// Inside the server of this bed of `whylate lab`
    #[arg(long, value_name = "NAME")]
    pub(crate) bed: Option<String>,
    /// Only what comes and goes by this interface; a multicast group needs it
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Bytes for what came and was not read yet [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub(crate) receive_buffer: Option<u64>,
    /// CPU to run on
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<u32>,
    /// Run under SCHED_FIFO
    #[arg(long, value_name = "PRIO", num_args = 0..=1, default_missing_value = "50",
          value_parser = parse::priority)]
    pub(crate) fifo: Option<u8>,
    /// End after so long without a message, or `never`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse::idle)]
    pub(crate) idle: Nanos,
    /// End when the first client says that it has finished
    #[arg(long)]
    pub(crate) once: bool,
    /// Do not hold /dev/cpu_dma_latency at 0 (idle states stay as they are)
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// How to print what was done
    #[arg(long, value_enum, default_value_t = Findings::Text)]
    pub(crate) format: Findings,
}

/// The other end of the check-up's messages.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReflectStdin {
    /// CPU to run on.
    #[arg(long)]
    pub(crate) cpu: u32,
    /// How to wait for a message: block or spin.
    #[arg(long, default_value = "block")]
    pub(crate) wait: Wait,
}
