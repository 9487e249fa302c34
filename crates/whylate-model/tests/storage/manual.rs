//! The manual's page of the fields of `run.json`, from its schema: a table for each type.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

/// What stands above the tables.
const HEAD: &str = "\
# Fields of run.json

This page is made from the [schema](run.schema.json) of format
version 2, and names types as the schema does. Names of numbers end in their unit: `_ns`, `_ticks`
(values of the counter, which `clock` relates to time), `_share` (of a whole, 1 for all of it), `_ratio`
(any other quotient), `_per_s`, `_bytes`; names of counts have none. A `?` behind a type says that the
field may be missing or `null`. Version 2 may still change until a run of every kind is a head and
parts; runs of version 1, whose names lack most units, are read as well.

`--format json` prints a run in this form, whatever the version that it was recorded in:

```console
$ whylate report tests/runs/gaps --format json
```
";

/// The page.
pub(crate) fn page() -> String {
    let schema: Value = serde_json::from_str(&whylate_model::schema::of_run()).unwrap();
    let page = Page { types: schema["$defs"].as_object() };
    let mut text = HEAD.to_owned();
    page.section("Run", &schema, &mut text);
    for name in page.mentioned(&schema) {
        if let Some(of) = page.types.and_then(|types| types.get(name))
            && has_section(of)
        {
            page.section(name, of, &mut text);
        }
    }
    text
}

struct Page<'a> {
    types: Option<&'a Map<String, Value>>,
}

impl<'a> Page<'a> {
    /// Types in the order in which a reader meets them.
    fn mentioned(&self, root: &'a Value) -> Vec<&'a str> {
        let mut order = Vec::new();
        let mut known = BTreeSet::from(["Run"]);
        let mut next = vec![root];
        while let Some(of) = next.pop() {
            let mut names = Vec::new();
            references(of, &mut names);
            let new: Vec<&str> = names.into_iter().filter(|name| known.insert(name)).collect();
            order.extend(&new);
            let types = new.iter().rev().filter_map(|name| self.types?.get(*name));
            next.extend(types);
        }
        order
    }

    fn section(&self, name: &str, of: &Value, text: &mut String) {
        let _ = writeln!(text, "\n## {name}\n\n{}", described(of));
        if of["properties"].is_object() {
            self.fields(of, text);
        }
        let variants = variants(of);
        if !variants.is_empty() {
            self.variants(&variants, text);
        }
    }

    fn fields(&self, of: &Value, text: &mut String) {
        let Some(fields) = of["properties"].as_object() else { return };
        text.push_str("\n| field | type | what it is |\n|---|---|---|\n");
        for (name, field) in fields {
            let needed = is_required(of, name);
            let _ = writeln!(
                text,
                "| `{name}` | {} | {} |",
                self.kind(field, needed),
                described(field)
            );
        }
    }

    /// A table of what an enumeration may be, each with the fields that it has then.
    fn variants(&self, variants: &[&Value], text: &mut String) {
        text.push_str("\n| is | fields | what it is |\n|---|---|---|\n");
        for of in variants {
            let (around, inside) = inside(of);
            let fields = inside["properties"].as_object().into_iter().flatten();
            let fields = fields.filter(|(_, field)| field["const"].is_null());
            let fields: Vec<String> = fields
                .map(|(name, field)| {
                    format!("`{around}{name}`: {}", self.kind(field, is_required(inside, name)))
                })
                .collect();
            let (is, fields) = (self.words(of).join(", "), fields.join("<br>"));
            let _ = writeln!(text, "| {is} | {fields} | {} |", described(of));
        }
    }

    /// By what a variant is known: its constant, the field that has one, the name of its only field, or the
    /// type that it is.
    fn words(&self, of: &Value) -> Vec<String> {
        let fields = || of["properties"].as_object().into_iter().flatten();
        let tags = fields().filter_map(|(name, field)| {
            field["const"].as_str().map(|word| format!("`{name}`: `{word}`"))
        });
        let listed = of["enum"].as_array().into_iter().flatten();
        let own = listed.chain([&of["const"]]).filter_map(Value::as_str);
        let words: Vec<String> = own.map(|word| format!("`{word}`")).chain(tags).collect();
        match fields().next() {
            _ if !words.is_empty() => words,
            Some((name, _)) => vec![format!("`{name}`")],
            None => vec![self.holds(of).0],
        }
    }

    /// What a field holds, in words.
    fn kind(&self, of: &Value, needed: bool) -> String {
        let (kind, may_be_null) = self.holds(of);
        if needed && !may_be_null { kind } else { format!("{kind} ?") }
    }

    fn holds(&self, of: &Value) -> (String, bool) {
        if let Some(name) = referred(of) {
            return match self.types.and_then(|types| types.get(name)) {
                Some(to) if !has_section(to) => self.holds(to),
                _ => (format!("[{name}](#{})", name.to_lowercase()), false),
            };
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(all) = of[choice].as_array() {
                let (null, others): (Vec<_>, Vec<_>) =
                    all.iter().partition(|of| of["type"] == "null");
                let kinds: Vec<String> = others.into_iter().map(|of| self.holds(of).0).collect();
                return (kinds.join(" or "), !null.is_empty());
            }
        }
        let kinds: Vec<&str> = match &of["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let kind = kinds.iter().find(|kind| **kind != "null").copied().unwrap_or("any");
        let kind = match kind {
            "array" => match of["prefixItems"].as_array() {
                Some(each) => {
                    let each: Vec<String> = each.iter().map(|of| self.holds(of).0).collect();
                    format!("list of {}", each.join(" and "))
                }
                None => format!("list of {}", self.kind(&of["items"], true)),
            },
            "object" if of["additionalProperties"].is_object() => {
                format!("{} by name", self.kind(&of["additionalProperties"], true))
            }
            "string" => "text".to_owned(),
            "boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        };
        (kind, kinds.contains(&"null"))
    }
}

/// Has a type anything to tell beyond its kind?
fn has_section(of: &Value) -> bool {
    of["properties"].is_object() || !variants(of).is_empty()
}

fn variants(of: &Value) -> Vec<&Value> {
    let choices = ["oneOf", "anyOf"].into_iter();
    choices.flat_map(|kind| of[kind].as_array().into_iter().flatten()).collect()
}

/// Where the fields of a variant stand: in it, or in the one field that names it, with its name.
fn inside(of: &Value) -> (String, &Value) {
    let fields: Vec<_> = of["properties"].as_object().into_iter().flatten().collect();
    match fields.as_slice() {
        [(name, only)] if only["properties"].is_object() => (format!("{name}."), only),
        _ => (String::new(), of),
    }
}

fn is_required(of: &Value, name: &str) -> bool {
    of["required"].as_array().into_iter().flatten().any(|of| of == name)
}

fn referred(of: &Value) -> Option<&str> {
    of["$ref"].as_str().and_then(|path| path.rsplit('/').next())
}

/// Names of types inside, in the order of the document.
fn references<'a>(of: &'a Value, found: &mut Vec<&'a str>) {
    found.extend(referred(of));
    match of {
        Value::Object(fields) => {
            let inside = fields.iter().filter(|(name, _)| *name != "$defs");
            inside.for_each(|(_, of)| references(of, found));
        }
        Value::Array(all) => all.iter().for_each(|of| references(of, found)),
        _ => {}
    }
}

/// Its description in one line, as a cell of a table may hold it, without links into the program.
fn described(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split("`](crate::");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| {
        format!("{text}`{}", part.split_once(')').map_or("", |(_, behind)| behind))
    });
    text.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}
