//! `whylate rtt --compare-backends`.

use anyhow::Result;
use whylate_model::Nanos;
use whylate_record::rtt::backends::{Comparison, record};
use whylate_record::rtt::{FlowRequest, Request};

use super::rtt::request;
use super::{Beginning, Exit, begin, conclude};
use crate::cli::{BackendList, Rtt};
use crate::failure;
use crate::parse::SHORTEST;
use crate::progress::Shown;
use crate::stopping::Stopping;

pub(super) fn run(options: &Rtt, list: &BackendList, stopping: &Stopping) -> Result<Exit> {
    let comparison = match comparison(options, list)? {
        Ok(comparison) => comparison,
        Err(refusal) => {
            failure::refuse(refusal);
            return Ok(Exit::Usage);
        }
    };
    if let Err(error) = comparison.check() {
        failure::refuse(error);
        return Ok(Exit::Usage);
    }
    let mut progress = Shown::usual();
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..comparison.request };
    let comparison = Comparison { request, ..comparison };
    let recorded = record(&comparison, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, stopping)
}

/// What is asked, or why it leaves too little time to each.
fn comparison(options: &Rtt, list: &BackendList) -> Result<Result<Comparison, String>> {
    let asked = request(options)?;
    // The first is measured twice in each round.
    let parts = u64::from(options.backends.rounds) * (list.0.len() as u64 + 1);
    let share = |time: Nanos| Nanos(time.0 / parts);
    let (duration, warmup) = (share(asked.duration), share(asked.warmup));
    if duration < SHORTEST {
        return Ok(Err(format!(
            "{} of {parts} measurements ({} rounds of {} backends, the first one twice) leave {duration} to \
             each, and the least is {SHORTEST}: give a longer --duration or fewer --rounds",
            asked.duration,
            options.backends.rounds,
            list.0.len(),
        )));
    }
    let flows = asked.flows.into_iter().map(|flow| match list.0.first() {
        Some(first) => FlowRequest { transport: first.transport, wait: first.wait, ..flow },
        None => flow,
    });
    let flows: Vec<FlowRequest> = flows.collect();
    let first = list.0.first().map(ToString::to_string).unwrap_or_default();
    let question = match flows.first() {
        Some(flow) => format!(
            "What does it save to {} and back to go by another way than {first}?",
            flow.target
        ),
        None => asked.question,
    };
    let request = Request { flows, duration, warmup, question, ..asked };
    let (rounds, both_ends) = (options.backends.rounds, options.backends.both_ends);
    Ok(Ok(Comparison { request, backends: list.0.clone(), rounds, both_ends }))
}
