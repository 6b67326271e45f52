//! One HTML page with all tables and plots, which needs no other file.

use std::fmt::Write as _;
use std::time::Duration;

use super::figure::{Caption, Cell, Figure};
use super::machine::Machine;
use super::plot::svg;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem;border-top:1px solid #ddd;padding-top:1rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}\
.wide{overflow-x:auto}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #eee}\
th{font-weight:600;border-bottom:2px solid #bbb}td.text,th:first-child{text-align:left}\
svg{max-width:100%;height:auto;margin:.6rem 0}p.note{color:#555}\
nav li{margin:.15rem 0}tr.default{font-weight:600}p{max-width:80ch;margin:.4rem 0}";

/// Returns the report of a run of all measurements.
pub(crate) fn page(
    machine: &Machine,
    quick: bool,
    time: Duration,
    figures: &[Figure],
) -> anyhow::Result<String> {
    let mut text =
        String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    text += "<meta name=\"viewport\" content=\"width=device-width\">\n";
    let _ = writeln!(text, "<title>Rushes, measured</title><style>{STYLE}</style></head><body>");
    text += "<h1>Rushes, measured</h1>\n<p>All figures are of one run on one machine: rows take \
             turns, and medians are shown. Compare within this page, not across machines. \
             Rows in which everything that their table varies is the library's default come first, \
             in bold; the names of the others state their settings. Bars in plots end where the \
             legend says.";
    if quick {
        text += " This was a quick run: it shows the order of the results, not their exact values.";
    }
    let minutes = time.as_secs_f64() / 60.0;
    let _ = writeln!(text, " It took {minutes:.1} minutes.</p>\n<table>");
    for (name, value) in &machine.facts {
        let (name, value) = (escaped(name), escaped(value));
        let _ = writeln!(text, "<tr><th>{name}</th><td class=\"text\">{value}</td></tr>");
    }
    text += "</table>\n<nav><h2>Contents</h2>\n<ol>\n";
    for Caption { name, title, .. } in figures.iter().map(|figure| figure.caption) {
        let _ = writeln!(text, "<li><a href=\"#{name}\">{}</a></li>", escaped(title));
    }
    text += "</ol></nav>\n";
    for figure in figures {
        section(&mut text, figure)?;
    }
    text += "</body></html>\n";
    Ok(text)
}

fn section(text: &mut String, figure: &Figure) -> anyhow::Result<()> {
    let Caption { name, title, meaning, method, source } = figure.caption;
    let _ =
        writeln!(text, "<h2 id=\"{name}\">{}</h2>\n<p>{}</p>", escaped(title), escaped(meaning));
    for (what, words) in
        [("Method", Some(*method)), ("Settings", Some(&*figure.settings)), ("Source", *source)]
    {
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            let _ = writeln!(text, "<p class=\"note\"><b>{what}:</b> {}</p>", escaped(words));
        }
    }
    for plot in &figure.plots {
        text.extend(svg(plot)?);
    }
    text.push_str("<div class=\"wide\"><table>\n<tr>");
    for head in &figure.heads {
        let _ = write!(text, "<th>{}</th>", escaped(head));
    }
    text.push_str("</tr>\n");
    for (n, (row, marked)) in figure.rows.iter().zip(figure.marked()).enumerate() {
        text.push_str(if n < figure.defaults { "<tr class=\"default\">" } else { "<tr>" });
        for (cell, written) in row.iter().zip(marked) {
            let class = if matches!(cell, Cell::Text(_)) { " class=\"text\"" } else { "" };
            let _ = write!(text, "<td{class}>{}</td>", escaped(&written));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::figure::{Across, Plot, Series, Table};
    use super::*;

    static CAPTION: Caption = Caption {
        name: "one",
        title: "Less < more",
        meaning: "It means something.",
        method: "It was measured.",
        source: Some("A paper."),
    };

    #[test]
    fn the_page_has_every_table_and_plot_and_nothing_from_elsewhere() {
        let series = Series::new("ours", [(1.0, 2.0), (2.0, 3.0)]);
        let plot = Plot::new("one", "A plot", ["across", "up"], Across::Linear, [series]);
        let table = Table::of(&[1.25]).text("what", |_| "a&b").defaults(|_| true);
        let figure =
            table.measure("ms", 1, |item| *item).figure(&CAPTION, "two runs").plots([plot]);
        let machine = Machine { facts: vec![("system", "linux".to_owned())] };
        let text = page(&machine, true, Duration::from_secs(90), &[figure]).unwrap();
        for part in ["a&amp;b (default)", "<svg", "A plot", "1.5 minutes", "linux", "quick"] {
            assert!(text.contains(part), "{part}");
        }
        for words in [CAPTION.meaning, CAPTION.method, "two runs", "A paper."] {
            assert!(text.contains(words), "{words}");
        }
        assert!(text.contains("<a href=\"#one\">Less &lt; more</a>"), "the contents in words");
        assert!(text.contains("<h2 id=\"one\">Less &lt; more</h2>"));
        assert!(!text.contains("src=") && !text.contains("<link"), "{text}");
    }
}
