//! Pages of sets of threads.

use whylate_model::run::Closure;
use whylate_model::threads::ThreadSummary;

use crate::execution::recorded::tests::{empty, merged, sample, set};
use crate::html::render;

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let begin = format!("<section id=\"{id}\">");
    let from = page.find(&begin).unwrap_or_else(|| panic!("no section {id}"));
    let length = page[from..].find("</section>").unwrap();
    &page[from..from + length]
}

#[test]
fn the_page_of_a_set_has_its_deadlines_its_trace_and_its_switches() {
    let run = set();
    let page = render(&sample(), &run);
    assert!(page.contains(&crate::answer(&run)), "the answer is missing");
    insta::assert_snapshot!(section(&page, "threads"));
    let trace = section(&page, "trace");
    assert!(trace.contains("Around the first missed deadline, of job 0 of thread video"));
    for (id, words) in [
        ("trace", "ms since the beginning of the run"),
        ("switches", "time of a context switch"),
        ("ccdf-jobs", "response time"),
        ("ccdf-wake-ups", "wake-up latency"),
    ] {
        let section = section(&page, id);
        assert!(section.contains("<svg") && section.contains("<table>"), "{id}");
        assert!(section.contains(words), "{id}");
    }
    assert!(!page.contains("class=\"note\""), "nothing is missing");
    assert!(page.len() < 300_000, "{} bytes", page.len());
}

#[test]
fn without_blocks_the_page_says_so_and_has_the_rest() {
    let (_home, directory) = empty();
    let page = render(&directory, &set());
    assert!(page.contains("there is no execution trace: the run directory holds no block"));
    assert!(!page.contains("id=\"trace\"") && !page.contains("id=\"switches\""));
    assert!(section(&page, "threads").contains("CPU time of each thread"));

    let page = render(&sample(), &merged());
    assert!(page.contains("there is no execution trace: a sum of recordings"));
    assert!(!page.contains("id=\"trace\""));
}

#[test]
fn hostile_names_of_threads_stay_text() {
    let hostile = "</script><script>alert(1)</script>\"'\u{1b}[31m\u{202e}\0";
    let mut run = set();
    for thread in &mut run.threads {
        thread.name = hostile.to_owned();
        thread.workload = hostile.to_owned();
        thread.policy = hostile.to_owned();
        thread.reservation = Some(hostile.to_owned());
        thread.closure = Closure::Broken(hostile.to_owned());
    }
    let page = render(&sample(), &run);
    assert_eq!(page.matches("<script>").count(), 2, "uPlot and our own");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains('\0'));
    assert!(section(&page, "threads").contains("&lt;script&gt;alert(1)"));
}

#[test]
fn a_thousand_threads_stay_within_the_page() {
    let mut run = set();
    let one = run.threads[1].clone();
    run.threads = (0..1_024)
        .map(|number| ThreadSummary { name: format!("thread-{number}"), ..one.clone() })
        .collect();
    let page = render(&sample(), &run);
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert!(section(&page, "threads").contains("more, in run.json"));
}
