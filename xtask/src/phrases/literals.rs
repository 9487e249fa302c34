//! What sources can print: the string literals of the product's and, where comments are help, those; and the
//! strings of a script.

use anyhow::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::list::BETWEEN;
use crate::product::{self, Comments};

/// The text of all literals of a source file outside its tests, with a mark between them. A sentence that is put
/// together of literals and values is one text, with `{}` where a value stands.
pub(super) fn of(source: &str, comments: Comments) -> Result<String> {
    let mut text = String::new();
    add(product::tokens(source, comments)?, &mut text);
    Ok(text)
}

fn add(tokens: TokenStream, text: &mut String) {
    // Behind the name of the macro and its mark comes what the sentence is made of.
    let mut sentence = 0;
    let mut in_comment = false;
    for token in tokens {
        if let Some(line) = comment(&token) {
            text.push_str(&line);
            text.push(' ');
            in_comment = true;
            continue;
        }
        let goes_on = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#');
        if in_comment && !goes_on {
            text.push_str(BETWEEN);
            in_comment = false;
        }
        sentence = match &token {
            TokenTree::Ident(name) if name == "sentence" => 2,
            TokenTree::Punct(mark) if mark.as_char() == '!' && sentence == 2 => 1,
            TokenTree::Group(group) if sentence == 1 && group.delimiter() == Delimiter::Bracket => {
                joined(group.stream(), text);
                0
            }
            _ => 0,
        };
        match token {
            TokenTree::Group(group) => add(group.stream(), text),
            TokenTree::Literal(literal) => {
                if let Some(value) = string(&literal) {
                    text.push_str(&value);
                    text.push_str(BETWEEN);
                }
            }
            _ => {}
        }
    }
}

/// A line of a comment for the manual, as the attribute that it is.
fn comment(token: &TokenTree) -> Option<String> {
    let TokenTree::Group(group) = token else { return None };
    let mut within = group.stream().into_iter();
    let is_comment = matches!(within.next(), Some(TokenTree::Ident(name)) if name == "doc");
    match within.last() {
        Some(TokenTree::Literal(line)) if is_comment => string(&line),
        _ => None,
    }
}

/// The parts of a sentence in one.
fn joined(parts: TokenStream, text: &mut String) {
    let mut value = false;
    for token in parts {
        match &token {
            TokenTree::Literal(literal) => {
                let said = string(literal);
                text.push_str(said.as_deref().unwrap_or(" {} "));
                value = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' => value = false,
            _ if !std::mem::replace(&mut value, true) => text.push_str("{}"),
            _ => {}
        }
    }
    text.push_str(BETWEEN);
}

fn string(literal: &proc_macro2::Literal) -> Option<String> {
    let literal = literal.to_string();
    // Numbers, letters and bytes are most of them.
    let is_string =
        literal.starts_with('"') || literal.starts_with("r\"") || literal.starts_with("r#");
    let parsed = is_string.then(|| syn::parse_str::<syn::LitStr>(&literal).ok());
    parsed.flatten().map(|string| placeholders(&string.value()))
}

/// The same with `{}` for every value.
fn placeholders(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        said.push_str(before);
        rest = match from.split_once('}') {
            Some((name, behind)) if !name.contains([' ', '\n', '"']) => {
                said.push_str("{}");
                behind
            }
            _ => {
                said.push('{');
                from
            }
        };
    }
    said.push_str(rest);
    said
}

/// The strings of a script, with a mark between them; `${..}` in one is a value. What stands behind `//` and between
/// `/*` and `*/` is none, and neither is what lies between the slashes of a pattern, which has no quotes here.
pub(super) fn of_script(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '`', '/']) {
        let (quote, from) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = match quote {
            b'/' if from.starts_with('/') => from.split_once('\n').map_or("", |(_, behind)| behind),
            b'/' if from.starts_with('*') => from.split_once("*/").map_or("", |(_, behind)| behind),
            b'/' => from,
            _ => {
                let end = closing(from, quote);
                text.push_str(&placeholders(&from[..end].replace("${", "{")));
                text.push_str(BETWEEN);
                from.get(end + 1..).unwrap_or("")
            }
        };
    }
    text
}

/// Where a string ends.
fn closing(from: &str, quote: u8) -> usize {
    let mut escaped = false;
    let end = from.bytes().position(|byte| {
        let closes = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.unwrap_or(from.len())
}
