//! Why deadlines were missed: how many of each thread by which cause.

use whylate_model::Printable;
use whylate_model::run::Run;
use whylate_model::threads::{Deadlines, ThreadSummary};

use super::by_task::{self, Counted};
use super::taken::{Class, UNKNOWN};
use crate::doc::Table;
use crate::numbers::Value;
use crate::spans::{Name, Sentence, Told, sentence};

/// The table of causes, whose columns add up to what each thread missed; none where nothing was missed.
pub(super) fn table(run: &Run, threads: &[(&ThreadSummary, &Deadlines)]) -> Option<Table> {
    let table = by_task::table("misses caused by", &counted(run, threads));
    (!table.rows.is_empty()).then_some(table)
}

/// The main cause of the thread that missed most, which the table has, too; none where nothing was missed.
pub(super) fn main_cause(run: &Run, threads: &[(&ThreadSummary, &Deadlines)]) -> Option<Sentence> {
    let counted = counted(run, threads);
    let (thread, of) = threads.iter().zip(&counted).rev().max_by_key(|(_, of)| of.sum())?;
    let (main, misses) = of.main()?;
    let mut classes = thread.1.causes.iter().map(|of| Class::of(&of.cause, run));
    let class = classes.find(|class| label(class) == *main);
    if *misses == of.sum() && counted.iter().filter(|of| of.sum() > 0).count() == 1 {
        return Some(of_all(*misses, class.as_ref().and_then(because)));
    }
    let why = match class.as_ref().and_then(because) {
        Some(because) => sentence!["because ", Told::of(because)],
        None => "without a known cause".into(),
    };
    let who = sentence!["Thread ", Name::of(&thread.0.name)];
    let of_all = sentence![Value::Count(*misses), " of ", Value::Count(of.sum())];
    Some(sentence![who, " missed most often ", why, " (", of_all, ")."])
}

/// The cause of each miss that there was.
fn of_all(misses: u64, because: Option<String>) -> Sentence {
    match (misses, because) {
        (1, None) => "Its cause is not known.".into(),
        (_, None) => sentence!["The cause of all ", Value::Count(misses), " is not known."],
        // Of what is no clause the noun alone is left.
        (1, Some(because)) => match because.strip_prefix("of ") {
            Some(cause) => sentence!["Cause: ", Told::of(cause), "."],
            None => sentence![Told::of(super::trusted::upper(&because)), "."],
        },
        (_, Some(because)) => {
            let because = because.strip_prefix("of ").unwrap_or(&because);
            sentence!["Cause of all ", Value::Count(misses), ": ", Told::of(because), "."]
        }
    }
}

/// The misses of each thread, each by one cause.
fn counted(run: &Run, threads: &[(&ThreadSummary, &Deadlines)]) -> Vec<Counted> {
    let of = |(thread, of): &(&ThreadSummary, &Deadlines)| {
        let own = label(&Class::Member(thread.name.clone()));
        let mut counted = Counted::of(&thread.name).never(own);
        for cause in &of.causes {
            counted.add(&label(&Class::of(&cause.cause, run)), cause.misses);
        }
        // A run need not have told all of them.
        let told = counted.sum();
        counted.add(UNKNOWN, of.misses.saturating_sub(told));
        counted
    };
    threads.iter().map(of).collect()
}

/// A cause in the table of misses.
fn label(class: &Class) -> String {
    match class {
        Class::Member(name) => format!("preemption by {}", Printable(name)),
        other => other.name(),
    }
}

/// What a cause did, behind `because`; none of one that is not known.
fn because(class: &Class) -> Option<String> {
    Some(match class {
        Class::Member(name) => format!("{} preempted it", Printable(name)),
        // Without the class of its priority, which the table has.
        Class::Task(name) => {
            let name = name.rsplit_once(" (").map_or(name.as_str(), |(name, _)| name);
            format!("{} preempted it", Printable(name))
        }
        Class::Tasks => "another task preempted it".to_owned(),
        Class::Throttling => "real-time throttling or its reservation stopped it".to_owned(),
        Class::OwnDemand => "it needs more than there is before its deadline".to_owned(),
        Class::LeftOver => "its previous job overran".to_owned(),
        Class::TimerLate => "its timer fired late".to_owned(),
        Class::IdleExit => "its CPU was slow to leave an idle state".to_owned(),
        Class::Resource => "it waited for a resource".to_owned(),
        Class::Asleep => "it was stopped or asleep".to_owned(),
        Class::NoEvent => "it lost time that has no kernel event".to_owned(),
        Class::Hypervisor => "the hypervisor took the CPU".to_owned(),
        Class::Unknown => return None,
        other => format!("of {}", other.name()),
    })
}
