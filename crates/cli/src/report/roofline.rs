//! Operators under the roofs of their units, as a picture.

use galatea_runtime::{ArithmeticUnit, ArithmeticWork, DevicePeaks};
use plotters::prelude::*;

/// An operator among others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RooflinePoint {
    pub(super) name: String,
    pub(super) work: ArithmeticWork,
    /// Seconds.
    pub(super) time: f64,
    /// Its share of all operators' time.
    pub(super) share: f64,
}

/// A roof: what a unit reaches at most.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RooflineRoof {
    pub(super) name: String,
    /// Operations a second.
    pub(super) operations: f64,
    /// Bytes a second.
    pub(super) bytes: f64,
}

impl RooflineRoof {
    /// Returns the roofs of a device whose peaks are known.
    pub(super) fn of(name: &str, peaks: &DevicePeaks) -> Vec<Self> {
        let Some(bytes) = peaks.bytes else { return Vec::new() };
        let all = [(ArithmeticUnit::Vector, "vectors"), (ArithmeticUnit::Matrix, "matrices")];
        let roof = |(unit, word): (ArithmeticUnit, &str)| {
            let operations = peaks.operations(unit)?;
            Some(Self { name: format!("{name}, {word}"), operations, bytes })
        };
        all.into_iter().filter_map(roof).collect()
    }

    /// Operations a second at an intensity, in operations for a byte.
    fn at(&self, intensity: f64) -> f64 {
        (intensity * self.bytes).min(self.operations)
    }
}

impl RooflinePoint {
    /// Operations for a byte, and 10⁹ operations a second; nothing where it has none of either.
    fn place(&self) -> Option<(f64, f64)> {
        let operations = self.work.operations as f64;
        let bytes = self.work.bytes as f64;
        let place = (operations / bytes, operations / self.time / 1e9);
        let fits = [operations, bytes, self.time].iter().all(|value| *value > 0.0);
        (fits && place.0.is_finite() && place.1.is_finite()).then_some(place)
    }
}

const SIZE: (u32, u32) = (760, 460);
/// Operators that have their names beside them.
const NAMED: usize = 6;
/// Intensities between which roofs are drawn at least.
const LEAST: (f64, f64) = (0.1, 100.0);

/// The picture; nothing where no operator has both arithmetic and bytes.
///
/// # Errors
/// Fails when it cannot be drawn.
pub(super) fn svg(
    points: &[RooflinePoint],
    roofs: &[RooflineRoof],
) -> Result<Option<String>, String> {
    let mut placed: Vec<(&RooflinePoint, (f64, f64))> =
        points.iter().filter_map(|point| Some((point, point.place()?))).collect();
    if placed.is_empty() {
        return Ok(None);
    }
    placed.sort_by(|a, b| b.0.share.total_cmp(&a.0.share));
    let mut text = String::new();
    draw(&placed, roofs, &mut text)
        .map_err(|error| format!("the roofline cannot be drawn: {error}"))?;
    Ok(Some(text))
}

fn draw(
    placed: &[(&RooflinePoint, (f64, f64))],
    roofs: &[RooflineRoof],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut left, mut right) = LEAST;
    let mut low = f64::INFINITY;
    let mut high = 0.0_f64;
    for (_, (x, y)) in placed {
        (left, right) = (left.min(x / 2.0), right.max(x * 2.0));
        (low, high) = (low.min(y / 2.0), high.max(y * 2.0));
    }
    for roof in roofs {
        (low, high) = (low.min(roof.at(left) / 1e9), high.max(roof.operations * 2.0 / 1e9));
    }
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Roofline", ("sans-serif", 18))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("multiplications and additions for a byte")
        .y_desc("10⁹ a second")
        .draw()?;
    for (index, roof) in roofs.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let ridge = (roof.operations / roof.bytes).clamp(left, right);
        let line = [left, ridge, right].map(|x| (x, roof.at(x) / 1e9));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(roof.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    for (index, (point, place)) in placed.iter().enumerate() {
        #[allow(clippy::cast_possible_truncation, reason = "3 to 15")]
        let radius = (3.0 + 12.0 * point.share.clamp(0.0, 1.0).sqrt()) as i32;
        let dot = Circle::new(*place, radius, BLUE.mix(0.5).filled());
        chart.draw_series([dot])?;
        if index < NAMED {
            let style = ("sans-serif", 12);
            chart.draw_series([Text::new(point.name.clone(), *place, style)])?;
        }
    }
    if !roofs.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
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

    fn point(name: &str, operations: u64, bytes: u64) -> RooflinePoint {
        let work = ArithmeticWork { operations, bytes };
        RooflinePoint { name: name.to_owned(), work, time: 1e-3, share: 0.5 }
    }

    #[test]
    fn operators_lie_under_the_roofs() {
        let peaks =
            DevicePeaks { vector_f32: Some(1e11), bytes: Some(1e10), ..DevicePeaks::default() };
        let roofs = RooflineRoof::of("cpu", &peaks);
        assert_eq!((roofs.len(), roofs[0].at(1.0), roofs[0].at(100.0)), (1, 1e10, 1e11));
        let points = [point("MatMul", 1_000_000, 1000), point("Add", 10, 100), point("Move", 0, 9)];
        let text = svg(&points, &roofs).unwrap().unwrap();
        assert!(text.contains("MatMul") && text.contains("cpu, vectors"), "{text}");
        assert_eq!(text.matches("<circle").count(), 2, "what does no arithmetic has no place");
        assert!(!text.contains("NaN"), "{text}");
    }

    #[test]
    fn without_peaks_there_are_no_roofs_and_without_work_no_picture() {
        assert!(RooflineRoof::of("cpu", &DevicePeaks::default()).is_empty());
        assert!(svg(&[point("MatMul", 5, 5)], &[]).unwrap().is_some());
        assert_eq!(svg(&[point("Move", 0, 9)], &[]), Ok(None));
    }
}
