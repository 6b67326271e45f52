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

/// Draws a plot; `None` if there is nothing to draw.
pub(crate) fn svg(plot: &Plot) -> anyhow::Result<Option<String>> {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (left, right) = bounds(&mut points().map(|point| point.0));
    let (low, high) = bounds(&mut points().map(|point| point.1));
    if !(left <= right && low <= high) {
        return Ok(None);
    }
    // Without any loss, all values are 0.
    let top = if high > 0.0 { high * 1.08 } else { 1.0 };
    let up = if plot.decades { low.max(1e-3) * 0.7..high * 1.4 } else { 0.0..top };
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let frame = Frame { plot, root: &root };
        let factors = || (left / 1.15..right * 1.15).log_scale();
        let evenly = || left - 0.3..right + 0.3;
        match (&plot.across, plot.decades) {
            (Across::Octaves, true) => frame.draw(factors().base(2.0), up.log_scale()),
            (Across::Octaves, false) => frame.draw(factors().base(2.0), up),
            (Across::Decades, true) => frame.draw(factors(), up.log_scale()),
            (Across::Decades, false) => frame.draw(factors(), up),
            (_, true) => frame.draw(evenly(), up.log_scale()),
            (_, false) => frame.draw(evenly(), up),
        }
        .map_err(|error| anyhow!("cannot draw {}: {error}", plot.name))?;
    }
    Ok(Some(compact(&text)))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
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
        let name = |x: &f64| match &plot.across {
            Across::Names(names) => {
                let at = |(n, _): &(usize, &String)| (x - *n as f64).abs() < 0.01;
                names.iter().enumerate().find(at).map(|(_, name)| name.clone()).unwrap_or_default()
            }
            Across::Linear | Across::Octaves => short(*x),
            Across::Decades => round(*x),
        };
        let labels = match &plot.across {
            Across::Names(names) => names.len() + 1,
            Across::Linear | Across::Octaves | Across::Decades => 10,
        };
        chart
            .configure_mesh()
            .x_labels(labels)
            .x_label_formatter(&name)
            .y_label_formatter(&|y| if plot.decades { round(*y) } else { short(*y) })
            .x_desc(plot.axes[0])
            .y_desc(plot.axes[1])
            .axis_desc_style(("sans-serif", 16))
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (n, series) in plot.series.iter().enumerate() {
            let style = self.style(n, series);
            let points = series.points.iter().copied();
            if series.is_reference {
                chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points, style))?;
            }
            let dots = series.points.iter().map(|&point| Circle::new(point, 3, style.filled()));
            chart.draw_series(dots)?;
        }
        self.legend(&legend)
    }

    fn legend(&self, area: &Area<'_>) -> Drawn {
        for ((n, series), y) in self.plot.series.iter().enumerate().zip((62..).step_by(22)) {
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
            area.draw(&Text::new(text, (36, y - 7), ("sans-serif", 13)))?;
        }
        Ok(())
    }

    /// The style of a line; bare sockets have the colour of the line they are compared with.
    fn style(&self, n: usize, series: &Series) -> ShapeStyle {
        let ours = series.name.strip_suffix(BARE);
        let reference = self.plot.series.iter().position(|other| Some(other.name.as_str()) == ours);
        let colour = COLOURS[reference.unwrap_or(n) % COLOURS.len()];
        ShapeStyle { color: colour.into(), filled: false, stroke_width: 2 }
    }
}

/// The label of a number if it is 1, 2 or 5 times a power of ten; other labels would overlap.
fn round(value: f64) -> String {
    let digit = value / 10_f64.powf(value.log10().floor());
    let is_round = [1.0, 2.0, 5.0, 10.0].iter().any(|round| (digit - round).abs() < 1e-6);
    if is_round { short(value) } else { String::new() }
}

/// A number in few characters.
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
    fn no_points_are_no_plot() {
        assert!(svg(&plot(Vec::new(), Across::Linear, false)).unwrap().is_none());
    }
}
