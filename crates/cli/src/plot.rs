//! Curves as a picture.

use plotters::prelude::*;

/// Numbers that belong together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlotCurve {
    /// Name in the legend.
    pub(super) name: String,
    /// Points from left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over one axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlotPanel {
    /// Title above the panel.
    pub(super) title: String,
    /// Labels below and beside the panel.
    pub(super) axes: (String, String),
    pub(super) curves: Vec<PlotCurve>,
}

/// Width of a picture, and height of each of its panels.
const PANEL: (u32, u32) = (760, 420);
/// Room above the greatest value.
const ABOVE: f64 = 1.08;

/// The panels, one below the other, as SVG.
///
/// # Errors
/// Fails when a panel cannot be drawn.
pub(super) fn svg(panels: &[PlotPanel]) -> Result<String, String> {
    let mut text = String::new();
    draw(panels, &mut text).map_err(|error| format!("the picture cannot be drawn: {error}"))?;
    Ok(text)
}

fn draw(panels: &[PlotPanel], text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let height = PANEL.1 * u32::try_from(panels.len().max(1))?;
    let root = SVGBackend::with_string(text, (PANEL.0, height)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
        let points = panel.curves.iter().flat_map(|curve| &curve.points);
        let mut left = f64::INFINITY;
        let mut right = f64::NEG_INFINITY;
        let mut top = 0.0_f64;
        for &(x, y) in points {
            (left, right, top) = (left.min(x), right.max(x), top.max(y));
        }
        if left > right {
            (left, right) = (0.0, 1.0);
        }
        // A single point needs some room too.
        let right = if right > left { right } else { left + 1.0 };
        let top = if top > 0.0 { top * ABOVE } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(left..right, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(panel.axes.0.as_str())
            .y_desc(panel.axes.1.as_str())
            .draw()?;
        for (index, curve) in panel.curves.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?.label(curve.name.as_str()).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
            });
            let dots = curve.points.iter().map(|&point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(dots)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.4))
            .draw()?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_in_the_picture_with_its_name() {
        let curve = |name: &str, points: &[(f64, f64)]| PlotCurve {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let panel = |title: &str, curves: Vec<PlotCurve>| PlotPanel {
            title: title.to_owned(),
            axes: ("batch".to_owned(), "ms".to_owned()),
            curves,
        };
        let panels = [
            panel(
                "A & B",
                vec![
                    curve("one", &[(1.0, 2.0), (8.0, 9.0)]),
                    curve("two", &[(1.0, 1.0), (4.0, 2.0), (8.0, 3.0)]),
                ],
            ),
            panel("single", vec![curve("dot", &[(3.0, 0.0)])]),
            panel("none", Vec::new()),
        ];
        let text = svg(&panels).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
        for wanted in ["A &amp; B", "one", "two", "single", "dot", "batch", "ms"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        // Five points and one more of the last panel but one.
        assert_eq!(text.matches("<circle").count(), 6, "{text}");
        assert!(!text.contains("NaN"), "{text}");
    }
}
