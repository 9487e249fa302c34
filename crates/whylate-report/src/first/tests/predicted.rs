//! First screens of predictions without a run.

use whylate_model::Nanos;
use whylate_model::prediction::{
    Admission, DemandTest, FittingTask, PredictedOverheads, PredictedPolicy, PredictedResponse,
    PredictedTask, Prediction, Simulation,
};

use super::possible::assert_possible;
use super::style;
use crate::first_prediction;
use crate::numbers::scale::Letters;
use crate::prediction::tests::predicted;
use crate::terminal::{Style, full_prediction};

const MS: u64 = 1_000_000;

/// The command that asked.
fn words() -> Vec<String> {
    ["whylate", "rta", "--task", "3ms 8ms"].map(str::to_owned).to_vec()
}

fn shown(of: &Prediction) -> String {
    let screen = first_prediction(of, &words(), style());
    // The command of the user is a line, too.
    assert!(screen.lines().count() < 24, "{} lines:\n{screen}", screen.lines().count());
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line:?} in\n{screen}");
    }
    for said in ["Trust: ", "  whylate rta --task '3ms 8ms' --full", "--check  exits with 3 unless"]
    {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert_possible(&screen);
    screen
}

/// The tasks of the paper, with these responses and the verdict that follows.
fn two(responses_ms: [u64; 2]) -> Prediction {
    longer(3, responses_ms)
}

/// The same where the first of them executes for so long.
fn longer(audio_ms: u64, responses_ms: [u64; 2]) -> Prediction {
    let mut of = predicted(&responses_ms);
    for (task, (name, execution, period)) in
        of.tasks.iter_mut().zip([("audio", audio_ms, 8), ("video", 17, 33)])
    {
        task.name = name.to_owned();
        (task.execution, task.period) = (Nanos(execution * MS), Nanos(period * MS));
        (task.deadline, task.simulated) = (task.period, None);
        let response = task.nominal().unwrap_or_default();
        task.slack_ns = Some(task.period.0 as i64 - response.0 as i64);
    }
    of.assignment = Some("rate-monotonic (none were given)".to_owned());
    of.utilisation = audio_ms as f64 / 8.0 + 17.0 / 33.0;
    of.feasible = Some(of.tasks.iter().all(|task| task.slack_ns >= Some(0)));
    of
}

/// So many tasks of a millisecond that take half of the CPU: each waits for those before it.
fn many(tasks: u32) -> Prediction {
    let mut of = predicted(&[1]);
    let task = of.tasks.remove(0);
    of.utilisation = 0.5;
    for at in 0..tasks {
        let nominal = Nanos(u64::from(at + 1) * MS);
        let (execution, period) = (Nanos(MS), Nanos(2 * MS * u64::from(tasks)));
        let priority = Some(tasks - at);
        let response = Some(PredictedResponse::Bounded { nominal, actual: nominal });
        let slack_ns = Some(task.deadline.0 as i64 - nominal.0 as i64);
        let (name, simulated) = (format!("t{at:03}"), None);
        let own = PredictedTask { name, thread: at, response, slack_ns, simulated, ..task.clone() };
        of.tasks.push(PredictedTask { execution, period, priority, ..own });
    }
    of.feasible = Some(of.tasks.iter().all(|task| task.slack_ns >= Some(0)));
    of
}

fn answer(of: &Prediction) -> String {
    let screen = shown(of);
    screen.split_once("\n\n").unwrap().0.replace('\n', " ")
}

#[test]
fn deadlines_that_are_met_are_told_with_what_is_left_before_the_first_of_them() {
    let of = two([3, 29]);
    assert_eq!(
        answer(&of),
        "Yes, in theory: all deadlines are met, 4 ms or more to spare (CPU load 89%)."
    );
    insta::assert_snapshot!("met", shown(&of));
    let exact = two([3, 33]);
    assert!(answer(&exact).contains(", 0 ns or more to spare "), "{}", answer(&exact));
}

#[test]
fn a_task_that_misses_is_named_with_by_how_much() {
    let mut of = two([3, 37]);
    of.tasks[1].jitter = Nanos(8 * MS);
    assert_eq!(answer(&of), "No: video may miss its deadline by up to 4 ms (CPU load 89%).");
    assert!(shown(&of).contains("Trust: good."), "more overheads make it no better");
    insta::assert_snapshot!("missed", shown(&of));
    let of = two([9, 39]);
    assert!(
        answer(&of).starts_with("No: 2 of 2 tasks may miss their deadlines, video by up to 6 ms "),
        "{}",
        answer(&of)
    );
    let mut of = two([3, 29]);
    (of.feasible, of.tasks[1].slack_ns) = (Some(false), None);
    of.tasks[1].response = Some(PredictedResponse::Unbounded);
    assert!(answer(&of).contains("video may miss its deadline without a bound"), "{}", answer(&of));
}

#[test]
fn a_set_that_needs_more_than_the_cpu_says_how_much() {
    let mut of = longer(5, [5, 29]);
    of.tasks[1].response = Some(PredictedResponse::Unbounded);
    (of.tasks[1].slack_ns, of.feasible) = (None, Some(false));
    let bound = "the lowest priority never catches up";
    of.notes = vec!["the tasks need 114.0 % of the CPU".to_owned(), bound.to_owned()];
    assert_eq!(answer(&of), "No: video cannot meet its deadline. The tasks need 114% of the CPU.");
    let screen = shown(&of);
    assert!(screen.contains("\nThe lowest priority never catches up.\n"), "{screen}");
    assert!(!screen.contains("114.0"), "{screen}");
    insta::assert_snapshot!("overloaded", screen);
    of.utilisation = 8_000_001.0 / 8e6;
    assert!(answer(&of).ends_with("The tasks need just over 100% of the CPU."), "{}", answer(&of));
}

#[test]
fn a_change_that_is_enough_is_told_rounded_so_that_it_is_still_enough() {
    let mut of = two([5, 39]);
    (of.feasible, of.tasks[1].name) = (Some(false), "a-name-of-twenty-two-1".to_owned());
    let mut told = |execution: Option<u64>, period: Option<u64>| {
        let (execution, period) = (execution.map(Nanos), period.map(Nanos));
        of.fits = Some(FittingTask { task: 1, execution, period });
        let text = full_prediction(&of, style());
        assert!(text.contains("it fits with a"), "{text}");
        let screen = shown(&of).split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, told) = screen.split_once("More: ").unwrap();
        told.split_once(" whylate rta").unwrap().0.to_owned()
    };
    assert_eq!(
        told(Some(12_345_678), Some(47_000_001)),
        "it fits with at most 12.3 ms of execution for a-name-of-twe... (now 17 ms), or with a \
         period of at least 47.1 ms (now 33 ms)."
    );
    assert_eq!(
        told(Some(999_999), None),
        "it fits with at most 999 µs of execution for a-name-of-twe... (now 17 ms)."
    );
    assert_eq!(
        told(None, Some(999_999_001)),
        "it fits with a period of at least 1 s for a-name-of-twe... (now 33 ms)."
    );
}

#[test]
fn earliest_deadline_first_and_reservations_say_what_their_tests_found() {
    let mut of = two([4, 29]);
    of.policy = PredictedPolicy::EarliestDeadline;
    of.assignment = None;
    for task in &mut of.tasks {
        (task.priority, task.simulated) = (None, task.nominal());
    }
    let schedule = Vec::new();
    of.simulation =
        Some(Simulation { patterns: 107, events: 600_080, cut: false, seed: 1, schedule });
    of.demand = Some(DemandTest::Feasible { busy: Nanos(29 * MS), deadlines: 3 });
    let screen = shown(&of);
    assert!(!screen.contains("priority") && !screen.contains("--run"), "{screen}");
    insta::assert_snapshot!("edf", screen);
    (of.simulation, of.feasible) = (None, Some(false));
    of.demand = Some(DemandTest::Infeasible { window: Nanos(24 * MS), demand: Nanos(25 * MS) });
    let screen = shown(&of);
    assert!(screen.contains("within 24 ms deadlines need 25 ms of the CPU."), "{screen}");
    assert!(screen.contains("--simulate  checks"), "{screen}");
    of.policy = PredictedPolicy::Reservations;
    of.demand = None;
    of.admission = Some(Admission { reserved: 1.18, limit: 0.95, admitted: false });
    for task in &mut of.tasks {
        (task.response, task.slack_ns) = (None, None);
    }
    assert_eq!(
        answer(&of),
        "No: the kernel refuses these reservations: they take 118% of a CPU, and it grants 95%."
    );
    insta::assert_snapshot!("refused", shown(&of));
}

#[test]
fn what_was_not_found_is_said_to_be_unknown_and_overheads_change_what_is_left_out() {
    let mut of = two([3, 29]);
    of.feasible = None;
    (of.tasks[1].response, of.tasks[1].slack_ns) = (Some(PredictedResponse::Undecided), None);
    assert!(answer(&of).starts_with("Not known: the analysis ended at its limit "), "{of:?}");
    assert!(shown(&of).contains("--overhead measured"), "{}", shown(&of));
    of.overheads = Some(PredictedOverheads {
        switch: Nanos(3_000),
        tick: None,
        tick_period: None,
        from: "as given".to_owned(),
        doubt: None,
    });
    let screen = shown(&of);
    assert!(screen.contains("Interrupts other than the tick, and the hypervisor"), "{screen}");
    assert!(!screen.contains("--overhead measured"), "{screen}");
}

#[test]
fn of_many_tasks_those_with_least_to_spare_stand_first_and_the_others_are_counted() {
    for tasks in [1, 8, 9, 20, 200] {
        let mut of = many(tasks);
        for task in &mut of.tasks {
            task.name = format!("a-name-of-thirty-two-letters-{}", task.name);
            task.simulated = task.nominal();
            (task.jitter, task.delay) = (Nanos(MS), Nanos(2 * MS));
            task.blocking = Nanos(3 * MS);
        }
        of.notes = vec!["a note that is as long as it needs to be said".to_owned(); 9];
        let screen = shown(&of);
        assert!(tasks <= 10 || screen.contains("more: --full"), "{screen}");
        let plain =
            first_prediction(&of, &words(), Style { letters: Letters::Plain, ..Style::default() });
        assert!(plain.is_ascii(), "{plain}");
    }
    let screen = shown(&many(20));
    let said = "No: 10 of 20 tasks may miss their deadlines, t019 by up to 10 ms";
    assert!(screen.starts_with(said), "{screen}");
    insta::assert_snapshot!("tasks-20", screen);
}
