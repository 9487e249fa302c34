//! What a reflector did, on a terminal.

use whylate_model::reflect::{Reflected, Residence};
use whylate_model::{Nanos, Printable};

use super::{Percentiles, Style};
use crate::numbers::count;
use crate::reflected;
use crate::render::terminal::Page;

/// All of it.
#[must_use]
pub fn render(of: &Reflected, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(&format!(
        "Reflected {} by {} at {}",
        of.protocol,
        of.backend,
        Printable(&of.listening)
    ));
    page.blocks(&reflected::said(of).collect::<Vec<_>>());
    if let Some(residence) = &of.residence {
        show_residence(&mut page, residence, style.percentiles);
    } else if of.answered == 0 {
        page.blank();
        page.paragraph("No measured request was answered.");
    }
    page.blocks(&reflected::clients(of).collect::<Vec<_>>());
    for warning in &of.warnings {
        page.note(&warning.to_string());
        page.advice(&warning.advice());
    }
    page.finish()
}

fn show_residence(page: &mut Page, residence: &Residence, columns: Percentiles) {
    page.section("Residence: from receiving a request to sending its answer");
    let shown: Vec<_> = residence
        .percentiles
        .iter()
        .filter(|one| columns.percents().any(|wanted| (wanted - one.percent).abs() < 1e-9))
        .collect();
    let names = shown.iter().map(|one| format!("p{}", one.percent));
    let head: Vec<String> = ["n", "min"]
        .map(str::to_owned)
        .into_iter()
        .chain(names)
        .chain(["max".to_owned()])
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let values = shown.iter().map(|one| {
        one.value.map_or_else(|| format!("> {}", residence.max), |value| value.to_string())
    });
    let row: Vec<String> = [count(residence.samples), residence.min.to_string()]
        .into_iter()
        .chain(values)
        .chain([residence.max.to_string()])
        .collect();
    page.table(&head, &[row], &[]);
    page.paragraph(
        "What a request waited in the socket or in the receiving ring before it was seen is not in it.",
    );
    page.paragraph(&format!(
        "Resolution {}; the counter's frequency is known to {:.2} ppm.",
        Nanos(residence.resolution_ns.ceil() as u64),
        residence.frequency_bound_ppm
    ));
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::reflect::{
        REFLECTED_VERSION, ReflectedClient, ReflectedConnections, ReflectedEnd, ResidencePercentile,
    };

    use super::*;

    fn percentile(percent: f64, value: Option<u64>) -> ResidencePercentile {
        let value = value.map(Nanos);
        ResidencePercentile { percent, value }
    }

    pub(crate) fn reflected() -> Reflected {
        Reflected {
            format_version: REFLECTED_VERSION,
            protocol: "raw".to_owned(),
            backend: "tcp over ipv4".to_owned(),
            listening: "127.0.0.1:11111".to_owned(),
            wait: "busy-poll".to_owned(),
            busy_polling: Some("of the receiving queue 7 (NAPI id)".to_owned()),
            socket: None,
            frames: None,
            program: None,
            cpu: None,
            since_ns: 951_827_696_000_000_000,
            lasted: Nanos(2_000_000_000),
            ended: ReflectedEnd::Idle,
            answered: 300,
            warm_ups: 20,
            one_way: 0,
            unasked: 0,
            foreign: 3,
            other_version: 0,
            unsent: 1,
            first_unsent: Some("did not take it\u{1b}[31m".to_owned()),
            connections: Some(ReflectedConnections {
                accepted: 2,
                turned_away: 0,
                broken: 1,
                cut: 0,
                stuck: 0,
            }),
            residence: Some(Residence {
                samples: 300,
                resolution_ns: 9.6,
                frequency_bound_ppm: 0.123,
                min: Nanos(800),
                percentiles: vec![
                    percentile(50.0, Some(900)),
                    percentile(99.0, None),
                    percentile(99.9, None),
                ],
                max: Nanos(4_000),
            }),
            clients: vec![ReflectedClient {
                cookie: None,
                from: Some("127.0.0.1:4321".to_owned()),
                answered: 300,
                warm_ups: 20,
                one_way: None,
                finished: true,
                median: Some(Nanos(900)),
                max: Some(Nanos(4_000)),
            }],
            clients_replaced: 0,
            without_account: 5,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_a_reflector_did_is_told_with_what_the_sample_cannot_show_left_out() {
        let text = render(&reflected(), Style::default());
        for words in [
            "Reflected raw by tcp over ipv4 at 127.0.0.1:11111",
            "until its idle timeout",
            "queue 7",
            "connections closed: no message",
            "900ns",
            "> 4.00us",
            "Resolution 10ns",
            "What a request waited in the socket",
            "127.0.0.1:4321",
            "5 requests are in nobody's account",
        ] {
            assert!(text.contains(words), "no `{words}` in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn one_that_answered_nothing_says_so() {
        let none = reflected();
        let nothing = Reflected { answered: 0, residence: None, clients: Vec::new(), ..none };
        let text = render(&nothing, Style::default());
        assert!(text.contains("No measured request was answered."), "{text}");
    }
}
