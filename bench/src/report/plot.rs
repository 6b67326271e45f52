//! Plots as SVG.

use anyhow::anyhow;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::compact::compact;
use super::figure::{Across, BARE, Plot, Series};

const SIZE: (u32, u32) = (1060, 620);

/// Distinguishable with any colour vision (after M. Okabe and K. Ito), dark enough for lines.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
];

/// Room to the right of the plot for the names of its lines.
const LEGEND_WIDTH: u32 = 290;

/// The room beside the first and the last point on an axis that is divided by factors, as a factor.
const MARGIN: f64 = 1.15;

/// The lowest value on an axis that is divided by factors of ten.
const FLOOR: f64 = 1e-3;

/// The place of the first name, and the distance from one to the next.
const TOP: i32 = 62;
const STEP: usize = 22;

/// Returns the least and the greatest of `values`; not in order if there are none.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Draws a plot; `None` if there is nothing to draw.
pub(crate) fn svg(plot: &Plot) -> anyhow::Result<Option<String>> {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let (left, right) = bounds(points().map(|(x, _)| *x));
    let (low, high) = bounds(points().flat_map(|(_, span)| [span.low, span.high]));
    if !(left <= right && low <= high) {
        return Ok(None);
    }
    // Without any loss, all values are 0.
    let top = if high > 0.0 { high * 1.08 } else { 1.0 };
    let bottom = if plot.decades { beginning(low.max(FLOOR), 10.0, 1.4) } else { 0.0 };
    let up = bottom..if plot.decades { high * 1.4 } else { top };
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let frame = Frame { plot, root: &root };
        let by = |base| (beginning(left, base, MARGIN)..right * MARGIN).log_scale().base(base);
        let evenly = || left - 0.3..right + 0.3;
        match (&plot.across, plot.decades) {
            (Across::Octaves, true) => frame.draw(by(2.0), up.log_scale()),
            (Across::Octaves, false) => frame.draw(by(2.0), up),
            (Across::Decades, true) => frame.draw(by(10.0), up.log_scale()),
            (Across::Decades, false) => frame.draw(by(10.0), up),
            (_, true) => frame.draw(evenly(), up.log_scale()),
            (_, false) => frame.draw(evenly(), up),
        }
        .map_err(|error| anyhow!("cannot draw {}: {error}", plot.name))?;
    }
    Ok(Some(compact(&text)))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

struct Frame<'a, 'b> {
    plot: &'a Plot,
    root: &'a Area<'b>,
}

impl Frame<'_, '_> {
    fn draw<X, Y>(&self, across: X, up: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let plot = self.plot;
        self.root.fill(&WHITE)?;
        let (area, legend) = self.root.split_horizontally(SIZE.0 - LEGEND_WIDTH);
        let mut chart = ChartBuilder::on(&area)
            .caption(&plot.title, ("sans-serif", 19))
            .margin(12)
            .x_label_area_size(52)
            .y_label_area_size(68)
            .build_cartesian_2d(across, up)?;
        // On axes that are divided by factors, all lines are requested, and few are labelled.
        let [even, factors] = [10, 40];
        let labels = match &plot.across {
            Across::Names(names) => names.len() + 1,
            Across::Linear | Across::Octaves => even,
            Across::Decades => factors,
        };
        chart
            .configure_mesh()
            .x_labels(labels)
            .y_labels(if plot.decades { factors } else { even })
            .x_label_formatter(&|x| self.place(*x))
            .y_label_formatter(&|y| if plot.decades { round(*y) } else { short(*y) })
            .x_desc(plot.axes[0])
            .y_desc(plot.axes[1])
            .axis_desc_style(("sans-serif", 16))
            .label_style(("sans-serif", 14))
            .light_line_style(TRANSPARENT)
            .draw()?;
        self.lines(&mut chart)?;
        self.legend(&legend)
    }

    /// Returns the label of a place on the horizontal axis.
    fn place(&self, x: f64) -> String {
        let is_octave = (x.log2() - x.log2().round()).abs() < 1e-6;
        match &self.plot.across {
            Across::Names(names) => {
                let at = |(n, _): &(usize, &String)| (x - *n as f64).abs() < 0.01;
                names.iter().enumerate().find(at).map(|(_, name)| name.clone()).unwrap_or_default()
            }
            Across::Octaves if !is_octave => String::new(),
            Across::Linear | Across::Octaves => short(x),
            Across::Decades => round(x),
        }
    }

    /// Returns the lines with their points and bars.
    fn lines<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let bottom = if self.plot.decades { FLOOR } else { f64::NEG_INFINITY };
        for (n, series) in self.plot.series.iter().enumerate() {
            let style = self.style(n, series);
            let points = series.points.iter().map(|(x, span)| (*x, span.median));
            if series.is_reference {
                chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), style))?;
            }
            chart.draw_series(points.map(|point| Circle::new(point, 3, style.filled())))?;
            let thin = style.stroke_width(1);
            // Those of a reference have the colour of the line that it belongs to.
            let half = if series.is_reference { 7 } else { 4 };
            for (x, span) in series.points.iter().filter(|(_, span)| span.low < span.high) {
                let ends = [span.low.max(bottom), span.high].map(|y| (*x, y));
                chart.draw_series([PathElement::new(ends, thin)])?;
                let cap =
                    |end| EmptyElement::at(end) + PathElement::new([(-half, 0), (half, 0)], thin);
                chart.draw_series(ends.map(cap))?;
            }
        }
        Ok(())
    }

    fn legend(&self, area: &Area<'_>) -> Drawn {
        let mut lines = (TOP..).step_by(STEP);
        for ((n, series), y) in self.plot.series.iter().enumerate().zip(&mut lines) {
            let style = self.style(n, series);
            if series.is_reference {
                area.draw(&PathElement::new([(4, y), (11, y)], style))?;
                area.draw(&PathElement::new([(21, y), (28, y)], style))?;
            } else {
                area.draw(&PathElement::new([(4, y), (28, y)], style))?;
            }
            area.draw(&Circle::new((16, y), 3, style.filled()))?;
            let text = match series.lost {
                (0, _) => series.name.clone(),
                (lost, of) => format!("{} ({lost} of {of} not whole)", series.name),
            };
            area.draw(&Text::new(text, (36, y - 7), ("sans-serif", 14)))?;
        }
        let mut spans = self.plot.series.iter().flat_map(|series| &series.points);
        if let Some(y) = lines.next().filter(|_| spans.any(|(_, span)| span.low < span.high)) {
            let style = BLACK.stroke_width(1);
            area.draw(&PathElement::new([(16, y - 7), (16, y + 7)], style))?;
            for y in [y - 7, y + 7] {
                area.draw(&PathElement::new([(12, y), (20, y)], style))?;
            }
            let text = format!("bars: {}", self.plot.bars);
            area.draw(&Text::new(text, (36, y - 7), ("sans-serif", 14)))?;
        }
        Ok(())
    }

    /// Returns the style of a line; bare sockets have the colour of the line they are compared
    /// with.
    fn style(&self, n: usize, series: &Series) -> ShapeStyle {
        let ours = series.name.strip_suffix(BARE);
        let reference = self.plot.series.iter().position(|other| Some(other.name.as_str()) == ours);
        let colour = COLOURS[reference.unwrap_or(n) % COLOURS.len()];
        ShapeStyle { color: colour.into(), filled: false, stroke_width: 2 }
    }
}

/// Returns the beginning of an axis that is divided by factors of `base`: it has a power of that,
/// so that there is a label, below `low`, and room of a factor `margin`.
fn beginning(low: f64, base: f64, margin: f64) -> f64 {
    let power = base.powf((low.log(base) + 1e-9).floor());
    // The power itself is on the axis despite rounding.
    (low / margin).min(power * 0.999)
}

/// Returns the label of a number if it is 1, 2 or 5 times a power of ten; other labels would
/// overlap.
fn round(value: f64) -> String {
    let digit = value / 10_f64.powf(value.log10().floor());
    let is_round = [1.0, 2.0, 5.0, 10.0].iter().any(|round| (digit - round).abs() < 1e-6);
    if is_round { short(value) } else { String::new() }
}

/// Returns a number in few characters.
fn short(value: f64) -> String {
    match value {
        v if v >= 16_384.0 && (v / 1024.0).fract() == 0.0 => format!("{} Ki", v / 1024.0),
        v if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::statistics::Span;
    use super::*;

    fn plot(points: Vec<(f64, f64)>, across: Across, decades: bool) -> Plot {
        let series = Series { lost: (1, 2), ..Series::new("one", points) };
        let plot = Plot::new("x", "a title", ["units", "latency, ms"], across, [series]);
        Plot { decades, ..plot }
    }

    #[test]
    fn every_kind_of_axis_is_drawn_with_its_labels() {
        let names = Across::Names(["144p", "4320p"].map(str::to_owned).to_vec());
        for across in [Across::Linear, Across::Octaves, Across::Decades, names] {
            for decades in [false, true] {
                let plot = plot(vec![(0.0, 1.0), (1.0, 30.0)], across.clone(), decades);
                let svg = svg(&plot).unwrap().unwrap();
                for text in ["a title", "units", "latency, ms", "one (1 of 2 not whole)"] {
                    assert!(svg.contains(text), "{text}");
                }
            }
        }
    }

    #[test]
    fn decades_have_three_labels_each() {
        let labelled = |from: f64| (1..=9).filter(move |n| !round(from * f64::from(*n)).is_empty());
        for from in [0.001, 0.1, 1.0, 10.0, 1000.0] {
            assert_eq!(labelled(from).collect::<Vec<_>>(), [1, 2, 5], "{from}");
        }
    }

    #[test]
    fn octaves_are_labelled_from_one_below_the_first_point_on() {
        let label = |points: [f64; 2], text: &str| {
            let plot = plot(points.map(|x| (x, 1.0)).to_vec(), Across::Octaves, false);
            svg(&plot).unwrap().unwrap().lines().any(|line| line.trim() == text)
        };
        assert!(label([273.0, 600.0], "512") && !label([273.0, 600.0], "307"));
        assert!(label([300.0, 380.0], "256"));
        for low in [1.0, 256.0, 300.0] {
            let start = beginning(low, 2.0, MARGIN);
            assert!(start < low && start.log2().ceil() <= low.log2(), "{low}");
        }
    }

    #[test]
    fn bars_are_named_where_there_are_any() {
        let single = plot(vec![(1.0, 2.0)], Across::Linear, false);
        assert!(!svg(&single).unwrap().unwrap().contains("bars:"));
        let span = Span { low: 1.0, median: 2.0, high: 400.0 };
        let series = vec![Series::new("one", [(1.0, span)])];
        let text = svg(&Plot { series, ..single }).unwrap().unwrap();
        assert!(text.contains("bars: least and most of the runs"));
        // The axis has room for the highest.
        assert!(text.contains("400"), "{text}");
    }

    #[test]
    fn no_points_are_no_plot() {
        assert!(svg(&plot(Vec::new(), Across::Linear, false)).unwrap().is_none());
    }
}
