//! Inputs, outputs and states of a model.

use std::fmt;

use super::ArrayDataType;

/// A model's features, each list ordered by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelInterface {
    /// Inputs of a prediction.
    pub inputs: Vec<InterfaceFeature>,
    /// Outputs of a prediction.
    pub outputs: Vec<InterfaceFeature>,
    /// States that last from one prediction to the next; empty before macOS 15.
    pub states: Vec<InterfaceFeature>,
    /// The output with a classifier's label.
    pub predicted_feature: Option<String>,
    /// The output with a classifier's probabilities.
    pub predicted_probabilities: Option<String>,
    /// Metadata that its author wrote.
    pub metadata: ModelMetadata,
}

/// One input, output or state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceFeature {
    /// Its name.
    pub name: String,
    /// Kind of its values.
    pub kind: FeatureKind,
    /// True if a prediction works without it.
    pub optional: bool,
}

/// The values of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureKind {
    /// Arrays.
    Array(ArrayFeature),
    /// Pictures.
    Image {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Format of a pixel.
        format: PixelFormat,
    },
    /// A 64-bit integer.
    Int64,
    /// A double.
    Double,
    /// Text.
    String,
    /// Numbers by label.
    Dictionary,
    /// Something else, by its number in Core ML's `MLFeatureType`.
    Other(isize),
}

impl FeatureKind {
    /// The word for it in errors.
    pub(super) fn word(&self) -> String {
        match self {
            Self::Array(_) => "an array".to_owned(),
            Self::Image { width, height, format } => {
                format!("an image of {width} by {height} {format} pixels")
            }
            Self::Int64 => "an integer".to_owned(),
            Self::Double => "a number".to_owned(),
            Self::String => "a text".to_owned(),
            Self::Dictionary => "a dictionary".to_owned(),
            Self::Other(number) => format!("a feature of type {number}"),
        }
    }
}

/// Arrays that a feature accepts or returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayFeature {
    /// The type of the elements.
    pub data_type: ArrayDataType,
    /// The shape that the model prefers; empty where it says none.
    pub shape: Vec<usize>,
    /// The shapes that it allows.
    pub constraint: ShapeConstraint,
}

/// The shapes of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeConstraint {
    /// The preferred shape only; any, where there is none.
    Fixed,
    /// One of these.
    Enumerated(Vec<Vec<usize>>),
    /// Every dimension within its range.
    Range(Vec<DimensionRange>),
}

/// The sizes of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DimensionRange {
    /// The smallest.
    pub low: usize,
    /// The largest; none where there is no bound.
    pub high: Option<usize>,
}

impl DimensionRange {
    /// The range that an `NSRange` of Core ML's means: `length` sizes from `location` on.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn of(location: usize, length: usize) -> Self {
        // Without a bound, `length` is as large as integers get.
        let bounded = isize::try_from(length).is_ok_and(|length| length < isize::MAX);
        let high = location.checked_add(length.max(1) - 1).filter(|_| bounded);
        Self { low: location, high }
    }

    fn holds(self, len: usize) -> bool {
        self.low <= len && self.high.is_none_or(|high| len <= high)
    }
}

impl ArrayFeature {
    /// Returns whether the model allows the shape.
    pub(super) fn allows(&self, shape: &[usize]) -> bool {
        match &self.constraint {
            ShapeConstraint::Fixed => self.shape.is_empty() || self.shape == shape,
            ShapeConstraint::Enumerated(shapes) => shapes.iter().any(|one| one == shape),
            ShapeConstraint::Range(ranges) => {
                ranges.len() == shape.len()
                    && ranges.iter().zip(shape).all(|(range, &len)| range.holds(len))
            }
        }
    }
}

impl fmt::Display for ArrayFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of shape ", self.data_type)?;
        match &self.constraint {
            ShapeConstraint::Fixed if self.shape.is_empty() => f.write_str("as it comes"),
            ShapeConstraint::Fixed => write!(f, "{:?}", self.shape),
            ShapeConstraint::Enumerated(shapes) => {
                let shapes: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
                f.write_str(&shapes.join(" or "))
            }
            ShapeConstraint::Range(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", ranges.join(", "))
            }
        }
    }
}

impl fmt::Display for DimensionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.high {
            Some(high) if high == self.low => write!(f, "{high}"),
            Some(high) => write!(f, "{}..={high}", self.low),
            None => write!(f, "{}..", self.low),
        }
    }
}

/// Format of a pixel: Core Video's code of four characters, such as `32BGRA`'s `BGRA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelFormat(pub u32);

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.0.to_be_bytes();
        match std::str::from_utf8(&code) {
            Ok(text) if code.iter().all(|byte| (b' '..=b'~').contains(byte)) => f.write_str(text),
            _ => write!(f, "{:#x}", self.0),
        }
    }
}

/// Metadata that a model's author wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelMetadata {
    /// Description of the model.
    pub description: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Author of the model.
    pub author: Option<String>,
    /// Under which licence.
    pub license: Option<String>,
    /// Further keys with their values, ordered by key.
    pub additional: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(shape: &[usize], constraint: ShapeConstraint) -> ArrayFeature {
        ArrayFeature { data_type: ArrayDataType::Float32, shape: shape.to_vec(), constraint }
    }

    #[test]
    fn a_fixed_shape_allows_itself_and_none_allows_all() {
        let fixed = feature(&[1, 3], ShapeConstraint::Fixed);
        assert!(fixed.allows(&[1, 3]) && !fixed.allows(&[1, 4]) && !fixed.allows(&[3]));
        assert_eq!(fixed.to_string(), "Float32 of shape [1, 3]");
        let open = feature(&[], ShapeConstraint::Fixed);
        assert!(open.allows(&[7, 7]));
        assert_eq!(open.to_string(), "Float32 of shape as it comes");
    }

    #[test]
    fn enumerated_shapes_allow_each_other_only() {
        let two = ShapeConstraint::Enumerated(vec![vec![1, 8], vec![1, 16]]);
        let feature = feature(&[1, 8], two);
        assert!(feature.allows(&[1, 16]) && !feature.allows(&[1, 12]));
        assert_eq!(feature.to_string(), "Float32 of shape [1, 8] or [1, 16]");
    }

    #[test]
    fn ranges_count_their_sizes_from_the_first() {
        let ranges = vec![
            DimensionRange::of(3, 1),
            DimensionRange::of(1, 128),
            DimensionRange::of(2, isize::MAX.unsigned_abs()),
        ];
        assert_eq!((ranges[0].high, ranges[1].high, ranges[2].high), (Some(3), Some(128), None));
        let feature = feature(&[3, 1, 2], ShapeConstraint::Range(ranges));
        assert!(feature.allows(&[3, 128, 9000]));
        assert!(!feature.allows(&[3, 129, 2]) && !feature.allows(&[3, 1, 1]));
        assert!(!feature.allows(&[3, 1]));
        assert_eq!(feature.to_string(), "Float32 of shape [3, 1..=128, 2..]");
        assert_eq!(DimensionRange::of(4, 0).high, Some(4));
    }

    #[test]
    fn pixel_formats_are_told_by_their_characters() {
        assert_eq!(PixelFormat(u32::from_be_bytes(*b"BGRA")).to_string(), "BGRA");
        assert_eq!(PixelFormat(40).to_string(), "0x28");
    }
}
