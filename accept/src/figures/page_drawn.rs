//! How soon a page of many gaps is drawn.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::RunDir;
use whylate_report::html;

use crate::chromium::Browser;
use crate::{needs, two_cpus};

/// Gaps of the page that is opened.
const GAPS: u64 = 100_000;

pub(crate) const FIGURE: Figure = Figure {
    name: "page_drawn",
    method: "from opening the page of a run of 100 000 planted gaps in Chromium to its last figure, as the page \
             tells it",
    rows: &[Row { claim: "time to the last figure", unit: "ms", bound: Bound::AtMost(2_000.0) }],
    rounds: 6,
    seconds: 1.0,
    most_taken: None,
    needs: || needs::can_run("chromium"),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let chromium = needs::program("chromium").unwrap();
    let home = tempfile::tempdir().unwrap();
    let (directory, page) = (home.path().join("run"), home.path().join("report.html"));
    two_cpus::run(&directory, GAPS);
    let directory = RunDir::open(&directory).unwrap();
    html::write_to(&directory, &directory.read_run().unwrap(), &page).unwrap();
    let mut browser = Browser::start(&chromium);
    browser.resize(1280, 900);
    browser.open(&page);
    Ok(vec![Reading::Value(browser.drawn())])
}
