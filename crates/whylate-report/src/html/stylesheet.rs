//! What the stylesheets of the pages promise: text that can be read in both colour schemes, and no width that
//! a small screen has no room for.

use std::collections::BTreeMap;

use super::page::{PAGE_STYLE, SCRIPT};
use crate::svg;

/// Contrast of text and of what is drawn with its ground, by the Web Content Accessibility Guidelines 2.2 (1.4.3
/// and 1.4.11, level AA).
const TEXT: f64 = 4.5;
const DRAWN: f64 = 3.0;
/// The widest that anything may be whatever the screen, in pixels.
const WIDEST: f64 = 64.0;

type Colours = BTreeMap<String, String>;

/// Variables of a block: `--name: value;`.
fn variables(block: &str) -> Colours {
    let declared = block.split(';').filter_map(|one| one.split_once(':'));
    let named = declared.filter_map(|(name, value)| Some((name.trim().strip_prefix("--")?, value)));
    named.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

/// The colours in a light and in a dark room.
fn schemes() -> [(&'static str, Colours); 2] {
    let roots = svg::STYLE.split(":root {").skip(1);
    let roots: Vec<Colours> =
        roots.map(|from| variables(from.split('}').next().unwrap_or_default())).collect();
    let [light, dark] = <[Colours; 2]>::try_from(roots).unwrap();
    assert!(light.keys().eq(dark.keys()), "each colour has both values");
    [("light", light), ("dark", dark)]
}

/// Relative luminance of `#rgb` or `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let digits = colour.strip_prefix('#').unwrap();
    let each = digits.len() / 3;
    let channel = |at: usize| {
        let value = u8::from_str_radix(&digits[at * each..(at + 1) * each], 16).unwrap();
        let value = f64::from(if each == 1 { value * 17 } else { value }) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    (one / other).max(other / one)
}

/// Rules of both stylesheets: selector and declarations, whatever they stand in.
fn rules() -> Vec<(&'static str, &'static str)> {
    let bodies = [svg::STYLE, PAGE_STYLE].into_iter().flat_map(|style| style.split('}'));
    let rules = bodies.filter_map(|text| text.rsplit_once('{'));
    rules.map(|(before, body)| (before.rsplit('{').next().unwrap_or(before).trim(), body)).collect()
}

/// Values of a property, each with the selector that has it.
fn values(property: &str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for (selector, body) in rules() {
        let declared = body.split(';').filter_map(|one| one.split_once(':'));
        let of_it = declared.filter(|(name, _)| name.trim() == property);
        found.extend(of_it.map(|(_, value)| (selector, value.trim())));
    }
    found
}

#[test]
fn contrast_is_that_of_the_guidelines() {
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
    assert!((contrast("#fff", "#fff") - 1.0).abs() < 1e-9);
    // The grey that is the lightest on white for text.
    assert!(contrast("#767676", "#fff") >= TEXT && contrast("#777", "#fff") < TEXT);
}

#[test]
fn text_stands_out_from_its_ground_in_light_and_in_dark() {
    // Nothing else is a colour of text, or a ground of it.
    let of_text = |selector: &str| {
        let parts = ["text", ".tick", ".label", ".note", ".lane", ".inside"];
        parts.iter().any(|part| selector.ends_with(part))
    };
    let mut texts = values("color");
    texts.extend(values("fill").into_iter().filter(|(selector, _)| of_text(selector)));
    assert!(texts.len() >= 10, "{texts:?}");
    for (selector, value) in texts {
        assert!(["var(--ink)", "var(--soft)"].contains(&value), "{selector}: {value}");
    }
    for (selector, value) in values("background") {
        let is_ground = ["var(--ground)", "var(--panel)"].contains(&value);
        assert!(is_ground || selector == ".u-select", "{selector}: {value}");
    }
    for (scheme, colours) in schemes() {
        // In pictures `ran` is one, too.
        for (text, ground) in ["ink", "soft"]
            .into_iter()
            .flat_map(|text| ["ground", "panel", "ran"].map(|ground| (text, ground)))
        {
            let found = contrast(&colours[text], &colours[ground]);
            assert!(found >= TEXT, "{scheme}: {text} on {ground}: {found:.2}");
        }
    }
}

#[test]
fn words_on_the_colour_of_a_cause_have_an_edge_that_they_stand_out_from() {
    let inside = rules().into_iter().find(|(selector, _)| selector.ends_with(".figure .inside"));
    let (_, body) = inside.unwrap();
    for declared in ["fill: var(--ink)", "stroke: var(--ground)", "paint-order: stroke"] {
        assert!(body.contains(declared), "{declared}: {body}");
    }
    let drawn = SCRIPT.split("function inside(").nth(1).and_then(|from| from.split("}\n").next());
    let drawn = drawn.unwrap();
    let [edge, words] = ["ctx.strokeText(", "ctx.fillText("].map(|what| drawn.find(what).unwrap());
    assert!(edge < words, "the edge is drawn first: {drawn}");
    assert!(drawn.contains("strokeStyle = css(\"--ground\")"), "{drawn}");
    assert!(drawn.contains("fillStyle = css(\"--ink\")"), "{drawn}");
}

#[test]
fn curves_and_bars_stand_out_from_their_ground_in_light_and_in_dark() {
    for (scheme, colours) in schemes() {
        for drawn in ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "rest"] {
            let found = contrast(&colours[drawn], &colours["ground"]);
            assert!(found >= DRAWN, "{scheme}: {drawn}: {found:.2}");
        }
    }
}

#[test]
fn nothing_has_a_width_that_a_small_screen_has_no_room_for() {
    for property in ["width", "min-width"] {
        for (selector, value) in values(property) {
            let pixels = value.strip_suffix("px").map(|pixels| pixels.parse::<f64>().unwrap());
            assert!(pixels.is_none_or(|pixels| pixels <= WIDEST), "{selector}: {property} {value}");
        }
    }
    // What is wider than the page has a box of its own.
    assert!(values("overflow-x").contains(&(".scroll", "auto")));
}
