//! `whylate compare`.

use std::path::Path;

use anyhow::{Context, Result};
use whylate_model::output;
use whylate_model::trust::Level;
use whylate_report::compare::{self, Outcome, Request, junit};
use whylate_report::{first_of_comparison, full_of_comparison};

use super::{Exit, Refused, style};
use crate::cli::{Compare, Shape};
use crate::out;

pub(super) fn run(options: &Compare) -> Result<Exit> {
    let compared = compare::compare(&request(options)?)?;
    let comparison = &compared.comparison;
    if let Some(file) = &options.html {
        write(file, &compare::html(&compared))?;
    }
    if let Some(file) = &options.junit {
        write(file, &junit::report(comparison))?;
    }
    match options.format {
        Shape::Text => {
            out::print(if options.full {
                full_of_comparison(comparison, style())
            } else {
                first_of_comparison(comparison, style())
            })?;
        }
        Shape::Json => {
            let text = comparison.to_json().context("cannot write the comparison as JSON")?;
            out::print(text)?;
        }
    }
    let any = |wanted: fn(&Outcome) -> bool| {
        comparison.limits.iter().any(|judged| wanted(&judged.outcome))
    };
    Ok(if any(|outcome| matches!(outcome, Outcome::Exceeded { .. })) {
        Exit::LimitExceeded
    } else if any(|outcome| matches!(outcome, Outcome::CannotBeJudged { .. })) {
        Exit::PoorTrust
    } else if !comparison.says_anything() {
        Exit::CouldNotMeasure
    } else if comparison.trust().level() == Level::Poor {
        Exit::PoorTrust
    } else {
        Exit::Done
    })
}

fn request(options: &Compare) -> Result<Request> {
    let (before, after) = match (&options.runs[..], &options.baseline[..]) {
        ([before, after], []) => (vec![before.clone()], vec![after.clone()]),
        ([], baseline) => {
            let taken: Vec<String> = baseline.iter().map(|of| of.display().to_string()).collect();
            let text = format!(
                "--baseline takes all that follows ({}), and nothing is left to compare with it: name \
                 the runs that came after first",
                taken.join(" ")
            );
            return Err(Refused::with_next(
                text,
                "whylate compare AFTER --baseline BEFORE".to_owned(),
            ));
        }
        (after, baseline) if !baseline.is_empty() => (baseline.to_vec(), after.to_vec()),
        (others, _) => {
            let text = format!(
                "without --baseline, compare takes two run directories, BEFORE and AFTER, and got {}",
                others.len()
            );
            let next = match others.len() {
                0 | 1 => "whylate compare BEFORE AFTER",
                _ => "whylate compare AFTER.. --baseline BEFORE..  for several runs per side",
            };
            return Err(Refused::with_next(text, next.to_owned()));
        }
    };
    Ok(Request {
        before,
        after,
        series: options.series.clone(),
        across: options.across.clone(),
        side_by_side: options.side_by_side,
        limits: options.limits.clone(),
    })
}

/// Writes a file, or stdout for `-`.
fn write(file: &Path, text: &str) -> Result<()> {
    if file == Path::new("-") {
        return out::print(text);
    }
    let written = output::write(file, text.as_bytes());
    written.with_context(|| format!("cannot write {}", file.display()))
}
