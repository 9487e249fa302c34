//! That no live test can hang for ever: each begins with `program::alone()`, itself or by a function of its file
//! that it calls, which waits for the others and gives it a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What the limit begins with.
const BEGINS: &str = "alone";

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (file, text) in modules(root, "tests/live.rs", "tests/")? {
        let without = File::read(&text).with_context(|| file.clone())?.unlimited();
        faults.extend(without.into_iter().map(|name| {
            format!(
                "{file}: {name} has no limit: begin it with `program::{BEGINS}()`, or move what measures nothing \
                 to tests/pure.rs"
            )
        }));
    }
    Ok(faults)
}

/// A file and those of its modules, which lie in this folder: the names below the root, and the texts.
fn modules(root: &Path, file: &str, folder: &str) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
    let tokens: Vec<TokenTree> = tokens(&text).with_context(|| file.to_owned())?.collect();
    let mut found = vec![(file.to_owned(), text)];
    for three in tokens.windows(3) {
        let [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end)] = three else {
            continue;
        };
        if word == "mod" && end.as_char() == ';' {
            let (file, inner) = (format!("{folder}{name}.rs"), format!("{folder}{name}/"));
            found.extend(modules(root, &file, &inner)?);
        }
    }
    Ok(found)
}

fn tokens(text: &str) -> Result<proc_macro2::token_stream::IntoIter> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
    Ok(tokens.into_iter())
}

/// The functions of a file, methods among them.
#[derive(Default)]
struct File {
    tests: Vec<String>,
    /// What each of them calls, by its name.
    calls: BTreeMap<String, BTreeSet<String>>,
}

impl File {
    fn read(text: &str) -> Result<Self> {
        let mut file = Self::default();
        file.take(&tokens(text)?.collect::<Vec<_>>());
        Ok(file)
    }

    fn take(&mut self, items: &[TokenTree]) {
        let (mut is_test, mut function) = (false, None);
        for (at, token) in items.iter().enumerate() {
            match token {
                TokenTree::Group(of) if of.delimiter() == Delimiter::Bracket => {
                    is_test |= of.stream().to_string() == "test";
                }
                TokenTree::Ident(word) if word == "fn" => {
                    let next = items.get(at + 1);
                    // In a type nothing is called.
                    let is_name = |of: &&TokenTree| matches!(of, TokenTree::Ident(_));
                    function = next.filter(is_name).map(ToString::to_string);
                }
                TokenTree::Group(of) if of.delimiter() == Delimiter::Brace => {
                    let body: Vec<TokenTree> = of.stream().into_iter().collect();
                    match function.take() {
                        Some(name) => {
                            called(&body, self.calls.entry(name.clone()).or_default());
                            self.tests.extend(is_test.then_some(name));
                        }
                        // Of a module or an `impl`.
                        None => self.take(&body),
                    }
                    is_test = false;
                }
                TokenTree::Punct(end) if end.as_char() == ';' => {
                    (is_test, function) = (false, None);
                }
                _ => (),
            }
        }
    }

    /// Names of tests that begin no limit.
    fn unlimited(self) -> Vec<String> {
        let has_none = |test: &&String| !self.begins(test, &mut BTreeSet::new());
        self.tests.iter().filter(has_none).cloned().collect()
    }

    /// Does this function call what begins the limit, or one of its file that does?
    fn begins<'a>(&'a self, name: &'a str, seen: &mut BTreeSet<&'a str>) -> bool {
        let Some(called) = self.calls.get(name).filter(|_| seen.insert(name)) else { return false };
        called.contains(BEGINS) || called.iter().any(|name| self.begins(name, seen))
    }
}

/// Names in front of parentheses.
fn called(body: &[TokenTree], names: &mut BTreeSet<String>) {
    for (at, token) in body.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        if let Some(TokenTree::Ident(name)) = at.checked_sub(1).and_then(|before| body.get(before))
            && group.delimiter() == Delimiter::Parenthesis
        {
            names.insert(name.to_string());
        }
        called(&group.stream().into_iter().collect::<Vec<_>>(), names);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{File, check};

    #[test]
    fn a_live_test_begins_its_limit_itself_or_by_a_function_of_its_file() {
        let with = "#[test]\nfn itself() { let _alone = program::alone(); }\n\
            #[test]\nfn by_another() { for a in b { measured(a, [c(1)]); } }\n\
            fn measured() { within() }\nfn within() { if let Some(_) = Some(alone()) {} }\n\
            impl A {\n    fn alone_in_it() {}\n}\n";
        assert_eq!(File::read(with).unwrap().unlimited(), [""; 0]);
        let without = "#[test]\nfn spoken_of() { /* alone() */ let a = \"program::alone()\"; }\n\
            #[test]\n#[cfg(unix)]\nfn elsewhere() { other::measured(); }\n\
            #[test]\nfn round() { around() }\nfn around() { round() }\n\
            fn nobody_calls_it() { alone() }\n\
            mod a {\n    #[test]\n    fn inside() {}\n}\n";
        let named = ["spoken_of", "elsewhere", "round", "inside"];
        assert_eq!(File::read(without).unwrap().unlimited(), named);
    }

    #[test]
    fn files_of_live_tests_are_looked_at_to_the_innermost_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let bare = |name: &str| format!("//! A.\n#[test]\nfn {name}() {{}}\n");
        fs::create_dir_all(root.path().join("tests/device")).unwrap();
        for (file, text) in [
            ("live.rs", "//! mod spoken_of;\nmod device;\n".to_owned()),
            ("device.rs", "//! A.\nmod boxes;\n".to_owned() + &bare("of_a_device")),
            ("device/boxes.rs", bare("of_boxes")),
            ("rta.rs", bare("of_another_target")),
        ] {
            fs::write(root.path().join("tests").join(file), text).unwrap();
        }
        let faults = check(root.path()).unwrap();
        let begins = ["tests/device.rs: of_a_device has", "tests/device/boxes.rs: of_boxes has"];
        let named = faults.iter().zip(begins).all(|(fault, begins)| fault.starts_with(begins));
        assert!(faults.len() == 2 && named, "{faults:?}");
        fs::remove_file(root.path().join("tests/device/boxes.rs")).unwrap();
        assert!(check(root.path()).is_err(), "a module without a file is passed over");
    }
}
