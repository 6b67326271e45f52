//! A figure of results: a table, printed as text, CSV and JSON, and its plots.

use serde_json::{Value, json};

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

/// A table that is built column by column, with a row for each item.
#[derive(Clone, Debug)]
pub(crate) struct Table<'i, T> {
    items: &'i [T],
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl<'i, T> Table<'i, T> {
    /// A table without columns.
    pub(crate) fn of(items: &'i [T]) -> Self {
        Self { items, heads: Vec::new(), rows: vec![Vec::new(); items.len()] }
    }

    fn column(mut self, head: &'static str, cell: impl Fn(&'i T) -> Cell) -> Self {
        self.heads.push(head);
        for (item, row) in self.items.iter().zip(&mut self.rows) {
            row.push(cell(item));
        }
        self
    }

    /// A column of texts.
    pub(crate) fn text<S: Into<String>>(
        self,
        head: &'static str,
        text: impl Fn(&'i T) -> S,
    ) -> Self {
        self.column(head, |item| Cell::Text(text(item).into()))
    }

    /// A column of counts, empty where there is none.
    pub(crate) fn count<C: Into<Option<u64>>>(
        self,
        head: &'static str,
        count: impl Fn(&'i T) -> C,
    ) -> Self {
        self.column(head, |item| count(item).into().map_or(Cell::None, Cell::Count))
    }

    /// A column of measures with this number of decimals, empty where nothing was measured.
    pub(crate) fn measure<M: Into<Option<f64>>>(
        self,
        head: &'static str,
        decimals: usize,
        value: impl Fn(&'i T) -> M,
    ) -> Self {
        let cell = |value| Cell::Measure(value, decimals);
        self.column(head, |item| value(item).into().map_or(Cell::None, cell))
    }

    /// The columns that `add` adds, which several tables share.
    pub(crate) fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// The figure of this table.
    pub(crate) fn figure(self, name: &'static str, title: impl Into<String>) -> Figure {
        let (title, heads, rows) = (title.into(), self.heads, self.rows);
        Figure { name, title, heads, rows, plots: Vec::new(), has_failed: false }
    }
}

/// Suffix of the names of lines for the kernel alone, which are drawn with dashes, in the colour of
/// the line with the same name without it.
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

impl Series {
    /// A line of these points; a reference if its name ends in [`BARE`].
    pub(crate) fn new(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let name = name.into();
        let (points, is_reference) = (points.into_iter().collect(), name.ends_with(BARE));
        Self { name, points, is_reference, lost: (0, 0) }
    }

    /// The same as a reference, or not.
    pub(crate) fn reference(self, is_reference: bool) -> Self {
        Self { is_reference, ..self }
    }
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

impl Across {
    /// Evenly, by what is written of these.
    pub(crate) fn names<N: ToString>(names: impl IntoIterator<Item = N>) -> Self {
        Self::Names(names.into_iter().map(|name| name.to_string()).collect())
    }
}

/// The contents of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The name of its file, as a figure may have several plots.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The horizontal and the vertical axis.
    pub(crate) axes: [&'static str; 2],
    pub(crate) across: Across,
    /// Whether the vertical axis is divided by factors of ten.
    pub(crate) decades: bool,
    pub(crate) series: Vec<Series>,
}

impl Plot {
    /// A plot whose vertical axis is divided evenly.
    pub(crate) fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        axes: [&'static str; 2],
        across: Across,
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().collect();
        Self { name: name.into(), title: title.into(), axes, across, decades: false, series }
    }

    /// The same with a vertical axis that is divided by factors of ten.
    pub(crate) fn with_decades(self) -> Self {
        Self { decades: true, ..self }
    }
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
    /// Whether something failed in the measurement: packets were lost that must not be.
    pub(crate) has_failed: bool,
}

impl Figure {
    /// The same with these plots.
    pub(crate) fn plots(self, plots: impl IntoIterator<Item = Plot>) -> Self {
        Self { plots: plots.into_iter().collect(), ..self }
    }

    /// Prints it: the first column left-aligned, the others right-aligned.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        let heads: Vec<String> = self.heads.iter().map(|&head| head.to_owned()).collect();
        let written = |row: &Vec<Cell>| row.iter().map(Cell::written).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(written).collect();
        let lines = || [&heads].into_iter().chain(&rows);
        let width = |column| lines().filter_map(|line| line.get(column)).map(String::len).max();
        let widths: Vec<usize> = (0..heads.len()).filter_map(width).collect();
        for line in lines() {
            for (n, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if n == 0 { print!("{cell:width$}") } else { print!("  {cell:>width$}") }
            }
            println!();
        }
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
        let table = Table::of(&[("1\"", Some(1.26)), ("2", None)]);
        let table = table.text("a", |item| item.0).measure("b, c", 1, |item| item.1);
        let figure = table.figure("x", "");
        assert_eq!(figure.csv(), "a,\"b, c\"\r\n\"1\"\"\",1.3\r\n2,\r\n");
        assert_eq!(figure.json()["rows"][0]["b, c"], 1.26);
        assert!(figure.json()["rows"][1]["b, c"].is_null());
    }
}
