//! What `-h` prints: one screen of 24 lines and 80 columns, prompt included. Each option has a short text of its
//! own for it (clap's `help`) where the text of `--help` (clap's `long_help`) has no room on a line: no text is cut.
//!
//! A command's own options come first, in the order in which they are declared, with a line for each as far as
//! the screen goes; the names of the rest follow, and those of the common options last. `--help` is clap's, in
//! groups, and says with which status a command ends. The program itself has one page for both.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// Columns of every help.
pub(crate) const COLUMNS: usize = 80;
/// Lines of a screen without that of the prompt.
pub(crate) const LINES: usize = 23;
/// Heading of what all commands have, in `--help`.
pub(crate) const COMMON: &str = "Common options";
/// Where the text of a row begins at most.
const WIDEST_NAME: usize = 26;
const INDENT: usize = 2;
const ALSO: &str = "Also: ";
/// What a command explains first that has more options than there is room for, where the order in which they are
/// declared is another.
const WANTED: [(&str, &[&str]); 1] = [(
    "rtt",
    &[
        "target",
        "rate",
        "duration",
        "transport",
        "arrivals",
        "size",
        "wait",
        "cpus",
        "bed",
        "breakdown",
        "sched",
        "compare_backends",
    ],
)];

/// Commands that measure.
const MEASURING: &str = "gaps wake threads hourglass paper switch-cost rtt calibrate device";
/// Others that work on traffic or on runs: what each could not do where it ends with 1, and why its trust may be
/// poor besides.
const WORKING: [(&str, &str, &str); 6] = [
    ("watch", "watch", ""),
    ("forward", "forward", ", or a port was lost"),
    ("delay", "delay", ", or a port was lost"),
    ("reflect", "listen", ", or its interface went away"),
    ("report", "read the run", ""),
    ("merge", "merge", ""),
];

/// What `whylate -h` and `whylate --help` print.
const PROGRAM: &str = "\
Find out how long your threads, timers and packets are delayed, and by what.

Usage: whylate [COMMAND] [OPTIONS]     without a command: one-minute check-up

Measure:
  gaps         OS noise: CPU time that a busy thread loses, by cause
  wake         timer wake-up latency, by cause
  rtt          request response time at a fixed rate
  reflect      the server end for rtt
  watch        where the requests of any server spend their time
  switch-cost  cost of a context switch
Real-time tasks:
  threads      run a task set, report deadline misses and why
  rta          response-time analysis of a task set
  hourglass, paper        repeat Hourglass 0.5 (2002), or a paper's experiments
Network devices:
  device, forward, delay  measure a device; forward or delay its frames
  calibrate               error of each rtt backend against a known delay
Prepare and view:
  doctor, lab             settings that distort measurements; a test network
  report, compare, merge  recorded runs
  completions, man        shell completions and manual pages
Options of most commands: --cpus --out --format json --quick --full -h --help -V
";

/// `help COMMAND` as `COMMAND --help`. It is no command of its own, which lists, completions and manual pages would
/// have to have.
pub(crate) fn asked(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// The program as it reads this command line: a word `-h` asks for one screen.
pub(crate) fn program(asks_for_a_screen: bool) -> Command {
    let mut program = whole().max_term_width(COLUMNS).override_help(PROGRAM);
    program.build();
    if asks_for_a_screen { with_screens(program, true) } else { program }
}

/// All commands, with what the long help of each says.
pub(crate) fn whole() -> Command {
    Cli::command().mut_subcommands(|command| {
        let Some(statuses) = statuses(command.get_name()) else { return command };
        let about = command.get_long_about().or(command.get_about());
        let about = about.map(StyledStr::to_string).unwrap_or_default();
        command.long_about(format!("{about}\n\n{statuses}"))
    })
}

/// With which status a command ends; none of one that says so itself, or prints for a shell.
fn statuses(name: &str) -> Option<String> {
    let working = WORKING.iter().find(|(of, ..)| *of == name).map(|(_, what, why)| (*what, *why));
    let measures = MEASURING.split(' ').any(|of| of == name);
    let (what, why) = working.or(measures.then_some(("measure", "")))?;
    Some(format!(
        "Exit status: 0 done, 1 could not {what}, or could not print, 2 usage, 3 a stated limit was exceeded, \
         4 trust is poor{why}, 130 Ctrl-C was pressed a second time."
    ))
}

/// Each command below this one prints a screen for its help.
fn with_screens(command: Command, is_program: bool) -> Command {
    let command = if is_program {
        command
    } else {
        let text = screen(&command);
        command.override_help(text)
    };
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| with_screens(below, false))
    })
}

/// One screen about a command.
fn screen(command: &Command) -> String {
    let mut text = format!("{}\n\n{}\n\n", about(command), usage(command));
    let below: Vec<&Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    if below.is_empty() {
        let behind = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
        let taken = text_lines(&about(command), &usage(command)) + behind.lines().count();
        text + &options(command, LINES - taken, &behind)
    } else {
        for command in below {
            text += &row(command.get_name(), &about(command), 14);
        }
        text
    }
}

/// Lines that the first sentence and the usage take, with the empty ones behind them.
fn text_lines(about: &str, usage: &str) -> usize {
    about.lines().count() + usage.lines().count() + 2
}

/// Rows for as many arguments and own options as there is room for, the names of the others, and what the
/// command says behind them.
fn options(command: &Command, room: usize, behind: &str) -> String {
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let all: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        all.into_iter().partition(|arg| arg.is_positional());
    let (common, own): (Vec<&Arg>, Vec<&Arg>) =
        options.into_iter().partition(|arg| arg.get_help_heading() == Some(COMMON));
    let mut own: Vec<&Arg> = positional.into_iter().chain(own).collect();
    own.sort_by_key(|arg| rank(command, arg));
    let last = listed("Common: ", &common, "  More: --help");
    let room = room - 2;
    let (rows, also) = (0..=own.len())
        .rev()
        .map(|rows| (rows, wrapped(ALSO, &own[rows..])))
        .find(|(rows, also)| rows + also.len() <= room)
        .unwrap_or((0, Vec::new()));
    let column = own[..rows]
        .iter()
        .map(|arg| name(arg).chars().count() + INDENT + 2)
        .max()
        .unwrap_or(0)
        .min(WIDEST_NAME);
    let mut text: String =
        own[..rows].iter().map(|arg| row(&name(arg), &said(arg), column)).collect();
    for line in &also {
        text += line;
        text.push('\n');
    }
    text += behind;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text + &last + "\n"
}

/// Where an option stands among those that its command explains first; the others come after them.
fn rank(command: &Command, arg: &Arg) -> usize {
    let wanted = WANTED.iter().find(|(name, _)| *name == command.get_name());
    let at = |(_, ids): &(&str, &[&str])| ids.iter().position(|id| *id == arg.get_id().as_str());
    wanted.and_then(at).unwrap_or(usize::MAX)
}

/// What an argument is for, with its default.
fn said(arg: &Arg) -> String {
    let said = arg.get_help().map(StyledStr::to_string).unwrap_or_default();
    // In brackets stands what is taken where nothing is given, in one form for all.
    let said = said.replace("[default: ", "[");
    let values: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let takes = arg.get_action().takes_values() && !arg.is_hide_default_value_set();
    if values.is_empty() || !takes { said } else { format!("{said} [{}]", values.join(",")) }
}

/// A name and what it is for, on one line.
fn row(name: &str, said: &str, column: usize) -> String {
    let gap = column.saturating_sub(INDENT + name.chars().count()).max(2);
    format!("{:INDENT$}{name}{:gap$}{said}\n", "", "")
}

/// Names on one line, as many as fit, with something behind them.
fn listed(head: &str, args: &[&Arg], behind: &str) -> String {
    let mut line = head.to_owned();
    for name in args.iter().map(|arg| short_name(arg)) {
        if line.len() + name.len() + 1 + behind.len() > COLUMNS {
            break;
        }
        line += &name;
        line.push(' ');
    }
    if args.is_empty() {
        behind.trim_start().to_owned()
    } else {
        line.trim_end().to_owned() + behind
    }
}

/// Names on as many lines as they need.
fn wrapped(head: &str, args: &[&Arg]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for name in args.iter().map(|arg| short_name(arg)) {
        if line.is_empty() {
            line = if lines.is_empty() { head.to_owned() } else { " ".repeat(head.len()) };
        } else if line.len() + 1 + name.len() > COLUMNS {
            lines.push(std::mem::replace(&mut line, " ".repeat(head.len())));
        } else {
            line.push(' ');
        }
        line += &name;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// As an option is written, without what it takes.
fn short_name(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}/--{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => name(arg),
    }
}

/// As an argument is written, with what it takes: all its values, where they can be counted.
fn name(arg: &Arg) -> String {
    let named = || arg.get_value_names().into_iter().flatten().map(clap::builder::Str::as_str);
    let possible = arg.get_possible_values();
    let possible: Vec<&str> = possible
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    let values = match possible.as_slice() {
        [] => named().collect::<Vec<_>>().join(" "),
        values if arg.get_value_delimiter().is_some() => values.join(","),
        values => values.join("|"),
    };
    if arg.is_positional() {
        return values;
    }
    let takes = arg.get_action().takes_values();
    let may_lack = arg.get_num_args().is_some_and(|of| of.min_values() == 0);
    let values = match (takes && !values.is_empty(), arg.is_require_equals_set(), may_lack) {
        (false, ..) => String::new(),
        (true, true, _) => format!("[={values}]"),
        (true, false, true) => format!(" [{values}]"),
        (true, false, false) => format!(" {values}"),
    };
    short_name(arg) + &values
}

/// The first sentence about a command.
fn about(command: &Command) -> String {
    command.get_about().map(StyledStr::to_string).unwrap_or_default()
}

/// How a command is written, with the first of its examples that has room.
fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let long = command.get_long_about().map(StyledStr::to_string).unwrap_or_default();
    let examples = long.split("\n\n").filter_map(|said| said.strip_prefix("Example: "));
    let mut lines = examples.flat_map(|example| {
        let example = example.replace('\n', " ");
        [format!("{usage}     e.g. {example}"), format!("{usage}\n e.g. {example}")]
    });
    let fits = |text: &String| text.lines().all(|line| line.chars().count() <= COLUMNS);
    lines.find(fits).unwrap_or(usage.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn help_with_a_command_is_that_commands_help_and_no_command_itself() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, told) in [
            ("whylate help", "whylate --help"),
            ("whylate help wake", "whylate wake --help"),
            ("whylate help lab up", "whylate lab up --help"),
            ("whylate report help", "whylate report help"),
            ("whylate", "whylate"),
        ] {
            assert_eq!(asked(words(line)), words(told), "{line}");
        }
        let told = program(false).try_get_matches_from(asked(words("whylate help wake")));
        assert_eq!(told.unwrap_err().kind(), ErrorKind::DisplayHelp);
        let told = program(false).try_get_matches_from(asked(words("whylate help nothing")));
        assert_eq!(told.unwrap_err().kind(), ErrorKind::InvalidSubcommand);
        assert!(whole().find_subcommand("help").is_none());
    }

    /// Every command that is shown, with its words.
    fn commands() -> Vec<(String, Command)> {
        fn below(words: &str, command: &Command, found: &mut Vec<(String, Command)>) {
            for command in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                let words = format!("{words} {}", command.get_name()).trim().to_owned();
                below(&words, command, found);
                found.push((words, command.clone()));
            }
        }
        let mut found = Vec::new();
        below("", &program(false), &mut found);
        found
    }

    fn help(words: &str, flag: &str) -> String {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let all: Vec<&str> = ["whylate"].into_iter().chain(words).chain([flag]).collect();
        program(flag == "-h").try_get_matches_from(all).unwrap_err().render().to_string()
    }

    fn fits(text: &str) -> Vec<&str> {
        text.lines().filter(|line| line.chars().count() > COLUMNS).collect()
    }

    #[test]
    fn a_screen_has_at_most_24_lines_of_80_columns_with_the_prompt() {
        let mut wide = Vec::new();
        for (words, command) in commands() {
            let screen = help(&words, "-h");
            assert!(screen.lines().count() <= LINES, "{words}:\n{screen}");
            wide.extend(fits(&screen).into_iter().map(|line| format!("{words}: {line}")));
            let common = command.get_arguments().any(|arg| arg.get_help_heading() == Some(COMMON));
            let last = screen.lines().last().unwrap();
            assert_eq!(last.starts_with("Common: "), common, "{words}:\n{screen}");
        }
        assert!(wide.is_empty(), "{}", wide.join("\n"));
    }

    /// What a command has of its own, with its words: options and arguments that are shown, and not common.
    fn own() -> Vec<(String, Command, Arg)> {
        let is_own = |arg: &&Arg| {
            let named = !matches!(arg.get_id().as_str(), "help" | "version");
            named && !arg.is_hide_set() && arg.get_help_heading() != Some(COMMON)
        };
        let of = |(words, command): (String, Command)| {
            let own: Vec<Arg> = command.get_arguments().filter(is_own).cloned().collect();
            own.into_iter().map(move |arg| (words.clone(), command.clone(), arg))
        };
        commands().into_iter().flat_map(of).collect()
    }

    #[test]
    fn each_option_has_a_text_that_fits_on_its_line_whole() {
        let wide = own().into_iter().filter_map(|(words, _, arg)| {
            let row = row(&name(&arg), &said(&arg), WIDEST_NAME);
            let over = row.trim_end().chars().count().saturating_sub(COLUMNS);
            (over > 0).then(|| format!("{words}: {over} too many: {row}"))
        });
        let wide: Vec<String> = wide.collect();
        assert!(wide.is_empty(), "{}", wide.concat());
    }

    /// Words of a text that an option takes as its value; none where it takes any word. Words with a number, a colon
    /// or a plus sign are examples.
    fn values_in(text: &str, words: &str, option: &str, program: &mut Command) -> Vec<String> {
        let mut takes = |value: &str| {
            let given = format!("--{option}={value}");
            let all = ["whylate"].into_iter().chain(words.split(' ')).chain([given.as_str()]);
            let told = program.try_get_matches_from_mut(all).err().map(|error| error.kind());
            !matches!(told, Some(ErrorKind::ValueValidation | ErrorKind::InvalidValue))
        };
        if takes("neither-nor") {
            return Vec::new();
        }
        let is_word = |word: &&str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        };
        let apart = |c: char| c.is_whitespace() || ",;.()`[]".contains(c);
        let said = text.split(apart).map(|word| word.trim_matches(':'));
        said.filter(is_word).filter(|word| takes(word)).map(str::to_owned).collect()
    }

    #[test]
    fn a_screen_lists_all_values_that_the_long_help_lists_or_says_where_there_are_more() {
        let mut program = program(false);
        let (mut missing, mut count) = (Vec::new(), 0);
        for (words, _, arg) in own() {
            let Some(option) = arg.get_long() else { continue };
            let short = row(&name(&arg), &said(&arg), WIDEST_NAME);
            let long = arg.get_long_help().map(StyledStr::to_string).unwrap_or_default();
            let values = values_in(&long, &words, option, &mut program);
            count += values.len();
            let has = |value: &String| {
                short
                    .split(|c: char| !(c.is_ascii_lowercase() || "-:".contains(c)))
                    .any(|word| word.trim_matches(':') == value)
            };
            let lacks: Vec<String> = values.into_iter().filter(|value| !has(value)).collect();
            if !lacks.is_empty() && !short.contains("more: --help") {
                missing.push(format!("{words}: {} not in {short}", lacks.join(", ")));
            }
        }
        assert!(missing.is_empty(), "{}", missing.concat());
        assert!(count > 60, "{count} values are few");
    }

    #[test]
    fn the_long_help_of_many_options_has_groups() {
        for (words, _) in commands() {
            let of_command =
                own().into_iter().filter(|(of, _, arg)| *of == words && !arg.is_positional());
            let headings: Vec<Option<String>> =
                of_command.map(|(_, _, arg)| arg.get_help_heading().map(str::to_owned)).collect();
            if headings.len() > 10 {
                let groups: HashSet<&Option<String>> = headings.iter().collect();
                assert!(groups.len() > 2, "{words}: {groups:?}");
                assert!(!headings.contains(&None), "{words}: an option is in no group");
            }
        }
    }

    #[test]
    fn screens_read_as_recorded() {
        for (words, _) in commands() {
            insta::assert_snapshot!(words.replace(' ', "-"), help(&words, "-h"));
        }
    }

    #[test]
    fn the_long_help_has_80_columns_and_common_options_last() {
        for (words, _) in commands() {
            let long = help(&words, "--help");
            assert_eq!(fits(&long), [] as [&str; 0], "{words}");
            let headings: Vec<&str> =
                long.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
            let common = headings.iter().position(|heading| heading.starts_with(COMMON));
            if let Some(at) = common {
                assert_eq!(at + 1, headings.len(), "{words}: {headings:?}");
            }
        }
    }

    #[test]
    fn each_long_help_says_with_which_status_the_command_ends() {
        let mut silent = Vec::new();
        for (words, _) in commands().into_iter().filter(|(words, _)| !words.contains(' ')) {
            let long = help(&words, "--help").split_whitespace().collect::<Vec<_>>().join(" ");
            let one = long.matches("Exit status: 0 ").count() == 1;
            // Of those that print something for a shell no status is worth a word.
            if !one && !["completions", "man"].contains(&words.as_str()) {
                silent.push(words.clone());
            }
            let measures = statuses(&words).is_some();
            let whole = ", 2 usage, 3 a stated limit was exceeded, 4 trust is poor";
            assert_eq!(long.contains(whole), measures, "{words}: {long}");
        }
        assert_eq!(silent, [] as [&str; 0]);
    }

    /// Paragraphs about a command or one of its options, without examples, which are as they are typed.
    fn paragraphs<'a>(texts: impl IntoIterator<Item = Option<&'a StyledStr>>) -> Vec<String> {
        let in_one_line = |of: &str| of.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = texts.into_iter().flatten().map(StyledStr::to_string);
        let all = texts.flat_map(|text| text.split("\n\n").map(in_one_line).collect::<Vec<_>>());
        all.filter(|text| !text.starts_with("Example: ")).collect()
    }

    /// Percent signs and thousands that are apart from their number.
    fn apart(text: &str) -> Vec<String> {
        let words: Vec<&str> = text.split(' ').collect();
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|of| of.is_ascii_digit());
        let is_apart = |pair: &&[&str]| {
            let behind = bare(pair[1]);
            is_number(pair[0]) && (behind == "%" || (behind.len() == 3 && is_number(behind)))
        };
        words.windows(2).filter(is_apart).map(|pair| pair.join(" ")).collect()
    }

    fn bare(word: &str) -> &str {
        word.trim_end_matches(['.', ',', ';', ':', ')'])
    }

    /// Thousands without their comma. A year is no count.
    fn joined(text: &str) -> Vec<String> {
        let number = |word: &&str| bare(word).parse::<u64>().ok();
        let is_count =
            |word: &&str| number(word).is_some_and(|of| of > 999 && !(1900..2100).contains(&of));
        text.split(' ').filter(is_count).map(str::to_owned).collect()
    }

    #[test]
    fn the_help_has_the_numbers_of_reports() {
        let planted = "up to 20 000, 5000 with a trace, in 2002: 95 % of 1,000; 50 90 99";
        assert_eq!(apart(planted), ["20 000,", "95 %"]);
        assert_eq!(joined(planted), ["5000"]);
        let found = commands().into_iter().flat_map(|(words, command)| {
            let own = paragraphs([command.get_about(), command.get_long_about()]);
            let options =
                command.get_arguments().flat_map(|arg| [arg.get_help(), arg.get_long_help()]);
            // What an option takes is told as it is typed.
            let options = paragraphs(options);
            let mut found: Vec<String> = own.iter().flat_map(|text| joined(text)).collect();
            found.extend(own.iter().chain(&options).flat_map(|text| apart(text)));
            found.into_iter().map(move |of| format!("{words}: {of}")).collect::<Vec<_>>()
        });
        assert_eq!(found.collect::<Vec<_>>(), [] as [String; 0]);
    }

    #[test]
    fn the_program_names_every_command_on_one_screen() {
        for flag in ["-h", "--help"] {
            let text = help("", flag);
            assert!(text.lines().count() <= LINES && fits(&text).is_empty(), "{text}");
            for (words, _) in commands().iter().filter(|(words, _)| !words.contains(' ')) {
                let named = text.split(|c: char| c != '-' && !c.is_alphanumeric());
                assert!(named.clone().any(|word| word == words), "{words} is not in\n{text}");
            }
        }
    }

    #[test]
    fn each_option_that_the_program_names_is_one_of_the_check_up() {
        let text = help("", "-h");
        let line =
            text.lines().find(|line| line.starts_with("Options of most commands: ")).unwrap();
        let program = program(false);
        let has = |name: &str| program.get_arguments().any(|arg| arg.get_long() == Some(name));
        let named: Vec<&str> =
            line.split("--").skip(1).map(|of| of.split(' ').next().unwrap()).collect();
        assert!(named.len() > 4, "{line}");
        let lacks: Vec<&&str> = named.iter().filter(|name| !has(name)).collect();
        assert!(lacks.is_empty(), "{lacks:?} in {line}");
    }

    #[test]
    fn words_are_read_as_before() {
        for words in ["gaps --duration 3s", "rtt --rate 1kpps", "hourglass -n 1 -t 0 -w CPU"] {
            let all = || ["whylate"].into_iter().chain(words.split(' '));
            let read = program(false).try_get_matches_from(all()).unwrap();
            let read: Cli = clap::FromArgMatches::from_arg_matches(&read).unwrap();
            let plain = Cli::try_parse_from(all()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{plain:?}"));
        }
    }
}
