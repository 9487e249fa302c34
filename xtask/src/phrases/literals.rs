//! What the sources of a program can print: its string literals and, where comments are help, those.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The text of all literals of a source file outside its tests, with a mark between them.
pub(super) fn of(source: &str, comments: bool) -> Result<String> {
    let tokens: TokenStream = source.parse().map_err(|error| anyhow!("{error}"))?;
    let mut text = String::new();
    add(tokens, comments, &mut text);
    Ok(text)
}

fn add(tokens: TokenStream, comments: bool, text: &mut String) {
    let mut of_tests = false;
    let mut after_hash = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) if after_hash => {
                let attribute = group.stream().to_string();
                of_tests |= attribute == "cfg (test)" || attribute == "cfg(test)";
                let is_comment = attribute.starts_with("doc");
                if comments || !is_comment {
                    add(group.stream(), comments, text);
                }
            }
            // The item that an attribute of tests is about ends with its block.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let is_of_tests = std::mem::take(&mut of_tests);
                if !is_of_tests {
                    add(group.stream(), comments, text);
                }
            }
            TokenTree::Group(group) if !of_tests => add(group.stream(), comments, text),
            TokenTree::Punct(mark) if mark.as_char() == ';' => of_tests = false,
            TokenTree::Literal(literal) if !of_tests => {
                if let Ok(string) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    text.push_str(&string.value());
                    text.push_str("\n;\n");
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                after_hash = true;
                continue;
            }
            // `#![..]`
            TokenTree::Punct(mark) if mark.as_char() == '!' && after_hash => continue,
            _ => {}
        }
        after_hash = false;
    }
}
