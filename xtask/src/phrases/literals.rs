//! What the sources of a program can print: its string literals and, where comments are help, those.

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use crate::product::{self, Comments};

/// The text of all literals of a source file outside its tests, with a mark between them.
pub(super) fn of(source: &str, comments: Comments) -> Result<String> {
    let mut text = String::new();
    add(product::tokens(source, comments)?, &mut text);
    Ok(text)
}

fn add(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => add(group.stream(), text),
            TokenTree::Literal(literal) => {
                if let Ok(string) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    text.push_str(&string.value());
                    text.push_str("\n;\n");
                }
            }
            _ => {}
        }
    }
}
