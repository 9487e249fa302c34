//! `whylate report DIR`.

use anyhow::Result;
use whylate_model::directory::RunDir;
use whylate_model::paper::Paper;
use whylate_report::execution::recorded::Recorded;
use whylate_report::paper::Parts;
use whylate_report::{Place, Traced, html};

use super::{Exit, Form, Refused};
use crate::cli::{Format, Report};
use crate::out::{self, say};

pub(super) fn run(options: &Report) -> Result<Exit> {
    let directory = RunDir::open(&options.run)?;
    if let Some(repeated) = Paper::read(&options.run)? {
        let of_a_run = [
            (options.timeline.is_some(), "--timeline"),
            (options.percentiles.is_some(), "--percentiles"),
        ];
        if let Some((_, name)) = of_a_run.into_iter().find(|(given, _)| *given) {
            return Err(Refused::because(format!(
                "{} holds a paper's experiments, and {name} is of one run: name the directory of a part, or leave \
                 {name} out",
                options.run.display()
            )));
        }
        return of_paper(options, &repeated);
    }
    let run = directory.read_checked()?;
    match &options.html {
        None => {
            let window = options.timeline.flatten();
            let recorded = Recorded::read(&directory, &run, window);
            let trace = options.timeline.is_some();
            let traced = recorded.as_ref().map(|recorded| Traced { recorded, trace });
            if trace && traced.is_none() {
                say!("there is no execution trace: this is not a run of a set of threads");
            }
            let Report { format, percentiles, .. } = *options;
            // What is drawn belongs to the whole report.
            let form = Form { format, percentiles, full: options.full || trace };
            super::print(&run, traced, Place { directory: Some(&options.run), again: true }, form)?;
        }
        Some(file) if file.as_os_str() == "-" => {
            let page = html::render(&directory, &run);
            out::with(|out| out.write_all(page.as_bytes()))?;
        }
        Some(file) => html::write_to(&directory, &run, file)?,
    }
    // The text tells it by itself; what other programs read has no place for it.
    if options.html.is_some() || options.format == Format::Json {
        run.files.problems.iter().for_each(|what| say!("`{}`: {what}", options.run.display()));
    }
    Ok(super::exit(&run))
}

/// A paper's experiments and their runs lie in one directory.
fn of_paper(options: &Report, repeated: &Paper) -> Result<Exit> {
    let parts = Parts::read(&options.run, repeated);
    match &options.html {
        None => {
            let Report { format, full, .. } = *options;
            let place = Place { directory: Some(&options.run), again: true };
            super::paper::print(repeated, &parts, place, format, full)?;
        }
        Some(file) if file.as_os_str() == "-" => {
            let page = whylate_report::paper::page(&options.run, repeated);
            out::with(|out| out.write_all(page.as_bytes()))?;
        }
        Some(file) => whylate_report::paper::write_to(file, &options.run, repeated)?,
    }
    if options.html.is_some() || options.format == Format::Json {
        parts.trust.poor().iter().for_each(|what| say!("`{}`: {what}", options.run.display()));
    }
    Ok(super::paper::exit(&parts))
}
