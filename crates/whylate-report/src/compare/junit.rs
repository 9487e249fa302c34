//! Limits as a JUnit report, which CI systems show: one test case for each limit and series.
//!
//! An exceeded limit is a failure, one that cannot be judged an error, and one whose excess is not
//! shown passes with its numbers. The form is what Jenkins, GitLab and GitHub's actions read.

use std::fmt::Write;

use super::{Comparison, Judged, Outcome};
use crate::svg;

/// The report, as XML.
#[must_use]
pub fn report(comparison: &Comparison) -> String {
    let limits = &comparison.limits;
    let count = |wanted: fn(&Outcome) -> bool| limits.iter().filter(|l| wanted(&l.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Exceeded { .. }));
    let errors = count(|outcome| matches!(outcome, Outcome::CannotBeJudged { .. }));
    let numbers = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", limits.len());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites name=\"whylate compare\" {numbers}>");
    let _ = writeln!(xml, "  <testsuite name=\"limits\" {numbers} skipped=\"0\" time=\"0\">");
    for judged in limits {
        case(&mut xml, judged);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, judged: &Judged) {
    let class = match judged.series.as_str() {
        "" => "whylate.compare".to_owned(),
        series => format!("whylate.compare.{series}"),
    };
    let (class, name) = (escaped(&class), escaped(&judged.limit));
    let said = escaped(&judged.sentence());
    let _ = write!(xml, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"0\">");
    let _ = match judged.outcome {
        Outcome::Exceeded { .. } => {
            write!(xml, "<failure type=\"exceeded\" message=\"{said}\">{said}</failure>")
        }
        Outcome::CannotBeJudged { .. } => {
            write!(xml, "<error type=\"cannot be judged\" message=\"{said}\">{said}</error>")
        }
        Outcome::Held { .. } | Outcome::NothingToExceed { .. } | Outcome::NotShown { .. } => {
            write!(xml, "<system-out>{said}</system-out>")
        }
    };
    xml.push_str("</testcase>\n");
}

/// Text for an attribute or an element. Control characters, which XML cannot hold, are spelled out.
fn escaped(text: &str) -> String {
    svg::escaped(text).to_string().replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let text = escaped("<a b=\"c\">&'\u{1b}[31m\u{0}\u{ffff}]]>");
        assert_eq!(text, "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\\u{1b}[31m\\u{0}\u{fffd}]]&gt;");
    }
}
