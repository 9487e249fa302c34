//! A plain self-contained page: text, tables and figures one below the other. No script, no request.

use std::fmt::Write;

use crate::svg::{self, Figure, Table, escaped};

/// Forbids every request and every script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;\
padding:1rem;background:var(--ground);color:var(--ink)}h1{font-size:1.4rem}h2{font-size:1.15rem;\
margin-top:2.2rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
caption{text-align:left;color:var(--soft);padding:.3rem 0}td,th{padding:.2rem .7rem;\
border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}td.l{white-space:normal;\
min-width:9rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}p,li,code{overflow-wrap:anywhere}\
td:first-child,th:first-child,td.l,th.l{\
text-align:left}.wide{overflow-x:auto}.note{color:var(--soft)}";

/// A page being written.
pub(crate) struct Plain {
    html: String,
}

impl Plain {
    /// A page with this title in the browser, and this heading.
    pub(crate) fn new(title: &str, heading: &str) -> Self {
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{}</title>\n<style>{}{STYLE}</style></head><body>\n<h1>{}</h1>\n",
            escaped(title),
            svg::STYLE,
            escaped(heading)
        );
        Self { html }
    }

    pub(crate) fn section(&mut self, heading: &str) {
        self.put("<h2>", heading, "</h2>\n");
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.put("<p>", text, "</p>\n");
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.put("<p class=\"note\">", text, "</p>\n");
    }

    pub(crate) fn command(&mut self, text: &str) {
        self.put("<p><code>", text, "</code></p>\n");
    }

    /// A list, where there is something to list.
    pub(crate) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.html.push_str("<ul>\n");
        for item in items {
            self.put("<li>", &item, "</li>\n");
        }
        self.html.push_str("</ul>\n");
    }

    /// A link to a page beside this one.
    pub(crate) fn link(&mut self, to: &str, text: &str) {
        let _ = writeln!(
            self.html,
            "<p class=\"note\"><a href=\"{}\">{}</a></p>",
            escaped(to),
            escaped(text)
        );
    }

    /// A figure with the table of its numbers.
    pub(crate) fn figure(&mut self, figure: &Figure) {
        self.html.push_str(&figure.svg);
        self.html.push('\n');
        self.table(&figure.table);
    }

    /// A table, where it has rows.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.put("<div class=\"wide\"><table><caption>", &table.caption, "</caption>\n");
        self.row("th", &table.head, table);
        for cells in &table.rows {
            self.row("td", cells, table);
        }
        self.html.push_str("</table></div>\n");
    }

    pub(crate) fn finish(mut self) -> String {
        self.html.push_str("</body></html>\n");
        self.html
    }

    fn row(&mut self, tag: &str, cells: &[String], table: &Table) {
        self.html.push_str("<tr>");
        for (index, cell) in cells.iter().enumerate() {
            let class = if table.left.contains(&index) { " class=\"l\"" } else { "" };
            let _ = write!(self.html, "<{tag}{class}>{}</{tag}>", escaped(cell));
        }
        self.html.push_str("</tr>\n");
    }

    fn put(&mut self, before: &str, text: &str, after: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.html, "{before}{}{after}", escaped(text));
    }
}
