//! What the product is made of: sources without the items and the files of tests.
//!
//! A source is read token by token, so that comments are gone, and a brace in a string is none. Items that
//! are compiled otherwise than under `#[cfg(test)]` alone, such as `#[cfg(any(test, ..))]`, are kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Are comments for the manual of an item (`///`, `//!`) kept, as the attributes that they are?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comments {
    Kept,
    LeftOut,
}

/// The tokens of a source outside its tests, each with the lines it stands on.
pub(crate) fn tokens(source: &str, comments: Comments) -> Result<TokenStream> {
    let tokens: TokenStream = source.parse().map_err(|error| anyhow!("{error}"))?;
    Ok(kept(tokens, &mut Seen { comments, modules: Vec::new() }))
}

/// The sources below a folder that are no files of tests, each with its text.
pub(crate) fn sources(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut of_tests: Vec<PathBuf> = Vec::new();
    for path in crate::files(folder, "rs")? {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(shown)?;
        let tokens: TokenStream =
            text.parse().map_err(|error| anyhow!("{error}")).with_context(shown)?;
        let mut seen = Seen { comments: Comments::LeftOut, modules: Vec::new() };
        kept(tokens, &mut seen);
        let beside = modules_of(&path);
        of_tests.extend(seen.modules.iter().map(|name| beside.join(name)));
        found.push((path, text));
    }
    // A module lies in a file of its name, and the modules within it in a folder of its name.
    found.retain(|(path, _)| {
        !of_tests.iter().any(|module| path.with_extension("").starts_with(module))
    });
    Ok(found)
}

/// The folder in which the modules of a source lie.
fn modules_of(path: &Path) -> PathBuf {
    let is_of_its_folder = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| path.ends_with(name));
    if is_of_its_folder { path.with_file_name("") } else { path.with_extension("") }
}

/// What is asked for while tokens are looked through, and what was left out.
struct Seen {
    comments: Comments,
    /// Modules of tests that lie in files of their own.
    modules: Vec<String>,
}

fn kept(tokens: TokenStream, seen: &mut Seen) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut attributes: Vec<TokenTree> = Vec::new();
    let mut of_tests = false;
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        if is_mark(&token, '#') {
            let inner = rest.next_if(|next| is_mark(next, '!'));
            let is_inner = inner.is_some();
            let group = rest.next_if(|next| matches!(next, TokenTree::Group(_)));
            let what = group.as_ref().map(ToString::to_string).unwrap_or_default();
            let what: String = what.split_whitespace().collect();
            if is_inner && what == "[cfg(test)]" {
                return TokenStream::new();
            }
            of_tests |= what == "[cfg(test)]" || what == "[test]";
            if seen.comments == Comments::Kept || !what.starts_with("[doc=") {
                attributes.extend([Some(token), inner, group].into_iter().flatten());
            }
            continue;
        }
        if std::mem::take(&mut of_tests) {
            attributes.clear();
            pass_over(token, &mut rest, seen);
            continue;
        }
        kept.append(&mut attributes);
        kept.push(match token {
            TokenTree::Group(group) => TokenTree::Group(within(&group, seen)),
            other => other,
        });
    }
    kept.append(&mut attributes);
    kept.into_iter().collect()
}

/// The same group without what is left out in it.
fn within(group: &Group, seen: &mut Seen) -> Group {
    let mut same = Group::new(group.delimiter(), kept(group.stream(), seen));
    same.set_span(group.span());
    same
}

/// Words after which a comma ends nothing: it stands within an item.
const ITEMS: [&str; 11] =
    ["const", "enum", "fn", "impl", "let", "mod", "static", "struct", "trait", "type", "use"];

/// Takes the rest of an item that begins with `first`: up to its block, its `;`, or the comma behind a field.
fn pass_over(
    first: TokenTree,
    rest: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>,
    seen: &mut Seen,
) {
    let mut words: Vec<String> = Vec::new();
    let mut token = Some(first);
    while let Some(one) = token {
        match one {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                rest.next_if(|next| is_mark(next, ';') || is_mark(next, ','));
                return;
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                let name = words.iter().skip_while(|word| *word != "mod").nth(1);
                seen.modules.extend(name.cloned());
                return;
            }
            TokenTree::Punct(mark)
                if mark.as_char() == ','
                    && !words.iter().any(|word| ITEMS.contains(&word.as_str())) =>
            {
                return;
            }
            TokenTree::Ident(word) => words.push(word.to_string()),
            _ => {}
        }
        token = rest.next();
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(source: &str) -> String {
        tokens(source, Comments::LeftOut).unwrap().to_string()
    }

    #[test]
    fn items_of_tests_are_left_out_with_their_attributes_and_all_others_are_kept() {
        let cases = [
            ("a; #[cfg(test)] mod tests { b } c;", "a ; c ;"),
            ("#[cfg(test)] pub(crate) mod tests; a;", "a ;"),
            ("#[cfg(test)] use b::{c, d}; a;", "a ;"),
            ("/// Of it.\n#[expect(x)] #[cfg(test)] const B: C<D, E> = C { f: 1 }; a;", "a ;"),
            ("#[cfg(test)] fn f<A, B>(a: A) where A: C, B: D { } a;", "a ;"),
            ("#[test] fn f() { } a;", "a ;"),
            ("struct A { #[cfg(test)] b: C, d: E, }", "struct A { d : E , }"),
            ("impl A { #[cfg(test)] fn f() { } fn g() { } }", "impl A { fn g () { } }"),
            ("#![cfg(test)] a;", ""),
            ("#[cfg(feature = \"x\")] a;", "# [cfg (feature = \"x\")] a ;"),
            (
                "macro_rules! m { ($a:tt) => { #$a } }",
                "macro_rules ! m { ($ a : tt) => { # $ a } }",
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(left(source).replace(' ', ""), expected.replace(' ', ""), "{source}");
        }
    }

    #[test]
    fn comments_of_items_are_kept_where_they_are_asked_for() {
        let source = "//! Of all.\n/// Of it.\nfn f() {} // No more.";
        let all = tokens(source, Comments::Kept).unwrap().to_string();
        assert!(
            all.contains("Of all.") && all.contains("Of it.") && !all.contains("No more"),
            "{all}"
        );
        assert!(!left(source).contains("Of"));
    }

    #[test]
    fn files_of_modules_of_tests_are_no_sources_of_the_product() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] mod tests; #[cfg(test)] pub(crate) mod planted;"),
            ("a.rs", "#[cfg(test)] mod cases; mod b;"),
            ("a/b.rs", ""),
            ("a/cases.rs", "mod one;"),
            ("a/cases/one.rs", ""),
            ("a/cases_of_it.rs", ""),
            ("planted/mod.rs", ""),
            ("planted/more.rs", ""),
            ("tests.rs", ""),
        ];
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = sources(root.path()).unwrap();
        let found: Vec<_> =
            found.iter().map(|(path, _)| path.strip_prefix(root.path()).unwrap()).collect();
        assert_eq!(found, ["a/b.rs", "a/cases_of_it.rs", "a.rs", "lib.rs"].map(Path::new));
    }
}
