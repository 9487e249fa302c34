//! First screens of sets of threads: why deadlines were missed, why jobs took longer than was predicted, and
//! what threads without deadlines received.

use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::event::Softirq;
use whylate_model::prediction::{AboveJob, JudgedJobs, MachineCause, MachineJobs, MachineTime};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::threads::{Deadlines, MissCause, ThreadSummary};
use whylate_model::{Nanos, Ticks};

use super::large::set;
use super::{assert_fits, commanded, shown, style};
use crate::kept::kept;
use crate::numbers::count;

/// Causes of misses, in the order of their use here.
fn causes() -> [Cause; 12] {
    let (comm, class) = ("kworker/1:0".to_owned(), PriorityClass::Ordinary);
    let member =
        |comm: &str| Cause::Member { comm: comm.to_owned(), class: PriorityClass::RealTime };
    [
        member("t0"),
        Cause::Host,
        Cause::TimerLate,
        Cause::OwnDemand,
        Cause::Throttled,
        Cause::LeftOver,
        Cause::Thread { comm, class },
        Cause::IdleExit,
        Cause::Interrupt { name: "virtio1-req.0".to_owned() },
        Cause::Softirq { vector: Softirq::NetRx },
        Cause::Blocked,
        Cause::PageFault,
    ]
}

/// So many threads, the last of which missed most, by the first so many causes; of one miss of each nothing
/// is told.
fn missed(threads: usize, by: usize) -> Run {
    let mut run = set(threads);
    for (at, thread) in run.threads.iter_mut().enumerate() {
        let of = thread.deadlines.as_mut().unwrap();
        let each = |(number, cause)| MissCause { cause, misses: (at * (by - number)) as u64 };
        of.causes = causes().into_iter().take(by).enumerate().map(each).collect();
        of.misses = of.causes.iter().map(|of| of.misses).sum::<u64>() + u64::from(at > 0);
    }
    run
}

/// Columns and rows of the table with this head, without its first column; what is no number is 0.
fn table(screen: &str, head: &str) -> (Vec<String>, Vec<(String, Vec<u64>)>) {
    let mut lines = screen.lines().skip_while(|line| !line.starts_with(head));
    let first = lines.next().unwrap_or_else(|| panic!("no {head} in\n{screen}"));
    let names = first[head.len()..].split("  ").map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (label, cells) = words.split_at(words.len() - names.len());
        let number = |cell: &&str| cell.replace(',', "").parse().unwrap_or(0);
        (label.join(" "), cells.iter().map(number).collect())
    };
    let rows = lines.take_while(|line| !line.is_empty() && !line.contains(':')).map(row).collect();
    (names, rows)
}

#[test]
fn misses_by_cause_add_up_to_what_each_thread_missed_however_many_of_both_there_are() {
    for threads in [2, 4, 5, 20, 200] {
        for by in 1..=12 {
            let run = missed(threads, by);
            let screen = shown(&run, style());
            assert_fits(&screen);
            let (names, rows) = table(&screen, "misses caused by");
            let misses = |name: &str| {
                let own = run.threads.iter().find(|thread| thread.name == name);
                own.map(|thread| thread.deadlines.as_ref().unwrap().misses)
            };
            let mut left: u64 =
                run.threads.iter().map(|thread| thread.deadlines.as_ref().unwrap().misses).sum();
            for (column, name) in names.iter().enumerate() {
                let sum: u64 = rows.iter().map(|(_, cells)| cells[column]).sum();
                let is_rest = name.ends_with(" others");
                assert_eq!(sum, misses(name).unwrap_or(left), "{name} in\n{screen}");
                assert_eq!(is_rest, misses(name).is_none(), "{name} in\n{screen}");
                left -= sum;
            }
            assert_eq!(left, 0, "{screen}");
            assert!(rows.len() <= 5, "{screen}");
            // What the answer says of the thread that missed most is a number of the table.
            let worst = &run.threads[threads - 1];
            let said = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            let (name, all) = (&worst.name, misses(&worst.name).unwrap());
            let main = ((threads - 1) * by) as u64;
            let (told, all) = (count(main), count(all));
            let told = format!("because t0 preempted it ({told} of {all}).");
            assert!(said.contains(&format!("Thread {name} missed most often {told}")), "{screen}");
            let own = names.iter().position(|of| of == name).unwrap();
            let row = rows.iter().find(|(label, _)| label == "preemption by t0").unwrap();
            assert_eq!(row.1[own], main, "{screen}");
        }
    }
    insta::assert_snapshot!("missed-20-12", shown(&missed(20, 12), style()));
}

#[test]
fn response_times_stand_beside_the_deadline_of_each_task_and_its_worst_overrun() {
    let cells = |run: &Run, name: &str| {
        let screen = shown(run, style());
        assert_fits(&screen);
        let rows = screen.lines().skip_while(|line| !line.starts_with("response time, ms"));
        let row = rows.skip(1).find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        row.split_whitespace().skip(4).map(str::to_owned).collect::<Vec<_>>()
    };
    // Its command line gives no deadline of its own to the one; the other's first misses tell it.
    let mut run = kept("threads").1;
    assert_eq!(cells(&run, "audio"), ["8", "–"]);
    assert_eq!(cells(&run, "video"), ["28.0", "2.18"]);
    // What a run kept of both comes first.
    run.threads[1].deadlines.as_mut().unwrap().deadline = Some(Nanos(29_000_000));
    assert_eq!(cells(&run, "video"), ["29", "1.18"]);
    let mut tardiness = run.series.iter().find(|of| of.name == "response-video").unwrap().clone();
    tardiness.name = "tardiness-video".to_owned();
    tardiness.max = Some(Nanos(1_950_000));
    run.series.push(tardiness);
    assert_eq!(cells(&run, "video"), ["29", "1.95"]);
    // Of a clause with a deadline nobody knows which it was.
    run.command_line = vec!["PERIODIC 3ms 8ms, deadline 7ms, name audio".to_owned()];
    assert_eq!(cells(&run, "audio"), ["–", "–"]);
}

/// The kept set in which both tasks missed deadlines.
fn both_missed() -> Run {
    let mut run = kept("threads").1;
    let member =
        |comm: &str| Cause::Member { comm: comm.to_owned(), class: PriorityClass::RealTime };
    let by = |cause, misses| MissCause { cause, misses };
    let of = |thread: &mut ThreadSummary, causes: Vec<MissCause>| {
        let of = thread.deadlines.as_mut().unwrap();
        of.misses = causes.iter().map(|of| of.misses).sum();
        of.causes = causes;
    };
    // 3 of 59, and the exact interval of that.
    run.threads[0].deadlines.as_mut().unwrap().miss_share_interval = Some((0.010_6, 0.141_5));
    of(&mut run.threads[0], vec![by(Cause::Host, 2), by(Cause::TimerLate, 1)]);
    // A job that misses its deadline of 8 ms takes longer than that.
    let response = run.series.iter_mut().find(|series| series.name == "response-audio").unwrap();
    response.max = Some(Nanos(13_100_000));
    of(&mut run.threads[1], vec![by(member("audio"), 6), by(Cause::Host, 2)]);
    run
}

#[test]
fn a_task_does_not_preempt_itself_and_each_miss_stands_beside_its_cause() {
    let screen = shown(&both_missed(), style());
    assert_fits(&screen);
    insta::assert_snapshot!("both-missed", screen);
}

#[test]
fn a_main_cause_that_nobody_knows_is_said_to_be_unknown() {
    let mut run = both_missed();
    run.threads[1].deadlines.as_mut().unwrap().causes.clear();
    let screen = shown(&run, style());
    assert_fits(&screen);
    let said = "Thread video missed most often without a known cause (8 of 8).";
    assert_eq!(screen.lines().nth(2), Some(said), "{screen}");
    let (_, rows) = table(&screen, "misses caused by");
    assert_eq!(rows[0], ("cause unknown".to_owned(), vec![0, 8]), "{screen}");
}

/// A task that the kernel knows by another name is called as the set calls it.
#[test]
fn a_task_of_the_set_has_the_name_that_the_set_gives_it() {
    let mut run = both_missed();
    let long = "a-name-of-many-letters";
    run.threads[0].name = "7".to_owned();
    run.threads[1].name = long.to_owned();
    let class = PriorityClass::RealTime;
    let by = |comm: &str, misses| MissCause {
        cause: Cause::Member { comm: comm.to_owned(), class },
        misses,
    };
    run.threads[0].deadlines.as_mut().unwrap().causes = vec![by(&long[..15], 3)];
    run.threads[1].deadlines.as_mut().unwrap().causes = vec![by("hourglass/7", 8)];
    let screen = shown(&run, style());
    assert_fits(&screen);
    for label in [
        "\npreemption by 7 ",
        "\npreemption by a-name-of-man...",
        "because 7 preempted it (8 of 8).",
    ] {
        let lines = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(screen.contains(label) || lines.contains(label), "{label}: {screen}");
    }
}

#[test]
fn hourglass_has_the_lines_of_the_papers_program_with_response_times_and_causes_below() {
    let mut run = both_missed();
    run.command_line = ["whylate", "hourglass", "-n", "2"].map(str::to_owned).to_vec();
    let screen = shown(&run, style());
    assert_fits(&screen);
    insta::assert_snapshot!("hourglass-missed", screen);
    for threads in [1, 5, 20, 200] {
        let mut run = missed(threads, 12);
        run.command_line = ["whylate", "hourglass", "-n", "2"].map(str::to_owned).to_vec();
        let screen = shown(&run, style());
        assert_fits(&screen);
        let worst = run.threads.last().unwrap().deadlines.as_ref().unwrap();
        let line = crate::hourglass::summary(threads - 1, worst);
        assert!(screen.contains(&line), "{line} in\n{screen}");
        assert!(screen.contains("RUN/hourglass.txt"), "{screen}");
    }
}

/// The kept threads that never block as so many, each losing more than the one before.
fn busy(many: u64) -> Run {
    let mut run = commanded("whylate threads --file set.txt", kept("hourglass").1);
    let thread = run.threads[0].clone();
    run.threads.clear();
    let elapsed = thread.end.since(thread.start).to_nanos(run.clock.hz);
    for at in 0..many {
        let name = format!("t{at}");
        let lost = Nanos((at + 1) * 100_000);
        let waited = Nanos(elapsed.0 - thread.received.0 - lost.0);
        run.threads.push(ThreadSummary { name, lost, waited, ..thread.clone() });
    }
    let lost: u64 = run.threads.iter().map(|of| of.lost.0).sum();
    let all: f64 = run.causes.iter().filter(|of| of.cpu.is_none()).map(|of| of.lost_ns).sum();
    for total in &mut run.causes {
        total.lost_ns *= lost as f64 / all;
        if let Cause::Thread { comm, .. } = &mut total.cause {
            *comm = comm.replace("hourglass/", "t");
        }
    }
    run
}

#[test]
fn threads_without_deadlines_say_what_each_received_and_to_what_they_lost_the_rest() {
    for many in [1, 2, 8, 9, 20, 300] {
        let screen = shown(&busy(many), style());
        assert_fits(&screen);
        if many > 8 {
            let row =
                screen.lines().find(|line| line.starts_with('t') && line.contains("CPU")).unwrap();
            assert!(row.starts_with(&format!("t{} ", many - 1)), "{screen}");
        }
        assert!(screen.contains("Of the lost time, "), "{screen}");
    }
    let one = shown(&busy(1), style());
    let said = "Thread t0 received 71.5 ms of CPU time in 320 ms, and lost 100 µs.";
    assert_eq!(one.lines().nth(1), Some(said), "{one}");
    insta::assert_snapshot!("busy-20", shown(&busy(20), style()));
}

/// The kept prediction as one of so many tasks, some jobs of each of which are above the bound by each cause.
fn judged(many: u32) -> Run {
    use MachineCause::{Interrupts, LateWakeUp, NoEvent, OffCpu, OtherThreads, Unknown};
    let mut run = kept("rta").1;
    let (thread, response) = (run.threads.remove(0), run.series.remove(1));
    assert_eq!(response.name, "response-0");
    run.threads.clear();
    let prediction = run.prediction.as_mut().unwrap();
    let task = prediction.tasks[0].clone();
    prediction.tasks.clear();
    for at in 0..many {
        let mut task = task.clone();
        (task.name, task.thread) = (format!("t{at}"), at);
        let measured = task.measured.as_mut().unwrap();
        let causes = [LateWakeUp, Interrupts, NoEvent, OffCpu, OtherThreads, Unknown];
        let by = |(number, cause)| MachineJobs { cause, jobs: u64::from(at) + 6 - number };
        let machine_by: Vec<MachineJobs> = (0..).zip(causes).map(by).collect();
        let machine = machine_by.iter().map(|of| of.jobs).sum();
        // Of one that was never done nothing is known.
        measured.over = machine + 1;
        measured.jobs = machine + 100;
        // The bound is 2 ms.
        let lost = Nanos(700_000 + u64::from(at));
        let longest = Nanos(2_000_000 + lost.0);
        measured.max = Some(longest);
        let name = task.name.clone();
        run.series.push(Series {
            name: format!("response-{name}"),
            max: Some(longest),
            ..response.clone()
        });
        let deadlines = thread.deadlines.clone().map(|of| Deadlines { hits: measured.jobs, ..of });
        run.threads.push(ThreadSummary { name, deadlines, ..thread.clone() });
        measured.judged = Some(JudgedJobs {
            within: 100,
            machine,
            not_judged: 1,
            machine_by,
            most: Some(AboveJob {
                job: 84,
                release_ticks: Ticks(0),
                response_ns: longest,
                bound_ns: None,
                machine: MachineTime {
                    lost_ns: lost,
                    cause: Some(LateWakeUp),
                    cause_ns: Nanos(620_000),
                },
            }),
            ..JudgedJobs::default()
        });
        prediction.tasks.push(task);
    }
    run
}

#[test]
fn why_jobs_took_longer_than_predicted_adds_up_to_those_that_did() {
    for many in [1, 2, 5, 20, 200] {
        let run = judged(many);
        let screen = shown(&run, style());
        assert_fits(&screen);
        let (names, rows) = table(&screen, "jobs above predicted, by cause");
        let tasks = &run.prediction.as_ref().unwrap().tasks;
        let over = |name: &str| {
            let own = tasks.iter().find(|task| task.name == name);
            own.map(|task| task.measured.as_ref().unwrap().over)
        };
        let mut left: u64 = tasks.iter().map(|task| task.measured.as_ref().unwrap().over).sum();
        for (column, name) in names.iter().enumerate() {
            let sum: u64 = rows.iter().map(|(_, cells)| cells[column]).sum();
            assert_eq!(sum, over(name).unwrap_or(left), "{name} in\n{screen}");
            left -= sum;
        }
        assert_eq!(left, 0, "{screen}");
        assert!(screen.contains("longer than predicted; main cause: late wake-up."), "{screen}");
        let most =
            format!("Job 84 of t{} lost the most: 700 µs, 620 µs of it to late wake-up.", many - 1);
        assert!(screen.contains(&most), "{screen}");
    }
    insta::assert_snapshot!("judged-2", shown(&judged(2), style()));
    insta::assert_snapshot!("judged-20", shown(&judged(20), style()));
}

#[test]
fn a_task_without_a_name_is_told_by_its_number_beside_its_deadline() {
    let mut run = judged(2);
    for (at, task) in run.prediction.as_mut().unwrap().tasks.iter_mut().enumerate() {
        task.name = at.to_string();
        task.deadline = Nanos(7_000_000);
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    assert!(screen.contains("\nJob 84 of task 1 lost the most: "), "{screen}");
    let heads = |begin: &str| {
        let line = screen.lines().find(|line| line.starts_with(begin)).unwrap();
        line.split("  ")
            .map(|head| head.trim().to_owned())
            .filter(|of| !of.is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(heads("jobs above")[1..], ["task 0", "task 1"], "{screen}");
    let tasks = heads("response time of task");
    let deadline = tasks.iter().position(|head| head == "deadline").unwrap();
    let row = heads("0 ");
    assert!(row[deadline].starts_with('7'), "{screen}");
}

#[test]
fn jobs_that_lost_time_does_not_explain_are_in_the_answer() {
    let mut run = judged(2);
    let tasks = &mut run.prediction.as_mut().unwrap().tasks;
    let measured = tasks[1].measured.as_mut().unwrap();
    measured.judged.as_mut().unwrap().violated = 3;
    measured.over += 3;
    let screen = shown(&run, style());
    assert_fits(&screen);
    let said = "3 of 248 jobs took longer than lost time explains: check the task set.";
    assert_eq!(screen.lines().nth(2), Some(said), "{screen}");
    let (_, rows) = table(&screen, "jobs above predicted, by cause");
    let all: u64 = rows.iter().map(|(_, cells)| cells[1]).sum();
    assert_eq!(all, run.prediction.as_ref().unwrap().tasks[1].measured.as_ref().unwrap().over);
}

/// A run before jobs were counted by cause.
#[test]
fn of_a_run_that_did_not_count_its_jobs_by_cause_the_cause_is_unknown() {
    let mut run = judged(2);
    for task in &mut run.prediction.as_mut().unwrap().tasks {
        task.measured.as_mut().unwrap().judged.as_mut().unwrap().machine_by.clear();
    }
    let screen = shown(&run, style());
    assert_fits(&screen);
    let (_, rows) = table(&screen, "jobs above predicted, by cause");
    assert_eq!(rows[0], ("cause unknown".to_owned(), vec![21, 27]), "{screen}");
    assert!(!screen.contains("main cause"), "{screen}");
}
