//! A figure of results: a table, printed as text, CSV and JSON, and its plots.

use serde_json::{Value, json};

use super::statistics::Span;

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
    /// Whether the settings of a row are the defaults, and the column that names them.
    are_defaults: Vec<bool>,
    marked: usize,
}

impl<'i, T> Table<'i, T> {
    /// Creates a table without columns.
    pub(crate) fn of(items: &'i [T]) -> Self {
        let (rows, are_defaults) = (vec![Vec::new(); items.len()], vec![false; items.len()]);
        Self { items, heads: Vec::new(), rows, are_defaults, marked: 0 }
    }

    fn column(mut self, head: &'static str, cell: impl Fn(&'i T) -> Cell) -> Self {
        self.heads.push(head);
        for (item, row) in self.items.iter().zip(&mut self.rows) {
            row.push(cell(item));
        }
        self
    }

    /// Returns a column of texts.
    pub(crate) fn text<S: Into<String>>(
        self,
        head: &'static str,
        text: impl Fn(&'i T) -> S,
    ) -> Self {
        self.column(head, |item| Cell::Text(text(item).into()))
    }

    /// Returns a column of counts, empty where there is none.
    pub(crate) fn count<C: Into<Option<u64>>>(
        self,
        head: &'static str,
        count: impl Fn(&'i T) -> C,
    ) -> Self {
        self.column(head, |item| count(item).into().map_or(Cell::None, Cell::Count))
    }

    /// Returns a column of measures with this number of decimals, empty where nothing was measured.
    pub(crate) fn measure<M: Into<Option<f64>>>(
        self,
        head: &'static str,
        decimals: usize,
        value: impl Fn(&'i T) -> M,
    ) -> Self {
        let cell = |value| Cell::Measure(value, decimals);
        self.column(head, |item| value(item).into().map_or(Cell::None, cell))
    }

    /// Returns the columns that `add` adds, which several tables share.
    pub(crate) fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// Puts the rows that have the library's defaults first, and marks them in the column that was
    /// added last.
    pub(crate) fn defaults(self, is_default: impl Fn(&'i T) -> bool) -> Self {
        let marked = self.heads.len().saturating_sub(1);
        Self { are_defaults: self.items.iter().map(is_default).collect(), marked, ..self }
    }

    /// Returns the figure of this table; `settings` are those of this run.
    pub(crate) fn figure(self, caption: &'static Caption, settings: impl Into<String>) -> Figure {
        let rows = self.rows.into_iter().zip(self.are_defaults);
        let (mut first, others): (Vec<_>, Vec<_>) = rows.partition(|(_, is_default)| *is_default);
        let defaults = first.len();
        first.extend(others);
        Figure {
            caption,
            settings: settings.into(),
            heads: self.heads,
            rows: first.into_iter().map(|(row, _)| row).collect(),
            defaults,
            marked: self.marked,
            plots: Vec::new(),
            has_failed: false,
        }
    }
}

/// Suffix of the names of lines for the kernel alone, which are drawn with dashes, in the colour of
/// the line with the same name without it.
pub(crate) const BARE: &str = ", bare";

/// One line of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Places on the horizontal axis, and the values measured there.
    pub(crate) points: Vec<(f64, Span)>,
    /// Whether it is a reference for others, drawn with dashes.
    pub(crate) is_reference: bool,
    /// The number of incomplete frames, and of all: the points are only of complete ones.
    pub(crate) lost: (usize, usize),
}

impl Series {
    /// Creates a line of these points; a reference if its name ends in [`BARE`].
    pub(crate) fn new<S: Into<Span>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, S)>,
    ) -> Self {
        let name = name.into();
        let points = points.into_iter().map(|(x, span)| (x, span.into())).collect();
        Self { is_reference: name.ends_with(BARE), name, points, lost: (0, 0) }
    }

    /// Sets whether the line is a reference.
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
    /// Divides the axis evenly, with the names as labels.
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
    /// The values at which the bars of the points end, in words.
    pub(crate) bars: &'static str,
}

impl Plot {
    /// Creates a plot whose vertical axis is divided evenly.
    pub(crate) fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        axes: [&'static str; 2],
        across: Across,
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().collect();
        let (name, title) = (name.into(), title.into());
        let bars = "least and most of the runs";
        Self { name, title, axes, across, decades: false, series, bars }
    }

    /// Returns the plot with a vertical axis that is divided by factors of ten.
    pub(crate) fn with_decades(self) -> Self {
        Self { decades: true, ..self }
    }

    /// Returns the plot with bars that end at other values, which `bars` describes.
    pub(crate) fn with_bars(self, bars: &'static str) -> Self {
        Self { bars, ..self }
    }
}

/// The words of a figure, which are the same in every run.
#[derive(Debug)]
pub(crate) struct Caption {
    /// The name of its files, and of its part of the JSON object.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// A sentence that says what the figure's numbers mean.
    pub(crate) meaning: &'static str,
    /// A sentence that says how the numbers were measured.
    pub(crate) method: &'static str,
    /// The publication that has the same figure.
    pub(crate) source: Option<&'static str>,
}

/// A table and its plots.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) caption: &'static Caption,
    /// The settings of this run: sizes, numbers of runs, the device.
    pub(crate) settings: String,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The number of rows, from the first, whose settings are the library's defaults.
    pub(crate) defaults: usize,
    /// The column that names them.
    pub(crate) marked: usize,
    pub(crate) plots: Vec<Plot>,
    /// Whether something failed in the measurement: packets were lost that must not be.
    pub(crate) has_failed: bool,
}

impl Figure {
    /// Returns the figure with these plots.
    pub(crate) fn plots(self, plots: impl IntoIterator<Item = Plot>) -> Self {
        Self { plots: plots.into_iter().collect(), ..self }
    }

    /// Prints it: the first column left-aligned, the others right-aligned.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title());
        let heads: Vec<String> = self.heads.iter().map(|&head| head.to_owned()).collect();
        let rows = self.marked();
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

    /// Returns the title with the settings of the run.
    pub(crate) fn title(&self) -> String {
        let colon = if self.settings.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", self.caption.title, self.settings)
    }

    /// Returns the cells as written, with the marks of default settings.
    pub(crate) fn marked(&self) -> Vec<Vec<String>> {
        let written = |row: &Vec<Cell>| row.iter().map(Cell::written).collect();
        let mut rows: Vec<Vec<String>> = self.rows.iter().map(written).collect();
        for row in rows.iter_mut().take(self.defaults) {
            row[self.marked].push_str(" (default)");
        }
        rows
    }

    /// Returns comma-separated values (RFC 4180), the heads first.
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
        let Caption { name, title, meaning, method, source } = self.caption;
        json!({
            "name": name, "title": title, "settings": self.settings, "meaning": meaning,
            "method": method, "source": source, "defaults": self.defaults, "rows": rows,
        })
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

    static CAPTION: Caption =
        Caption { name: "x", title: "A title", meaning: "It is.", method: "So.", source: None };

    #[test]
    fn rows_with_default_settings_come_first_and_are_marked() {
        let table =
            Table::of(&["a", "b", "c", "d"]).count("count", |_| 1).text("what", |item| *item);
        let table = table.defaults(|item| ["b", "d"].contains(item)).measure("ms", 1, |_| 0.5);
        let figure = table.figure(&CAPTION, "2 runs");
        let rows: Vec<String> = figure.marked().iter().map(|row| row.join(" ")).collect();
        assert_eq!(rows, ["1 b (default) 0.5", "1 d (default) 0.5", "1 a 0.5", "1 c 0.5"]);
        assert_eq!(figure.json()["defaults"], 2);
        assert_eq!(figure.json()["rows"][0]["what"], "b");
        assert_eq!(figure.title(), "A title: 2 runs");
    }

    #[test]
    fn what_holds_a_comma_or_a_quote_is_quoted() {
        let table = Table::of(&[("1\"", Some(1.26)), ("2", None)]);
        let table = table.text("a", |item| item.0).measure("b, c", 1, |item| item.1);
        let figure = table.figure(&CAPTION, "");
        assert_eq!(figure.csv(), "a,\"b, c\"\r\n\"1\"\"\",1.3\r\n2,\r\n");
        assert_eq!(figure.json()["rows"][0]["b, c"], 1.26);
        assert!(figure.json()["rows"][1]["b, c"].is_null());
    }
}
