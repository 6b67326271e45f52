//! A figure or table of results, as text, CSV and JSON.

use serde_json::{Value, json};

use super::table;

/// The contents of one cell.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    /// A count.
    Count(u64),
    /// A measure and the number of its significant decimals.
    Measure(f64, usize),
    /// Nothing was measured.
    None,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A measure if there is one.
    pub(crate) fn measure(value: Option<f64>, decimals: usize) -> Self {
        value.map_or(Self::None, |value| Self::Measure(value, decimals))
    }

    pub(crate) fn written(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Measure(value, decimals) => format!("{value:.decimals$}"),
            Self::None => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(count) => json!(count),
            Self::Measure(value, _) => json!(value),
            Self::None => Value::Null,
        }
    }
}

/// Suffix of the names of lines for the kernel alone, which are drawn in the colour of the line
/// with the same name without it.
pub(crate) const BARE: &str = ", bare";

/// One line of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether it is a reference for others, drawn with dashes.
    pub(crate) is_reference: bool,
    /// The number of incomplete frames, and of all: the points are only of complete ones.
    pub(crate) lost: (usize, usize),
}

/// The scale of a plot's horizontal axis.
#[derive(Clone, Debug)]
pub(crate) enum Across {
    /// Evenly, by numbers.
    Linear,
    /// By factors of two.
    Octaves,
    /// By factors of ten.
    Decades,
    /// Evenly, by names: the position of a point is the index of its name, from 0.
    Names(Vec<String>),
}

/// The contents of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The name of its file, as a figure may have several plots.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) across: Across,
    /// Whether the vertical axis is divided by factors of ten.
    pub(crate) decades: bool,
    pub(crate) series: Vec<Series>,
}

/// One figure of the thesis, or a table.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// The name of its files, and of its part of the JSON object.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) plots: Vec<Plot>,
}

impl Figure {
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::written).collect()).collect();
        table::print(&self.heads, &rows);
    }

    /// Comma-separated values (RFC 4180), the heads first.
    pub(crate) fn csv(&self) -> String {
        let mut text = String::new();
        let heads = self.heads.iter().map(|head| quoted(head)).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| quoted(&cell.written())));
        for line in [heads].into_iter().chain(rows.map(Iterator::collect::<Vec<String>>)) {
            text += &line.join(",");
            text += "\r\n";
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| -> Value {
            let named = self.heads.iter().zip(row);
            named.map(|(head, cell)| ((*head).to_owned(), cell.json())).collect()
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({ "name": self.name, "title": self.title, "rows": rows })
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_comma_or_a_quote_is_quoted() {
        let figure = Figure {
            name: "x",
            title: String::new(),
            heads: vec!["a", "b, c"],
            rows: vec![vec![Cell::text("1\""), Cell::Measure(1.26, 1)], vec![Cell::None]],
            plots: Vec::new(),
        };
        assert_eq!(figure.csv(), "a,\"b, c\"\r\n\"1\"\"\",1.3\r\n\r\n");
        assert_eq!(figure.json()["rows"][0]["b, c"], 1.26);
    }
}
