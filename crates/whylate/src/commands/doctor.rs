//! `whylate doctor`.

use std::path::Path;

use anyhow::{Context, Result};
use whylate_host::doctor::{COLLECT, Live, Request, examine};
use whylate_host::last_run;
use whylate_model::directory::RunDir;
use whylate_model::doctor::{Compared, Diagnosis};
use whylate_model::host::Fingerprint;
use whylate_report::{explained, first_of_diagnosis, fix_script, full_of_diagnosis};

use super::gaps::{CPUS, not_here};
use super::{Exit, Refused};
use crate::cli::{Doctor, Findings};
use crate::out;

pub(super) fn run(options: &Doctor) -> Result<Exit> {
    if options.collect_script {
        out::print(format_args!("{}\n", COLLECT.trim_end()))?;
        return Ok(Exit::Done);
    }
    let root = options.root.as_deref().unwrap_or(Path::new("/"));
    let here = root == Path::new("/");
    let live = here.then(|| Live::look(&std::env::current_dir().unwrap_or_else(|_| ".".into())));
    let last = here.then(last_run::recall);
    let request =
        Request { root, cpus: options.cpus.as_ref(), live: live.as_ref(), last: last.as_ref() };
    let refused = |error| not_here(&error, CPUS).unwrap_or_else(|| error.into());
    let mut diagnosis = examine(&request).map_err(refused)?;
    if let Some(run) = &options.diff {
        diagnosis.compared = Some(compared(run, &diagnosis.host)?);
    }
    if let Some(check) = &options.explain {
        let text = explained(&diagnosis, check, super::style());
        out::print(text.ok_or_else(|| unknown(check, &diagnosis))?)?;
        return Ok(Exit::Done);
    }
    if options.fix_script {
        out::print(fix_script(&diagnosis))?;
        return Ok(Exit::Done);
    }
    match options.format {
        Findings::Text => {
            let style = super::style();
            // What is fine is in the whole report alone.
            out::print(if options.full || options.all {
                full_of_diagnosis(&diagnosis, options.all, style)
            } else {
                first_of_diagnosis(&diagnosis, style)
            })?;
        }
        Findings::Json => {
            let text = serde_json::to_string_pretty(&diagnosis)
                .context("cannot write the diagnosis as JSON")?;
            out::print(text + "\n")?;
        }
    }
    Ok(Exit::Done)
}

/// A check that there is not, with those that there are.
fn unknown(check: &str, diagnosis: &Diagnosis) -> anyhow::Error {
    let names: Vec<&str> = diagnosis.symptoms.iter().map(|of| of.check.as_str()).collect();
    let told = format!("doctor has no check `{check}`; it has {}", names.join(", "));
    Refused::with_next(told, "whylate doctor --all".to_owned())
}

fn compared(run: &Path, host: &Fingerprint) -> Result<Compared> {
    let recorded = RunDir::open(run)?.read_sealed()?;
    Ok(Compared {
        with: run.display().to_string(),
        problem: recorded.files.problems.into_iter().next(),
        differences: recorded.host.differences(host),
        tool_version: recorded.tool_version,
    })
}
