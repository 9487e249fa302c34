//! A plain self-contained page: text, tables and figures one below the other. No script, no request.

use super::page::Html;
use crate::doc::Document;
use crate::svg::{self, escaped};

/// Forbids every request and every script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;\
padding:1rem;background:var(--ground);color:var(--ink)}h1{font-size:1.4rem}h2{font-size:1.15rem;\
margin-top:2.2rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
caption{text-align:left;color:var(--soft);padding:.3rem 0}td,th{padding:.2rem .7rem;\
border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}td.left{white-space:normal;\
min-width:9rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}p,li,code{overflow-wrap:anywhere}\
tbody th{font-weight:400}td:first-child,th:first-child,td.left,th.left{\
text-align:left}.scroll{overflow-x:auto}figure{margin:0}.note,.how{color:var(--soft)}";

/// A document with this title in the browser.
pub(crate) fn page(title: &str, of: &Document) -> String {
    let mut html = Html::naming(of.names.clone());
    html.raw(format_args!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{}</title>\n<style>{}{STYLE}</style></head><body>\n",
        escaped(title),
        svg::STYLE
    ));
    html.words("h1", "", &of.title);
    of.sections.iter().for_each(|section| html.section(section));
    html.raw("</body></html>\n");
    html.finish()
}
