//! How large the product is: lines with code of each crate. Tests, comments and blank lines are left out, and
//! a text of three lines is three.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};

use crate::product::{self, Comments};

/// Files and lines of a crate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Size {
    files: usize,
    lines: usize,
}

/// Prints the size of these crates, or of all of the product.
pub(crate) fn print(root: &Path, names: &[&str]) -> Result<()> {
    let names = if names.is_empty() { &crate::layers::PRODUCT[..] } else { names };
    let sizes = names.iter().map(|name| Ok((*name, size(root, name)?)));
    print!("{}", table(&sizes.collect::<Result<Vec<_>>>()?));
    Ok(())
}

fn size(root: &Path, name: &str) -> Result<Size> {
    let places = [root.join("crates").join(name), root.join(name)];
    let Some(place) = places.iter().map(|place| place.join("src")).find(|place| place.is_dir())
    else {
        bail!(
            "there is no crate named {name}; write the name of a folder in crates/, accept or xtask"
        );
    };
    let mut size = Size::default();
    for (path, text) in product::sources(&place)? {
        size.files += 1;
        size.lines += lines(&text).with_context(|| path.display().to_string())?;
    }
    Ok(size)
}

/// Lines of a source on which a token of its product stands.
fn lines(source: &str) -> Result<usize> {
    let mut found = BTreeSet::new();
    add(product::tokens(source, Comments::LeftOut)?, &mut found);
    Ok(found.len())
}

fn add(tokens: TokenStream, found: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                found.extend([group.span_open().start().line, group.span_close().end().line]);
                add(group.stream(), found);
            }
            other => found.extend(other.span().start().line..=other.span().end().line),
        }
    }
}

/// One row for each, and their sum last.
fn table(sizes: &[(&str, Size)]) -> String {
    let sum = sizes.iter().fold(Size::default(), |sum, (_, size)| Size {
        files: sum.files + size.files,
        lines: sum.lines + size.lines,
    });
    let widest = sizes.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(5);
    let mut text = format!("{:<widest$}  files   lines\n", "crate");
    for (name, size) in sizes.iter().chain([&("total", sum)]) {
        let row = format!("{name:<widest$}  {:>5}  {:>6}\n", size.files, size.lines);
        text.push_str(&row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven lines of it are code: the last two of the text in it have nothing but it.
    const PLANTED: &str = r#"//! What it is.

/// What it does.
// Why.
#[inline]
pub fn code() -> &'static str {
    /* nothing

    yet */
    "// no comment

     }"
}

/** Of the planted. */ const ONE: u8 = 1; // Here.

#[test]
fn a_test_of_its_own() {
    code();
}

/// For tests.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more() {}
}
"#;

    #[test]
    fn lines_of_code_count_and_those_of_tests_comments_and_blanks_do_not() {
        assert_eq!(lines(PLANTED).unwrap(), 7);
        assert_eq!(lines("").unwrap(), 0);
        assert!(lines("fn a() {").is_err());
    }

    #[test]
    fn each_crate_has_a_row_and_the_sum_comes_last() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("crates/one/src/lib.rs", "#[cfg(test)]\nmod tests;\nmod a;\n"),
            ("crates/one/src/a.rs", PLANTED),
            ("crates/one/src/tests.rs", "fn a() {}\n"),
            ("crates/one/tests/b.rs", "fn a() {}\n"),
            ("another/src/main.rs", "fn main() {}\n"),
        ];
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let [one, another] = ["one", "another"].map(|name| size(root.path(), name).unwrap());
        assert_eq!(one, Size { files: 2, lines: 8 });
        assert_eq!(
            table(&[("one", one), ("another", another)]),
            "crate    files   lines\none          2       8\nanother      1       1\ntotal        3       9\n"
        );
        let refused = size(root.path(), "none").unwrap_err().to_string();
        assert!(refused.contains("no crate named none"), "{refused}");
    }
}
