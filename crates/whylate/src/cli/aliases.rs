//! Old spellings of flags: each goes on saying what it said, and no help shows it.

use clap::{Command, CommandFactory, Parser};

use super::Cli;

/// What was written once, and what is written today.
const SPELLINGS: [(&str, &str); 35] = [
    ("--cpu 1", "--cpus 1"),
    ("--output run", "--out run"),
    ("--output run", "-o run"),
    ("gaps --output run", "gaps --out run"),
    ("gaps --fifo", "gaps --sched fifo:50"),
    ("gaps --fifo 60", "gaps --sched fifo:60"),
    ("gaps --fifo=60", "gaps --sched fifo:60"),
    ("gaps --threshold-stop 1ms", "gaps --stop-above 1ms"),
    ("gaps --validate", "gaps --verify-causes"),
    ("wake --timer HR", "wake --timers HR"),
    ("wake --priority RTHIGH", "wake --sched RTHIGH"),
    ("threads set.toml --validate", "threads set.toml --require-trace"),
    ("switch-cost --trial 100ms", "switch-cost --trial-time 100ms"),
    ("rtt --port tcp", "rtt --transport tcp"),
    ("rtt --other-cpu 0", "rtt --reflector-cpus 0"),
    ("rtt --fifo 50", "rtt --sched fifo:50"),
    ("rtt --flow 'x: port=tcp cpu=1'", "rtt --flow 'x: transport=tcp cpus=1'"),
    ("rtt --flow 'x: other-cpu=0 fifo=5'", "rtt --flow 'x: reflector-cpus=0 sched=fifo:5'"),
    ("reflect --port tcp --cpu 1", "reflect --transport tcp --cpus 1"),
    ("reflect --fifo --output run", "reflect --sched fifo:50 --out run"),
    ("forward a b --port xdp", "forward a b --transport xdp"),
    ("forward a b --fifo --output run", "forward a b --sched fifo:50 -o run"),
    ("delay a b --port xdp --cpu 1", "delay a b --transport xdp --cpus 1"),
    ("delay a b --fifo --output run", "delay a b --sched fifo:50 --out run"),
    ("device --box bridge --port xdp", "device --box bridge --transport xdp"),
    ("device --box bridge --trial 1s", "device --box bridge --trial-time 1s"),
    ("device --box bridge --box-cpu 0", "device --box bridge --box-cpus 0"),
    ("calibrate --line-port xdp", "calibrate --line-transport xdp"),
    ("calibrate --line-cpu 0", "calibrate --line-cpus 0"),
    ("calibrate --output run", "calibrate --out run"),
    ("watch 4021 --output run", "watch 4021 --out run"),
    ("paper pam2017 --experiments 4", "paper pam2017 --only 4"),
    ("paper pam2017 --output run", "paper pam2017 --out run"),
    ("merge a b --output run", "merge a b --out run"),
    ("report run --trace 1s..2s", "report run --timeline 1s..2s"),
];

fn parsed(words: &str) -> String {
    let words = shlex::split(&format!("whylate {words}")).unwrap();
    let cli = Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    format!("{cli:?}")
}

#[test]
fn each_old_spelling_of_a_flag_asks_for_the_same_as_the_new_one() {
    for (old, new) in SPELLINGS {
        assert_ne!(old, new);
        assert_eq!(parsed(old), parsed(new), "{old}");
    }
}

#[test]
fn no_help_shows_an_old_spelling_of_a_flag() {
    let mut program = Cli::command();
    for (old, new) in SPELLINGS {
        let command = old.split(' ').next().filter(|word| !word.starts_with('-'));
        let help = match command.and_then(|name| program.find_subcommand_mut(name)) {
            Some(command) => command.render_long_help(),
            None => program.render_long_help(),
        };
        let help = help.to_string();
        for word in
            old.split([' ', '=']).filter(|word| word.starts_with("--") && !new.contains(*word))
        {
            let shown =
                help.split(|c: char| c != '-' && !c.is_alphanumeric()).any(|said| said == word);
            assert!(!shown, "the help shows {word} of `{old}`");
        }
    }
}

/// Old spellings of options below a command, each with its words.
fn old_spellings(words: &str, command: &Command, found: &mut Vec<(String, String)>) {
    for arg in command.get_arguments() {
        for old in arg.get_all_aliases().unwrap_or_default() {
            found.push((words.to_owned(), format!("--{old}")));
        }
    }
    for below in command.get_subcommands() {
        old_spellings(format!("{words} {}", below.get_name()).trim(), below, found);
    }
}

#[test]
fn every_old_spelling_of_a_flag_is_in_the_list_and_hidden() {
    let mut found = Vec::new();
    let program = Cli::command();
    old_spellings("", &program, &mut found);
    let of = |command: &str, old: &str| {
        SPELLINGS.iter().any(|(spelling, _)| {
            let of_command = spelling.split(' ').next().is_some_and(|word| word == command);
            let known = of_command || command.is_empty() || spelling.starts_with("--");
            known && spelling.split([' ', '=']).any(|word| word == old)
        })
    };
    let missing: Vec<_> = found.iter().filter(|(command, old)| !of(command, old)).collect();
    assert!(missing.is_empty(), "not in the list: {missing:?}");
    assert!(found.len() > 25, "{} old spellings are few", found.len());
    let shown = |command: &Command| {
        command
            .get_arguments()
            .any(|arg| arg.get_visible_aliases().is_some_and(|of| !of.is_empty()))
    };
    assert!(!program.get_subcommands().any(shown), "an old spelling is shown beside the new one");
}
