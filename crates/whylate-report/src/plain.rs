//! A plain self-contained page: text, tables and figures one below the other. No script, no request.

use crate::doc;
use crate::render::page::Html;
use crate::svg::{self, Figure, Table, escaped};

/// Forbids every request and every script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;\
padding:1rem;background:var(--ground);color:var(--ink)}h1{font-size:1.4rem}h2{font-size:1.15rem;\
margin-top:2.2rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
caption{text-align:left;color:var(--soft);padding:.3rem 0}td,th{padding:.2rem .7rem;\
border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}td.left{white-space:normal;\
min-width:9rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}p,li,code{overflow-wrap:anywhere}\
tbody th{font-weight:400}td:first-child,th:first-child,td.left,th.left{\
text-align:left}.scroll{overflow-x:auto}.note{color:var(--soft)}";

/// Rows of a table; a file may hold any number.
const MOST_ROWS: usize = 256;

/// A page being written.
pub(crate) struct Plain {
    html: Html,
}

impl Plain {
    /// A page with this title in the browser, and this heading.
    pub(crate) fn new(title: &str, heading: &str) -> Self {
        let mut html = Html::default();
        html.raw(format_args!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{}</title>\n<style>{}{STYLE}</style></head><body>\n<h1>{}</h1>\n",
            escaped(title),
            svg::STYLE,
            escaped(heading)
        ));
        Self { html }
    }

    pub(crate) fn section(&mut self, heading: &str) {
        self.html.element("h2", "", heading);
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.html.element("p", "", text);
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.html.element("p", "note", text);
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.html.raw("<p>");
        self.html.element("code", "", text);
        self.html.raw("</p>\n");
    }

    /// A list, where there is something to list.
    pub(crate) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        self.html.items(&items.into_iter().collect::<Vec<_>>());
    }

    /// A link to a page beside this one.
    pub(crate) fn link(&mut self, to: &str, text: &str) {
        let (to, text) = (escaped(to), escaped(text));
        self.html.raw(format_args!("<p class=\"note\"><a href=\"{to}\">{text}</a></p>\n"));
    }

    /// A figure with the table of its numbers.
    pub(crate) fn figure(&mut self, figure: &Figure) {
        self.html.raw(&figure.svg);
        self.html.raw("\n");
        self.table(&figure.table);
    }

    /// A table, where it has rows.
    pub(crate) fn table(&mut self, table: &Table) {
        self.html.table(&doc::Table::from(table.clone()).most(MOST_ROWS));
    }

    pub(crate) fn finish(mut self) -> String {
        self.html.raw("</body></html>\n");
        self.html.finish()
    }
}
