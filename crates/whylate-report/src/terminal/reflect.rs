//! What a reflector did, on a terminal.

use whylate_model::reflect::{Reflected, ReflectedClient, ReflectedEnd, Residence};
use whylate_model::{Nanos, Printable};

use super::text::{Page, count};
use super::{Percentiles, Style};
use crate::html::utc;

/// Clients that are listed; JSON has all.
const MOST_CLIENTS: usize = 16;

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
    let cpu = of.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let ended = match of.ended {
        ReflectedEnd::Stopped => "until it was stopped",
        ReflectedEnd::Idle => "until nothing came any more",
        ReflectedEnd::ClientFinished => "until a client had finished",
    };
    page.paragraph(&format!(
        "Since {} for {}, {ended}; on {cpu}, waiting by {}.",
        utc(of.since_ns),
        of.lasted,
        of.wait
    ));
    if let Some(outcome) = &of.busy_polling {
        page.paragraph(&format!("Busy polling: {outcome}."));
    }
    page.blank();
    page.table(&["messages", "count"], &counts(of), &[0]);
    if let Some(why) = &of.first_unsent {
        page.note(&format!("the first answer not sent: {}", Printable(why)));
    }
    if let Some(residence) = &of.residence {
        show_residence(&mut page, residence, style.percentiles);
    } else {
        page.blank();
        page.paragraph("No measured request was answered.");
    }
    show_clients(&mut page, of);
    for warning in &of.warnings {
        page.note(&warning.to_string());
        page.advice(&warning.advice());
    }
    page.finish()
}

fn counts(of: &Reflected) -> Vec<Vec<String>> {
    let mut rows = vec![
        ("requests answered", of.answered),
        ("of warm-ups, answered", of.warm_ups),
        ("that ask for no answer", of.unasked),
        ("foreign, not answered", of.foreign),
        ("answers that could not be sent", of.unsent),
    ];
    if let Some(connections) = &of.connections {
        rows.extend([
            ("connections taken", connections.accepted),
            ("connections turned away", connections.turned_away),
            ("connections closed: no message", connections.broken),
            ("connections cut in a message", connections.cut),
            ("connections that did not read", connections.stuck),
        ]);
    }
    rows.into_iter().map(|(what, n)| vec![what.to_owned(), count(n)]).collect()
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
    page.paragraph(&format!(
        "Resolution {}; the counter's frequency is known to {:.2} ppm.",
        Nanos(residence.resolution_ns.ceil() as u64),
        residence.frequency_bound_ppm
    ));
}

fn show_clients(page: &mut Page, of: &Reflected) {
    if of.clients.is_empty() {
        return;
    }
    page.section("Clients");
    let value = |value: Option<Nanos>| value.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let row = |client: &ReflectedClient| {
        let who = client.from.clone().unwrap_or_else(|| "unnamed".to_owned());
        vec![
            Printable(&who).to_string(),
            count(client.answered),
            value(client.median),
            value(client.max),
            if client.finished { "finished" } else { "-" }.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = of.clients.iter().take(MOST_CLIENTS).map(row).collect();
    page.table(&["from", "answered", "median", "max", "end"], &rows, &[0, 4]);
    let more = of.clients.len().saturating_sub(MOST_CLIENTS) as u64;
    if more > 0 {
        page.paragraph(&format!("{} more are in --format json.", count(more)));
    }
    if of.clients_replaced > 0 {
        page.paragraph(&format!("{} made room for others.", count(of.clients_replaced)));
    }
    if of.without_account > 0 {
        let n = count(of.without_account);
        page.paragraph(&format!("{n} requests are in nobody's account: too many clients at once."));
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::reflect::{REFLECTED_VERSION, ReflectedConnections, ResidencePercentile};

    use super::*;

    fn percentile(percent: f64, value: Option<u64>) -> ResidencePercentile {
        let value = value.map(Nanos);
        ResidencePercentile { percent, value, low: value, high: value }
    }

    fn reflected() -> Reflected {
        Reflected {
            format_version: REFLECTED_VERSION,
            protocol: "raw".to_owned(),
            backend: "tcp over ipv4".to_owned(),
            listening: "127.0.0.1:11111".to_owned(),
            wait: "busy-poll".to_owned(),
            busy_polling: Some("of the receiving queue 7 (NAPI id)".to_owned()),
            cpu: None,
            since_ns: 951_827_696_000_000_000,
            lasted: Nanos(2_000_000_000),
            ended: ReflectedEnd::Idle,
            answered: 300,
            warm_ups: 20,
            unasked: 0,
            foreign: 3,
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
            "until nothing came any more",
            "queue 7",
            "connections closed: no message",
            "900ns",
            "> 4.00us",
            "Resolution 10ns",
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
        let nothing = Reflected { residence: None, clients: Vec::new(), ..reflected() };
        let text = render(&nothing, Style::default());
        assert!(text.contains("No measured request was answered."), "{text}");
    }
}
