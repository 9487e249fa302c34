//! First screens of a diagnosis: a machine with problems, with more than fit, and with none.

use whylate_model::CpuId;
use whylate_model::doctor::{Diagnosis, Level, Remedy, Subject, Symptom};

use super::super::first_of_diagnosis;
use super::{Style, assert_small, style};
use crate::doctor::tests::diagnosis;

fn symptom(check: &str, level: Level, finding: &str, fix: Remedy) -> Symptom {
    with_fixes(check, level, finding, vec![fix])
}

fn with_fixes(check: &str, level: Level, finding: &str, remedy: Vec<Remedy>) -> Symptom {
    Symptom {
        check: check.to_owned(),
        subject: Subject::Isolation,
        level,
        finding: finding.to_owned(),
        why: "it takes time that the measured thread then lacks".to_owned(),
        remedy,
        evidence: Vec::new(),
    }
}

fn advice(text: &str) -> Remedy {
    Remedy::Advice(text.to_owned())
}

fn command(line: &str) -> Remedy {
    Remedy::Command(line.to_owned())
}

const MOVED: &str =
    "for one recording: whylate gaps --move-tasks moves what can be moved, and back";

/// A virtual machine with what one usually has, in the words of the checks.
fn guest() -> Diagnosis {
    let problem =
        |check: &str, finding: &str, fixes| with_fixes(check, Level::Spoils, finding, fixes);
    let interrupts = "2 interrupts go to CPU 1: IRQ 25 virtio1-req.0 (981 since boot), IRQ 24 virtio1-config (2 since boot)";
    let mut symptoms = vec![
        problem(
            "isolated-cpus",
            "CPU 1 is not isolated",
            vec![advice("boot with: isolcpus=managed_irq,domain,1"), advice(MOVED)],
        ),
        problem(
            "interrupt-affinity",
            interrupts,
            vec![
                command("for i in 25 24; do echo 0 > /proc/irq/$i/smp_affinity_list; done"),
                advice("for one recording: whylate gaps --move-interrupts"),
            ],
        ),
        problem(
            "other-jobs",
            "1.92 tasks ran or waited on average in the last minute; there is 1 CPU for other work",
            vec![advice("find and stop other jobs:"), command("top -b -n 1 | head -20")],
        ),
        problem(
            "clocksource",
            "the kernel's clock source is hpet",
            vec![advice("find out why:"), command("dmesg | grep -i -e tsc -e clocksource")],
        ),
    ];
    let others = ["nohz-full", "rcu-callbacks", "kernel-work", "timer-slack", "mitigations"];
    symptoms.extend(others.map(|name| symptom(name, Level::Note, "on", advice("off"))));
    symptoms.extend(["smt-siblings", "idle-states", "firmware"].map(|name| {
        symptom(name, Level::Unknown, "not known on a virtual machine", advice("ask"))
    }));
    symptoms.push(symptom("cycle-counter", Level::Fine, "steady", advice("nothing")));
    let host =
        whylate_model::host::Fingerprint { hypervisor: Some("KVM".to_owned()), ..diagnosis().host };
    Diagnosis {
        root: "/".to_owned(),
        cpus: vec![CpuId(1)],
        host,
        symptoms,
        compared: None,
        ..diagnosis()
    }
}

fn screen(of: &Diagnosis) -> String {
    let screen = first_of_diagnosis(of, style());
    assert_small(&screen);
    screen
}

#[test]
fn problems_stand_with_what_fixes_them_and_the_rest_is_named() {
    insta::assert_snapshot!("doctor", screen(&guest()));
    let doctor = [
        include_str!("../../../../whylate-host/src/doctor/isolation.rs"),
        include_str!("../../../../whylate-host/src/doctor/interrupts.rs"),
        include_str!("../../../../whylate-host/src/doctor/scheduling.rs"),
        include_str!("../../../../whylate-host/src/doctor/kernel.rs"),
    ];
    let doctor = doctor.concat();
    for words in [
        "boot with: isolcpus=managed_irq,domain,",
        MOVED,
        "\"for one recording: whylate gaps --move-interrupts\"",
        " tasks ran or waited on average in the last minute\"",
        "\"there is 1 CPU\"",
        " for other work\"",
        "\"find and stop other jobs:\"",
        "\"top -b -n 1 | head -20\"",
        "\"find out why:\"",
        "\"dmesg | grep -i -e tsc -e clocksource\"",
    ] {
        assert!(doctor.contains(words), "no check says {words}");
    }
}

#[test]
fn what_leads_to_a_command_is_told_with_it_and_never_alone() {
    let mut of = guest();
    of.symptoms = vec![
        with_fixes(
            "first",
            Level::Spoils,
            "on",
            vec![advice("or for the whole machine:"), command("echo off > /sys/off")],
        ),
        with_fixes(
            "second",
            Level::Spoils,
            "on",
            vec![
                command(&format!("echo {} > /sys/off", "0".repeat(60))),
                advice("and stop it:"),
                command("halt"),
            ],
        ),
    ];
    let screen = screen(&of);
    for fix in ["or for the whole machine: echo off > /sys/off\n", "and stop it: halt\n"] {
        assert!(screen.contains(fix), "{screen}");
    }
    assert!(
        screen.lines().all(|line| line.trim_end().len() < 9 || !line.ends_with(':')),
        "{screen}"
    );
}

#[test]
fn problems_that_have_no_room_are_counted_and_none_is_shown_without_its_fix() {
    let long = "a setting of this machine that it takes many words to tell of ".repeat(6);
    for (many, finding) in [(9, "on"), (9, long.trim()), (39, "on"), (39, long.trim())] {
        let mut of = guest();
        of.cpus = (0..64).map(|cpu| CpuId(2 * cpu)).collect();
        of.symptoms = (0..many)
            .map(|at| symptom(&format!("check{at}"), Level::Spoils, finding, advice(finding)))
            .collect();
        let notes = (0..39).map(|at| symptom(&format!("n{at}"), Level::Note, "on", advice("off")));
        of.symptoms.extend(notes);
        let screen = screen(&of);
        assert!(screen.starts_with(&format!("64 CPUs are not ready to measure: {many} problems")));
        let shown = screen.lines().filter(|line| line.starts_with("check")).count();
        assert!(
            shown > 0 && screen.contains(&format!("and {} more: --full", many - shown)),
            "{screen}"
        );
        let fixes = screen.lines().filter(|line| line.trim() == finding).count();
        assert!(finding != "on" || fixes == shown, "{screen}");
    }
    let mut of = guest();
    let more = (0..5).map(|at| symptom(&format!("check{at}"), Level::Spoils, "on", advice("off")));
    of.symptoms.splice(0..0, more);
    insta::assert_snapshot!("doctor-9", screen(&of));
}

#[test]
fn a_machine_without_a_problem_is_ready() {
    let mut of = guest();
    of.symptoms.retain(|symptom| symptom.level == Level::Fine);
    let screen = screen(&of);
    assert!(
        screen.starts_with("CPU 1 is ready to measure: no problem, 0 notes, 0 unknown, 1 fine."),
        "{screen}"
    );
    assert!(screen.contains("\nTrust: good."), "{screen}");
}

#[test]
fn what_differs_from_a_run_is_counted_and_stands_in_a_table() {
    let screen = screen(&Diagnosis { root: "tree".to_owned(), ..diagnosis() });
    for part in [
        "CPUs 2-3 are not ready to measure: 1 problem, 1 note, 1 unknown, 1 fine.",
        "\n1 thing differs from run-1.\n",
        "\ncommand line ",
        // The command does not fit a line, and the other way does.
        "\n          boot without it\n",
        "--cpus 2-3 --root tree --explain spoiling\n",
        "Trust: limited. Only what the tree tree holds was read.",
    ] {
        assert!(screen.contains(part), "no `{part}` in\n{screen}");
    }
}

#[test]
fn a_narrow_terminal_has_every_word_of_a_fix() {
    let narrow = first_of_diagnosis(&guest(), Style { width: 40, ..style() });
    for line in narrow.lines().filter(|line| !line.contains("whylate")) {
        assert!(line.chars().count() <= 40, "{line:?} in\n{narrow}");
    }
    for word in ["isolcpus=managed_irq,domain,1", "virtio1-req.0", "--move-interrupts"] {
        let flat = narrow.split_whitespace().collect::<String>();
        assert!(flat.contains(word), "{word} is not whole in\n{narrow}");
    }
}
