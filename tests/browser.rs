//! The page of a report in a real browser, as a person gets it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use whylate_model::RunDir;
use whylate_report::html;

use crate::chromium::Browser;
use crate::{needs, program, two_cpus};

/// Pixels of a telephone, of a window and of a screen.
const WIDTHS: [u32; 3] = [400, 1000, 1600];

/// Gaps of the page that is opened.
const GAPS: u64 = 100_000;

struct Opened {
    browser: Browser,
    page: PathBuf,
    _home: TempDir,
}

/// The page of a planted run, not yet opened; none without Chromium.
fn page() -> Option<Opened> {
    let chromium = needs::program("chromium")?;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    two_cpus::run(&directory, GAPS);
    let page = home.path().join("report.html");
    written(&directory, &page);
    Some(Opened { browser: Browser::start(&chromium), page, _home: home })
}

/// The page of a kept run, not yet opened.
fn page_of(kind: &str) -> Option<Opened> {
    let chromium = needs::program("chromium")?;
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("report.html");
    written(&program::file("runs").join(kind), &page);
    Some(Opened { browser: Browser::start(&chromium), page, _home: home })
}

fn written(directory: &Path, page: &Path) {
    let directory = RunDir::open(directory).unwrap();
    html::write_to(&directory, &directory.read_run().unwrap(), page).unwrap();
}

/// Every figure has a size, and so has what is drawn in it.
fn assert_figures_are_visible(browser: &mut Browser, selector: &str, fewest: f64) {
    let visible = format!(
        "[...document.querySelectorAll('{selector}')].filter((e) => {{ const r = \
         e.getBoundingClientRect(); return r.width > 250 && r.height > 40; }}).length"
    );
    let all = browser.number("document.querySelectorAll('figure').length");
    assert!(all >= fewest, "{all} figures");
    let visible = browser.number(&visible);
    assert!((visible - all).abs() < 0.5, "{visible} of {all} are visible as {selector}");
}

#[test]
fn figures_are_visible_and_the_page_is_silent_and_asks_for_nothing() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(1280, 900);
    browser.open(&page);
    // It says when its last figure was drawn, and it is.
    let drawn = browser.drawn();
    assert!(drawn.is_finite() && drawn >= 0.0, "drawn after {drawn} ms");
    let heard = browser.heard();
    assert!(heard.complaints.is_empty(), "{:?}", heard.complaints);
    let url = format!("file://{}", page.display());
    let asked: Vec<&String> =
        heard.requests.iter().filter(|asked| **asked != url && *asked != "data:,").collect();
    assert!(asked.is_empty(), "the page asked for {asked:?}");
    assert_figures_are_visible(&mut browser, "figure .live canvas, figure:not(.is-live) svg", 5.0);
    // The policy is in force: what a text could smuggle in would not get out.
    browser.value("fetch('https://example.org/').catch(() => 0); 0");
    program::until("the browser refuses to fetch it", || {
        let refused = browser.heard().complaints.join("\n");
        refused.contains("Content Security Policy").then_some(())
    });
}

#[test]
fn the_strip_is_grey_where_the_thread_ran() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(1280, 900);
    browser.open(&page);
    // Rows of the picture that are of the strip: the planted threads lost some 2 % of the time, so
    // that nearly all of each is the colour of time they had.
    let rows = browser.value(
        "(() => {
           const canvas = document.querySelector('figure[data-plot=\"timeline\"] canvas');
           const {width, height} = canvas;
           const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
           const shares = [];
           for (let y = 0; y < height; y++) {
             let ran = 0;
             for (let x = 0; x < width; x++) {
               const at = 4 * (y * width + x);
               ran += pixels[at] === 0xdf && pixels[at + 1] === 0xe3 && pixels[at + 2] === 0xe8;
             }
             if (ran > width / 4) shares.push(ran / width);
           }
           return shares;
         })()",
    );
    let rows: Vec<f64> = rows.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(rows.len() > 40, "{} rows of two strips", rows.len());
    let grey = rows.iter().sum::<f64>() / rows.len() as f64;
    assert!(grey > 0.8, "grey on {grey} of the strips' width");
}

#[test]
fn no_key_is_without_its_words_or_its_value_a_dash() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(400, 800);
    browser.open(&page);
    let text = browser.value("document.querySelector('main').innerText");
    let text = text.as_str().unwrap();
    assert!(!text.contains("--\n") && !text.contains("Value:"), "a legend without a value");
    let tallest = browser.number(
        "Math.max(...[...document.querySelectorAll('.keys li')].map((e) => \
         e.getBoundingClientRect().height))",
    );
    assert!(tallest > 0.0 && tallest < 60.0, "a key of {tallest} pixels");
    let over = browser.number(
        "(() => { const boxes = (what) => [...document.querySelectorAll('#causes figure svg ' + what)]
           .map((e) => e.getBoundingClientRect());
         const words = boxes('text');
         if (words.length < 4 || words.some((r) => r.height < 12)) return 1000;
         return words.filter((w) => boxes('rect').some((r) => w.left < r.right && r.left < w.right
           && w.top + 2 < r.bottom && r.top < w.bottom - 2)).length; })()",
    );
    assert!(over < 0.5, "{over} words of the bars are too small, or on one of them");
    let value = |browser: &mut Browser| {
        browser.value("document.querySelector('#ccdf-gaps .keys b').textContent")
    };
    assert_eq!(value(&mut browser).as_str(), Some(""));
    browser.value("document.querySelector('#ccdf-gaps').scrollIntoView(), 0");
    let edge = |side: &str| {
        format!("document.querySelector('#ccdf-gaps .u-over').getBoundingClientRect().{side}")
    };
    let x = browser.number(&edge("left")) + browser.number(&edge("width")) * 0.4;
    let y = browser.number(&edge("top")) + browser.number(&edge("height")) * 0.5;
    browser.ask(
        "Input.dispatchMouseEvent",
        &serde_json::json!({"type": "mouseMoved", "x": x, "y": y, "button": "none"}),
    );
    let said = value(&mut browser);
    assert!(said.as_str().unwrap().contains('%'), "{said}");
}

#[test]
fn figures_are_visible_without_javascript() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(1280, 900);
    browser.scripts(false);
    browser.open(&page);
    assert_figures_are_visible(&mut browser, "figure svg", 5.0);
    let tables = browser.number("document.querySelectorAll('main table').length");
    assert!(tables > 10.0, "{tables} tables");
    let gaps = browser.number("document.querySelectorAll('details[data-gap] svg').length");
    assert!((gaps - 5.0).abs() < 0.5, "{gaps} gaps with their parts");
}

#[test]
fn a_drag_zooms_and_reset_returns() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(1280, 900);
    browser.open(&page);
    for id in ["timeline", "ccdf-gaps", "wasted"] {
        let figure = format!("document.querySelector('figure[data-plot=\"{id}\"]')");
        browser.value(&format!("{figure}.scrollIntoView(), 0"));
        let home = range(&mut browser, &figure);
        let edge = |side: &str| {
            format!("{figure}.querySelector('.u-over').getBoundingClientRect().{side}")
        };
        let (left, width) = (browser.number(&edge("left")), browser.number(&edge("width")));
        let y = browser.number(&edge("top")) + browser.number(&edge("height")) / 2.0;
        browser.drag((left + width * 0.4, y), (left + width * 0.6, y));
        let zoomed = range(&mut browser, &figure);
        assert!(zoomed.0 > home.0 && zoomed.1 < home.1, "{id}: {home:?} became {zoomed:?}");
        browser.value(&format!("[...{figure}.querySelectorAll('button')].at(-1).click()"));
        let back = range(&mut browser, &figure);
        let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        assert!(same(back.0, home.0) && same(back.1, home.1), "{id}: {home:?}, then {back:?}");
    }
    assert!(browser.heard().complaints.is_empty());
}

#[test]
fn the_timeline_zooms_to_one_gap_and_names_its_parts() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    browser.resize(1280, 900);
    browser.open(&page);
    browser.value("document.querySelector('details[data-gap=\"0\"]').open = true");
    browser.value("document.querySelector('details[data-gap=\"0\"] button').click()");
    let figure = "document.querySelector('figure[data-plot=\"timeline\"]')";
    let (low, high) = range(&mut browser, figure);
    // The longest gap of the recorded run took 12 ms; the ticks of the planted one are nanoseconds.
    assert!(high - low > 1e6 && high - low < 1e8, "{low} to {high}");
    let edge =
        |side: &str| format!("{figure}.querySelector('.u-over').getBoundingClientRect().{side}");
    let x = browser.number(&edge("left")) + browser.number(&edge("width")) / 2.0;
    let y = browser.number(&edge("top")) + browser.number(&edge("height")) * 0.8;
    browser.drag((x - 60.0, y), (x, y));
    browser.ask(
        "Input.dispatchMouseEvent",
        &serde_json::json!({"type": "mouseMoved", "x": x, "y": y, "button": "none"}),
    );
    let said = browser.value(&format!("{figure}.querySelector('.readout').textContent"));
    assert!(said.as_str().unwrap().contains("in it "), "{said}");
}

fn range(browser: &mut Browser, figure: &str) -> (f64, f64) {
    let range = browser.value(&format!("{figure}.dataset.range"));
    let (low, high) = range.as_str().unwrap().split_once(' ').unwrap();
    (low.parse().unwrap(), high.parse().unwrap())
}

#[test]
fn the_page_fits_400_pixels_and_follows_the_colours_of_the_system() {
    let Some(Opened { mut browser, page, _home }) = page() else { return };
    let ground = "getComputedStyle(document.body).backgroundColor";
    browser.resize(400, 800);
    for scripts in [true, false] {
        browser.scripts(scripts);
        browser.scheme("light");
        browser.open(&page);
        let width = browser.number("document.documentElement.scrollWidth");
        assert!(width <= 400.0, "the page is {width} pixels wide");
        let smallest = browser.number(
            "Math.min(...[...document.querySelectorAll('p, td, th, li')].map((e) => \
             parseFloat(getComputedStyle(e).fontSize)))",
        );
        assert!(smallest >= 12.0, "text of {smallest} pixels");
        let light = browser.value(ground);
        browser.scheme("dark");
        let dark = browser.value(ground);
        assert_eq!(
            (light.as_str(), dark.as_str()),
            (Some("rgb(255, 255, 255)"), Some("rgb(20, 23, 27)"))
        );
    }
    assert!(browser.heard().complaints.is_empty());
}

#[test]
fn a_hostile_run_stays_quiet_in_a_browser() {
    let Some(Opened { mut browser, page, _home: home }) = page() else { return };
    let directory = home.path().join("run");
    let json = std::fs::read_to_string(directory.join("run.json")).unwrap();
    let hostile =
        "</script><script>alert(1)</script><img src=http://example.org/x onerror=alert(2)>";
    let json = json
        .replace("gaps of a busy thread", hostile)
        .replace("\"rustc\"", &format!("\"{hostile}\""));
    std::fs::write(directory.join("run.json"), json).unwrap();
    written(&directory, &page);
    browser.open(&page);
    let heard = browser.heard();
    assert!(heard.complaints.is_empty(), "{:?}", heard.complaints);
    assert!(heard.requests.iter().all(|asked| asked.starts_with("file://") || asked == "data:,"));
    assert!(browser.number("document.scripts.length") < 4.5);
    assert!(browser.number("document.images.length") < 0.5);
    assert!(browser.value("document.body.innerText").as_str().unwrap().contains("</script>"));
}

#[test]
fn the_page_of_a_set_shows_its_trace_and_is_silent() {
    let Some(chromium) = needs::program("chromium") else { return };
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("report.html");
    written(&program::file("runs/threads"), &page);
    let mut browser = Browser::start(&chromium);
    let url = format!("file://{}", page.display());
    for (width, scripts) in [(1280, true), (400, true), (400, false)] {
        browser.resize(width, 900);
        browser.scripts(scripts);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.open(&page);
            let wide = browser.number("document.documentElement.scrollWidth");
            assert!(wide <= f64::from(width), "{wide} pixels of {width}");
            let selector = if scripts {
                "figure .live canvas, figure:not(.is-live) svg"
            } else {
                "figure svg"
            };
            assert_figures_are_visible(&mut browser, selector, 5.0);
            // The grey boxes of the trace are there and are seen against the ground.
            let (boxes, ground) = (
                "getComputedStyle(document.querySelector('#trace svg path.rest')).fill",
                "getComputedStyle(document.body).backgroundColor",
            );
            let (boxes, ground) = (browser.value(boxes), browser.value(ground));
            assert!(boxes.as_str().is_some() && boxes != ground, "{boxes} on {ground}");
            let lanes = browser.number(
                "[...document.querySelectorAll('#trace svg path.rest')].filter((e) => \
                 e.getBoundingClientRect().width > 20).length",
            );
            assert!(lanes > 1.5, "{lanes} threads with boxes");
        }
    }
    let heard = browser.heard();
    assert!(heard.complaints.is_empty(), "{:?}", heard.complaints);
    assert!(heard.requests.iter().all(|asked| *asked == url || asked == "data:,"));
}

/// What reaches beyond the page, outside of boxes that scroll, and words beyond a picture that hides them.
const CUT_OFF: &str = "(() => {
  const wide = document.documentElement.clientWidth + 1;
  const of = (all) => [...document.querySelectorAll(all)];
  const box = (e) => e.getBoundingClientRect();
  const isBeyond = (e) => box(e).width > 0 && (box(e).right > wide || box(e).left < -1);
  const beyond = of('body *').filter((e) => !e.closest('.scroll, .uplot, svg, script') && isBeyond(e));
  const words = of('svg.figure text').filter((e) => {
    const [own, all] = [box(e), box(e.closest('svg'))];
    const hidden = getComputedStyle(e.closest('svg')).overflow !== 'visible';
    return own.width > 0 && (isBeyond(e) || hidden && (own.left < all.left - 1
      || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1));
  });
  return [...beyond, ...words].map((e) => e.tagName + ' ' + e.textContent.slice(0, 40));
})()";

#[test]
fn no_page_of_a_kept_run_scrolls_sideways_or_has_anything_cut_off() {
    let Some(chromium) = needs::program("chromium") else { return };
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("report.html");
    let mut browser = Browser::start(&chromium);
    for words in with_a_page() {
        let _ = std::fs::remove_file(&page);
        let made = program::as_used(&words).arg("--html").arg(&page).output().unwrap();
        assert!(page.exists(), "{words:?}: {}", program::said(&made));
        for scripts in [true, false] {
            browser.scripts(scripts);
            browser.resize(WIDTHS[0], 900);
            browser.open(&page);
            for width in WIDTHS {
                browser.resize(width, 900);
                let wide = browser.number("document.documentElement.scrollWidth");
                assert!(wide <= f64::from(width), "{words:?}: {wide} of {width}");
                let cut_off = browser.value(CUT_OFF);
                assert_eq!(cut_off, serde_json::json!([]), "{words:?}, {width} pixels");
            }
        }
    }
}

/// What makes the page of each kept run, of a kept paper, and of what two runs differ in.
fn with_a_page() -> Vec<Vec<OsString>> {
    let kept = |folder: &str| std::fs::read_dir(program::file(folder)).unwrap();
    let kept = kept("runs").chain(kept("papers")).map(|run| run.unwrap().path());
    let reports = kept.map(|run| -> Vec<OsString> { vec!["report".into(), run.into()] });
    let [before, after] =
        ["runs/before", "runs/after"].map(|run| OsString::from(program::file(run)));
    reports.chain([vec!["compare".into(), before, after]]).collect()
}

fn press(browser: &mut Browser, key: &str, code: u8, text: &str) {
    for kind in ["keyDown", "keyUp"] {
        let parameters = serde_json::json!({"type": kind, "key": key, "code": key, "text": text,
            "windowsVirtualKeyCode": code});
        browser.ask("Input.dispatchKeyEvent", &parameters);
    }
}

#[test]
fn the_keyboard_reaches_every_control_in_its_order_and_where_it_is_can_be_seen() {
    let Some(Opened { mut browser, page, _home }) = page_of("checkup") else { return };
    browser.resize(400, 900);
    browser.open(&page);
    browser.drawn();
    // What is wider than its box scrolls, and scrolls by the keyboard.
    browser.value(
        "window.controls = [...document.querySelectorAll('button, summary, a[href], .scroll')]
           .filter((e) => e.checkVisibility({ contentVisibilityAuto: true })
             && (!e.matches('.scroll') || e.scrollWidth > e.clientWidth)), 0",
    );
    let all = browser.number("controls.length");
    let wide = browser.number("controls.filter((e) => e.matches('.scroll')).length");
    assert!(all > 30.0 && wide > 3.0, "{all} controls, {wide} of them tables that scroll");
    let mut at = 0.0;
    while at < all {
        press(&mut browser, "Tab", 9, "");
        let focused = "controls.indexOf(document.activeElement)";
        let found = browser.number(focused);
        let named = browser.value("document.activeElement.outerHTML.slice(0, 80)");
        assert!((found - at).abs() < 0.5, "{found} in place of {at} of {all}: {named}");
        let edge = browser.number(
            "(() => { const s = getComputedStyle(document.activeElement);
               return s.outlineStyle === 'none' ? 0 : parseFloat(s.outlineWidth); })()",
        );
        assert!(edge > 1.5, "the focus on {named} cannot be seen");
        at += 1.0;
    }
    browser.value("document.querySelector('summary').focus(), 0");
    press(&mut browser, "Enter", 13, "\r");
    assert_eq!(browser.value("document.querySelector('details').open"), true);
}

#[test]
fn paper_gets_all_of_the_page_in_dark_ink() {
    // It has the widest tables.
    let Some(Opened { mut browser, page, _home }) = page_of("checkup") else { return };
    // The width of A4 between its margins, and a reader whose screen is dark.
    browser.resize(718, 1000);
    browser.open(&page);
    browser.drawn();
    let dark = serde_json::json!({"name": "prefers-color-scheme", "value": "dark"});
    let paper = serde_json::json!({"media": "print", "features": [dark]});
    browser.ask("Emulation.setEmulatedMedia", &paper);
    let ground = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(ground, "rgb(255, 255, 255)");
    assert_figures_are_visible(&mut browser, "figure svg.figure", 5.0);
    let mut number_of = |what: &str, shown: &str| {
        let all = format!("[...document.querySelectorAll('{what}')]");
        browser.number(&format!("{all}.filter((e) => {shown}).length"))
    };
    let (folded, open) = ("details svg.figure", "e.checkVisibility()");
    assert!(number_of(folded, open) > 4.5 && number_of(folded, "!e.checkVisibility()") < 0.5);
    assert!(number_of("button", open) < 0.5, "buttons on paper");
    let beyond = "e.getBoundingClientRect().right > document.documentElement.clientWidth + 1";
    assert!(number_of("table", beyond) < 0.5, "tables that the paper cuts off");
}
