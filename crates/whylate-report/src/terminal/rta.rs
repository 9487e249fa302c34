//! A prediction on a terminal, and what was simulated and measured beside it.

use whylate_model::prediction::{
    DemandTest, MeasuredTask, PredictedPolicy, PredictedResponse, PredictedTask, Prediction,
    WorstJob,
};
use whylate_model::run::Run;
use whylate_model::{Nanos, Printable};

use super::Style;
use crate::numbers::{ABSENT, count, percent, time};
use crate::prediction::{LONGEST_GAPS, beside_measured, how_beside, told_jobs, violations};
use crate::render::terminal::Page;
use crate::svg::Table;

/// Tasks with a row each; the others are in the JSON.
const MOST_ROWS: usize = 256;
/// Slow jobs that are told one by one.
const MOST_JOBS: usize = 16;

/// What the columns of the first table mean.
const PREDICTED: &str = "C: what a job asks for at most; T: period; D: deadline; R: the longest \
                         response, from the nominal release and from the actual arrival; slack: D \
                         less R.";
/// A prediction alone, before or without a run.
#[must_use]
pub fn render_prediction(prediction: &Prediction, style: Style) -> String {
    let mut page = Page::new(style);
    let tasks = prediction.tasks.len();
    page.title(&question(tasks));
    tell(&mut page, prediction, "Predicted response times");
    page.finish()
}

/// The sections of a run that was predicted.
pub(super) fn sections(page: &mut Page, run: &Run) {
    let Some(prediction) = &run.prediction else { return };
    tell(page, prediction, "Predicted response times");
    if let Some(again) = &prediction.with_measured_jitter {
        jitter(page, prediction);
        tell(page, again, "Predicted again with the release jitter that was measured");
    }
}

fn question(tasks: usize) -> String {
    match tasks {
        1 => "Does 1 task meet its deadlines on one CPU?".to_owned(),
        more => format!("Do {more} tasks meet their deadlines on one CPU?"),
    }
}

fn answer(of: &Prediction) -> String {
    let by = match of.policy {
        PredictedPolicy::FixedPriority => "with fixed priorities",
        PredictedPolicy::EarliestDeadline => "under earliest deadline first",
        PredictedPolicy::Reservations => "inside their reservations",
    };
    let load = match percent(of.utilisation) {
        all if all == "100%" && of.utilisation > 1.0 => "just over 100%".to_owned(),
        load => load,
    };
    let refused = of.admission.is_some_and(|test| !test.admitted);
    let said = match of.feasible {
        _ if of.utilisation > 1.0 => "deadlines will be missed",
        _ if refused => "nothing is promised, for the kernel does not admit them",
        Some(true) => "all deadlines are met",
        Some(false) => "deadlines may be missed",
        None => "it is not known whether deadlines are met, for the search ended at its limit",
    };
    format!("By analysis {by}, {said}; the tasks ask for {load} of the CPU.")
}

fn tell(page: &mut Page, of: &Prediction, title: &str) {
    page.section(title);
    page.paragraph(&answer(of));
    predicted(page, of);
    for said in particulars(of) {
        page.item(&said);
    }
    of.notes.iter().for_each(|note| page.note(note));
    if of.tasks.iter().any(|task| task.simulated.is_some() || task.measured.is_some()) {
        let measured = of.tasks.iter().any(|task| task.measured.is_some());
        page.section(if measured {
            "Predicted beside measured"
        } else {
            "Predicted beside simulated"
        });
        beside(page, of);
        longest_gaps(page, of);
    }
}

/// A column that is there only where some task has it.
type Get = fn(&PredictedTask) -> Nanos;

fn predicted(page: &mut Page, of: &Prediction) {
    let shown = &of.tasks[..of.tasks.len().min(MOST_ROWS)];
    let any = |get: Get| shown.iter().any(|task| get(task).0 > 0);
    let optional: [(&str, Get); 3] = [
        ("jitter", |task| task.jitter),
        ("delay", |task| task.delay),
        ("blocking", |task| task.blocking),
    ];
    let optional: Vec<_> = optional.into_iter().filter(|(_, get)| any(*get)).collect();
    let by_priority = shown.iter().any(|task| task.priority.is_some());
    let each = shown.iter().any(|task| task.response.is_some());
    let mut head = vec!["task"];
    head.extend(by_priority.then_some("prio"));
    head.extend(["C", "T", "D"]);
    head.extend(optional.iter().map(|(name, _)| *name));
    if each {
        head.extend(["R nominal", "R actual", "slack"]);
    }
    let row = |task: &PredictedTask| {
        let mut row = vec![Printable(&task.name).to_string()];
        if by_priority {
            row.push(task.priority.map_or("-".to_owned(), |priority| priority.to_string()));
        }
        row.extend([task.execution, task.period, task.deadline].map(|time| time.to_string()));
        row.extend(optional.iter().map(|(_, get)| get(task).to_string()));
        if each {
            row.extend(response(task));
        }
        row
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    page.table(&head, &rows, &[]);
    if of.tasks.len() > shown.len() {
        page.item(&format!("{} more are in the JSON", of.tasks.len() - shown.len()));
    }
    if each {
        page.paragraph(PREDICTED);
    }
}

fn response(task: &PredictedTask) -> [String; 3] {
    let same = |text: &str| [text.to_owned(), text.to_owned(), "-".to_owned()];
    match task.response {
        Some(PredictedResponse::Bounded { nominal, actual }) => {
            let slack = task.slack_ns.map_or(ABSENT.to_owned(), |ns| time(ns as f64));
            [nominal.to_string(), actual.to_string(), slack]
        }
        Some(PredictedResponse::Unbounded) => same("unbounded"),
        Some(PredictedResponse::Undecided) => same("not found"),
        None => same("-"),
    }
}

/// What there is to say of the whole set.
fn particulars(of: &Prediction) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(of.assignment.as_ref().map(|by| format!("priorities: {}", Printable(by))));
    said.extend(of.overheads.as_ref().map(|costs| {
        let tick = match (costs.tick, costs.tick_period) {
            (Some(cost), Some(period)) => format!(", a tick of {cost} each {period}"),
            _ => String::new(),
        };
        let from = Printable(&costs.from);
        format!("overheads: two switches of {} for each job{tick}; {from}", costs.switch)
    }));
    said.extend(of.demand.map(|test| match test {
        DemandTest::Feasible { busy, deadlines } => {
            let deadlines = count(deadlines);
            format!(
                "demand never exceeds the time: {deadlines} deadlines in a busy period of {busy}"
            )
        }
        DemandTest::Infeasible { window, demand } => {
            format!("in a window of {window} deadlines ask for {demand}")
        }
        DemandTest::Overloaded => "demand exceeds the CPU in the long run".to_owned(),
        DemandTest::Undecided => "the demand test ended at its limit".to_owned(),
    }));
    said.extend(of.admission.map(|test| {
        let (reserved, limit) = (percent(test.reserved), percent(test.limit));
        let is = if test.admitted { "admitted" } else { "NOT admitted" };
        format!("reserved {reserved} of a limit of {limit}: {is}")
    }));
    said.extend(of.simulation.as_ref().map(|of| {
        let cut = if of.cut { "; it was ended by its limit" } else { "" };
        let (patterns, events) = (count(of.patterns), count(of.events));
        let s = if of.patterns == 1 { "" } else { "s" };
        let seed = of.seed;
        format!("simulated: {patterns} pattern{s} of releases, {events} events, seed {seed}{cut}")
    }));
    said
}

fn beside(page: &mut Page, of: &Prediction) {
    let shown = &of.tasks[..of.tasks.len().min(MOST_ROWS)];
    print(page, &beside_measured(of));
    if shown.iter().any(|task| task.measured.is_some()) {
        page.paragraph(how_beside(of));
    }
    for said in told_jobs(of) {
        page.item(&said);
    }
    let worst = |task: &'_ PredictedTask| {
        let job = task.measured.as_ref()?.worst.as_ref()?;
        Some(slowest(&task.name, job))
    };
    shown.iter().filter_map(worst).take(MOST_JOBS).for_each(|said| page.item(&said));
    for task in shown.iter().take(MOST_JOBS) {
        let never = task.measured.as_ref().map_or(0, |of| of.never_done);
        if never > 0 {
            let (name, never) = (Printable(&task.name), count(never));
            page.item(&format!(
                "task {name}: jobs not done though their deadline was over: {never}"
            ));
        }
    }
}

/// The gap behind each job that took longer than was predicted.
fn longest_gaps(page: &mut Page, of: &Prediction) {
    let Some(found) = violations(of) else { return };
    for table in [&found.by_cause, &found.first] {
        if !table.rows.is_empty() {
            page.section(&table.caption);
            print(page, table);
        }
    }
    found.more.iter().for_each(|said| page.item(said));
    page.paragraph(LONGEST_GAPS);
}

fn print(page: &mut Page, table: &Table) {
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
}

fn slowest(task: &str, of: &WorstJob) -> String {
    let gap = match &of.gap {
        Some(gap) => {
            let cause = gap.cause.as_deref().unwrap_or("nobody looked why");
            format!("; its longest gap took {}: {}", gap.length, Printable(cause))
        }
        None => "; no gap of it is stored".to_owned(),
    };
    format!(
        "task {}: job {} took {}; it did not have {}{gap}",
        Printable(task),
        of.job,
        of.response,
        crate::threads::taken(&of.taken)
    )
}

/// How late releases were.
fn jitter(page: &mut Page, of: &Prediction) {
    let rows: Vec<Vec<String>> = of
        .tasks
        .iter()
        .take(MOST_ROWS)
        .filter_map(|task| {
            let MeasuredTask { releases, .. } = task.measured.as_ref()?;
            let of = (*releases)?;
            Some(vec![
                Printable(&task.name).to_string(),
                count(of.n),
                of.least.to_string(),
                of.p999.map_or("-".to_owned(), |time| time.to_string()),
                of.jitter.to_string(),
            ])
        })
        .collect();
    page.section("Release jitter");
    page.table(&["task", "releases", "least late", "p99.9", "jitter"], &rows, &[]);
    page.paragraph(
        "Lateness of each arrival against its nominal release; p99.9 and jitter, the largest, count \
         from the least.",
    );
}

#[cfg(test)]
mod tests {
    use whylate_model::Ticks;
    use whylate_model::prediction::{
        AboveJob, Comparison, JobVerdict, JudgedJobs, MachineCause, MachineTime, OverBy, OverCause,
        OverJob, ReleaseJitter, WorstJobGap,
    };
    use whylate_model::threads::TakenFrom;

    use super::*;
    use crate::prediction::tests::predicted;

    fn text(of: &Prediction) -> String {
        render_prediction(of, Style::default())
    }

    /// Wherever its lines end.
    fn unwrapped(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_prediction_fits_into_eighty_columns_and_says_what_was_found() {
        let mut of = predicted(&[4, 12]);
        of.feasible = Some(false);
        of.tasks[1].jitter = Nanos(8_000_000);
        of.tasks[1].name = "a-name-of-thirty-two-letters-now".to_owned();
        of.overheads = Some(whylate_model::prediction::PredictedOverheads {
            switch: Nanos(3_000),
            tick: Some(Nanos(15_000)),
            tick_period: Some(Nanos(4_000_000)),
            from: "as given".to_owned(),
        });
        let text = text(&of);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = unwrapped(&text);
        for said in ["deadlines may be missed", "-2.00ms", "8.00ms", "15.0us each 4.00ms"] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn a_set_that_asks_for_more_than_the_cpu_will_miss_deadlines() {
        let mut of = predicted(&[4]);
        (of.feasible, of.utilisation) = (Some(false), 1.14);
        let said = answer(&of);
        assert!(said.contains("deadlines will be missed; the tasks ask for 114%"), "{said}");
        of.utilisation = 8_000_001.0 / 8e6;
        assert!(answer(&of).contains("ask for just over 100% of the CPU"), "{}", answer(&of));
        of.utilisation = 0.99;
        assert!(answer(&of).contains("deadlines may be missed"), "{}", answer(&of));
        let (reserved, limit) = (1.18, 0.95);
        of.admission =
            Some(whylate_model::prediction::Admission { reserved, limit, admitted: false });
        assert!(answer(&of).contains("does not admit them"), "{}", answer(&of));
    }

    #[test]
    fn of_jobs_that_were_never_done_nothing_is_said_that_nobody_knows() {
        let mut of = predicted(&[12]);
        of.tasks[0].measured = Some(MeasuredTask {
            jobs: 1_000,
            never_done: 3,
            over: 0,
            max: Some(Nanos(11_900_000)),
            comparison: None,
            judged: None,
            worst: None,
            over_by: Vec::new(),
            over_first: Vec::new(),
            releases: None,
        });
        let text = unwrapped(&text(&of));
        assert!(text.contains("not known: 3 never done"), "{text}");
    }

    #[test]
    fn what_is_unbounded_or_not_found_is_said_in_words() {
        let mut of = predicted(&[4, 4, 4]);
        of.feasible = None;
        of.tasks[0].response = Some(PredictedResponse::Unbounded);
        of.tasks[1].response = Some(PredictedResponse::Undecided);
        let text = unwrapped(&text(&of));
        assert!(text.contains("unbounded") && text.contains("not found"), "{text}");
        assert!(text.contains("not known"), "{text}");
    }

    #[test]
    fn jobs_are_told_by_what_they_are_put_down_to_and_a_violation_by_its_job() {
        let machine = |lost: u64, cause| MachineTime {
            lost_ns: Nanos(lost * 1_000),
            cause: Some(cause),
            cause_ns: Nanos(lost * 900),
        };
        let above = |job, response: u64, bound: u64, machine| AboveJob {
            job,
            release_ticks: Ticks(job),
            response_ns: Nanos(response * 1_000),
            bound_ns: Some(Nanos(bound * 1_000)),
            machine,
        };
        let by_machine = machine(2_000, MachineCause::NoEvent);
        let violated = machine(500, MachineCause::LateWakeUp);
        let first = |job, judged| OverJob {
            job,
            release: Ticks(job),
            response: Some(Nanos(5_000_000)),
            by: Nanos(1_000_000),
            gap: None,
            judged: Some(judged),
        };
        let mut of = predicted(&[4]);
        of.tasks[0].measured = Some(MeasuredTask {
            jobs: 1_007,
            never_done: 1,
            over: 8,
            max: Some(Nanos(6_000_000)),
            comparison: Some(Comparison::Violated { by: Nanos(1_000_000) }),
            judged: Some(JudgedJobs {
                within: 1_000,
                machine: 5,
                violated: 2,
                not_judged: 1,
                pessimistic_by_ns: None,
                most: Some(above(3, 6_000, 6_000, by_machine)),
                violated_first: vec![above(7, 5_000, 4_500, violated)],
            }),
            worst: None,
            over_by: Vec::new(),
            over_first: vec![
                first(3, JobVerdict::Machine { machine: by_machine }),
                first(7, JobVerdict::Violated { machine: violated }),
                first(9, JobVerdict::NotJudged),
            ],
            releases: None,
        });
        let mut run = crate::execution::recorded::tests::set();
        run.prediction = Some(of);
        run.evidence.steal_ns = Some(1e18);
        let text = crate::render(&run, Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let directory = crate::execution::recorded::tests::sample();
        let (text, page) = (unwrapped(&text), crate::html::render(&directory, &run).unwrap());
        for said in [
            "4.00ms 4.00ms 6.00ms 1,000 5 2 1",
            "the machine took most of job 3, which took 6.00ms: L = 2.00ms, of which hypervisor 1.80ms",
            "job 7 took 5.00ms, above even the R of 4.50ms with L = 500us, of which late wake-up 450us: \
             violated",
            "1 more violated",
            "3 5.00ms 1.00ms 2.00ms machine -",
            "9 5.00ms 1.00ms - not judged -",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let mut all = predicted(&[4]);
        all.tasks[0].measured = run.prediction.and_then(|mut of| of.tasks.remove(0).measured);
        let judged = all.tasks[0].measured.as_mut().and_then(|of| of.judged.as_mut()).unwrap();
        *judged = JudgedJobs {
            within: 9,
            pessimistic_by_ns: Some(Nanos(200_000)),
            ..JudgedJobs::default()
        };
        let within = unwrapped(&self::text(&all));
        assert!(
            within.contains("all jobs are within R, which is pessimistic by 200us"),
            "{within}"
        );
        for said in ["L = 2.00ms, of which hypervisor 1.80ms", "above even the R of 4.50ms"] {
            assert!(page.contains(said), "{said}");
        }
    }

    #[test]
    fn a_violated_task_is_told_with_its_job_and_gap_and_hostile_names_do_not_act() {
        let mut of = predicted(&[4]);
        of.tasks[0].name = "\u{1b}[31mred".to_owned();
        let gap = WorstJobGap {
            start: Ticks(1),
            length: Nanos(3_000_000),
            cause: Some("host\u{1b}[0m".to_owned()),
        };
        of.tasks[0].measured = Some(MeasuredTask {
            jobs: 1_000,
            never_done: 3,
            over: 5,
            max: Some(Nanos(7_000_000)),
            comparison: Some(Comparison::Violated { by: Nanos(3_000_000) }),
            judged: None,
            worst: Some(WorstJob {
                job: 77,
                release: Ticks(0),
                response: Nanos(7_000_000),
                taken: TakenFrom::default(),
                gap: Some(gap.clone()),
            }),
            over_by: vec![
                OverBy { cause: OverCause::Named { cause: "host\u{1b}[0m".to_owned() }, jobs: 4 },
                OverBy { cause: OverCause::NoGap, jobs: 1 },
            ],
            over_first: vec![
                OverJob {
                    job: 77,
                    release: Ticks(0),
                    response: Some(Nanos(7_000_000)),
                    by: Nanos(3_000_000),
                    gap: Some(gap),
                    judged: None,
                },
                OverJob {
                    job: 80,
                    release: Ticks(9),
                    response: None,
                    by: Nanos(6_000_000),
                    gap: None,
                    judged: None,
                },
            ],
            releases: Some(ReleaseJitter {
                n: 1_000,
                least: Nanos(50_000),
                jitter: Nanos(8_000_000),
                p999: None,
            }),
        });
        let mut run = crate::execution::recorded::tests::set();
        of.with_measured_jitter = Some(Box::new(predicted(&[9])));
        run.prediction = Some(of);
        let text = crate::render(&run, Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = unwrapped(&text);
        assert!(text.contains("above R by 3.00ms"), "{text}");
        assert!(text.contains("job 77 took 7.00ms"), "{text}");
        assert!(text.contains("their deadline was over: 3"), "{text}");
        assert!(text.contains("its longest gap took 3.00ms: host"), "{text}");
        assert!(text.contains("4 80.0% host"), "all by cause: {text}");
        assert!(text.contains("1 20.0% no gap of it is stored"), "{text}");
        assert!(text.contains("77 7.00ms 3.00ms 3.00ms host"), "one by one: {text}");
        assert!(text.contains("80 never done >= 6.00ms - no gap of it is stored"), "{text}");
        assert!(text.contains("3 more jobs took longer than R"), "{text}");
        assert!(text.contains("Predicted again") && text.contains("8.00ms"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
