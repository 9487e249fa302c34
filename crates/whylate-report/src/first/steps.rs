//! Next steps that can be typed: the command that there was with more options, or the options alone where its words
//! have no room. What stands for the words of a user can be typed by nobody.

use whylate_model::Printable;

use super::for_a_shell;
use super::layout::{COLUMNS, MORE};
use crate::render::columns;

/// The option that says where a run is written, which is there already when another step follows.
const OUT: [&str; 3] = ["-o", "--out", "--output"];

/// Has it room in a line of a screen?
pub(super) fn fits(said: &str) -> bool {
    MORE.len() + columns(said) <= COLUMNS
}

/// Is this option among the words, with its value or before it?
pub(super) fn has(command_line: &[String], option: &str) -> bool {
    command_line.iter().any(|word| word.split('=').next() == Some(option))
}

/// Each option with what it gives, behind the command where all of them have room.
pub(super) fn with(command_line: &[String], options: &[(&str, &str)]) -> Vec<String> {
    let has = |option: &str| has(command_line, option);
    let new: Vec<&(&str, &str)> = options.iter().filter(|(option, _)| !has(option)).collect();
    let names = || new.iter().flat_map(|(option, _)| option.split(' '));
    // An option may be there with another value.
    let own =
        own(command_line).filter(|_| !names().any(|name| name.starts_with("--") && has(name)));
    let told = |begin: &str| -> Vec<String> {
        new.iter().map(|(option, what)| format!("{begin}{option}  {what}")).collect()
    };
    let own = own.map(|own| told(&format!("{own} "))).filter(|all| all.iter().all(|of| fits(of)));
    own.unwrap_or_else(|| told(""))
}

/// The command as it can be typed again with another value of an option, or with that option: the directory is another
/// one each time. None where the command is not known.
pub(super) fn again(command_line: &[String], option: &str) -> Option<String> {
    let name = option.split(' ').next().unwrap_or(option);
    let words = words(command_line, name)?;
    (words.len() > 1).then(|| format!("{} {option}", words.join(" ")))
}

/// The words of a command as a shell takes them, without where its run went; none where they are not known.
fn own(command_line: &[String]) -> Option<String> {
    Some(words(command_line, "")?.join(" "))
}

/// The same, one by one, without this option, too.
fn words(command_line: &[String], option: &str) -> Option<Vec<String>> {
    let mut words = command_line.iter();
    let mut told = vec![Printable(words.next()?.rsplit('/').next()?).to_string()];
    while let Some(word) = words.next() {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), false), |(of, _)| (of, true));
        // The directory may stand behind its letter: `-orun`.
        let is_short = name.starts_with("-o") && !name.starts_with("--") && name.len() > 2;
        if is_short {
            continue;
        }
        if !OUT.contains(&name) && (option.is_empty() || name != option) {
            told.push(for_a_shell(word));
        } else if !value {
            // The value is the next word.
            words.next();
        }
    }
    Some(told)
}
