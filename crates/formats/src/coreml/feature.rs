//! Features: the inputs and outputs of a model, and the shapes that they may have.

use std::fmt;

use galatea_tensor::DataType;

use super::error::CoreMlError;
use super::proto::{
    self, ArrayFeatureType, ColorSpace, CoreMlArrayDataTypeProto, CoreMlFeatureKindProto,
    DictionaryFeatureType, EmptyProto, FeatureDescription, ImageFeatureType, KeyType,
    ShapeFlexibility, SizeFlexibility, SizeRange, StateFeatureType,
};

/// An input, an output or a state.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFeature {
    /// Its name.
    pub name: String,
    /// Its description, in the author's words.
    pub description: String,
    /// Its type.
    pub kind: FeatureType,
    /// True if it may be left out.
    pub optional: bool,
}

/// The type of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureType {
    /// An array.
    Array {
        /// Its elements.
        dtype: DataType,
        /// Its default shape; empty where the model states none.
        shape: Vec<usize>,
        /// The shapes that it may have.
        shapes: FeatureShapes,
        /// The value of all elements where the feature is left out.
        default: Option<f64>,
    },
    /// A picture: a tensor `[1, channels, height, width]` of pixels from 0 to 255.
    Image {
        /// Colours, in the order of the channels.
        colors: ColorOrder,
        /// Default height and width.
        size: [usize; 2],
        /// The heights and widths that it may have.
        sizes: FeatureShapes,
    },
    /// A 64-bit integer.
    Int64,
    /// A double.
    Double,
    /// A text.
    Text,
    /// Numbers by text or by 64-bit integer.
    Dictionary {
        /// True if keys are texts.
        text_keys: bool,
    },
    /// A list of texts or integers.
    List,
}

/// The shapes that a feature may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureShapes {
    /// The default one only.
    Fixed,
    /// One of these.
    Enumerated(Vec<Vec<usize>>),
    /// Any whose lengths lie within these bounds, both included; `None` is no upper bound.
    Range(Vec<(usize, Option<usize>)>),
}

/// Colours of a picture, in the order of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorOrder {
    /// One channel.
    Gray,
    /// One channel of FP16.
    GrayHalf,
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
}

impl ColorOrder {
    /// Returns the number of channels.
    #[must_use]
    pub fn channels(self) -> usize {
        match self {
            Self::Gray | Self::GrayHalf => 1,
            Self::Rgb | Self::Bgr => 3,
        }
    }
}

impl fmt::Display for FeatureShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |&(low, high): &(usize, Option<usize>)| match high {
            Some(high) if high == low => low.to_string(),
            Some(high) => format!("{low}..{high}"),
            None => format!("{low}.."),
        };
        match self {
            Self::Fixed => f.write_str("the default shape"),
            Self::Enumerated(shapes) => {
                let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
                write!(f, "one of {}", shapes.join(", "))
            }
            Self::Range(bounds) => {
                let bounds: Vec<String> = bounds.iter().map(range).collect();
                write!(f, "[{}]", bounds.join(", "))
            }
        }
    }
}

impl FeatureShapes {
    fn allow(&self, default: &[usize], found: &[usize]) -> bool {
        let within = |(&found, &(low, high)): (&usize, &(usize, Option<usize>))| {
            found >= low && high.is_none_or(|high| found <= high)
        };
        match self {
            Self::Fixed => found == default,
            // The default shape is always one of them.
            Self::Enumerated(shapes) => found == default || shapes.iter().any(|one| one == found),
            Self::Range(bounds) => {
                found.len() == bounds.len() && found.iter().zip(bounds).all(within)
            }
        }
    }
}

impl ModelFeature {
    /// Reads a description.
    ///
    /// # Errors
    /// Fails when the type is missing, or says what Core ML does not allow.
    pub fn read(proto: &FeatureDescription) -> Result<Self, CoreMlError> {
        let place = || format!("feature '{}'", proto.name);
        let stated = proto.r#type.as_ref().and_then(|found| found.kind.as_ref());
        let Some(stated) = stated else {
            return Err(CoreMlError::invalid("it has no type").at(place()));
        };
        let kind = match stated {
            CoreMlFeatureKindProto::Int64(_) => FeatureType::Int64,
            CoreMlFeatureKindProto::Double(_) => FeatureType::Double,
            CoreMlFeatureKindProto::String(_) => FeatureType::Text,
            CoreMlFeatureKindProto::Sequence(_) => FeatureType::List,
            CoreMlFeatureKindProto::Dictionary(found) => {
                FeatureType::Dictionary { text_keys: matches!(found.key, Some(KeyType::String(_))) }
            }
            CoreMlFeatureKindProto::MultiArray(found) => {
                array(found).map_err(|error| error.at(place()))?
            }
            CoreMlFeatureKindProto::Image(found) => {
                image(found).map_err(|error| error.at(place()))?
            }
            CoreMlFeatureKindProto::State(found) => match &found.array_type {
                Some(found) => array(found).map_err(|error| error.at(place()))?,
                None => return Err(CoreMlError::invalid("the state has no array").at(place())),
            },
        };
        Ok(Self {
            name: proto.name.clone(),
            description: proto.short_description.clone(),
            kind,
            optional: proto.r#type.as_ref().is_some_and(|found| found.is_optional),
        })
    }

    /// Checks a shape that a run brings.
    ///
    /// # Errors
    /// Fails when the feature may not have it; the error says which it may.
    pub fn check_shape(&self, found: &[usize]) -> Result<(), String> {
        let refuse = |expected: String| {
            Err(format!("input '{}' has shape {found:?}, expected {expected}", self.name))
        };
        let shown = |default: &[usize], shapes: &FeatureShapes| match shapes {
            FeatureShapes::Fixed => format!("{default:?}"),
            other => other.to_string(),
        };
        match &self.kind {
            FeatureType::Array { shape, shapes, .. } => {
                let free = shape.is_empty() && *shapes == FeatureShapes::Fixed;
                match free || shapes.allow(shape, found) {
                    true => Ok(()),
                    false => refuse(shown(shape, shapes)),
                }
            }
            FeatureType::Image { colors, size, sizes } => match found {
                &[1, channels, height, width]
                    if channels == colors.channels() && sizes.allow(size, &[height, width]) =>
                {
                    Ok(())
                }
                _ => {
                    let channels = colors.channels();
                    refuse(format!("[1, {channels}, height, width] of {}", shown(size, sizes)))
                }
            },
            _ => match found.iter().product::<usize>() == 1 {
                true => Ok(()),
                false => refuse("one element".to_owned()),
            },
        }
    }
}

/// A length from outside.
fn length(found: i64) -> Result<usize, CoreMlError> {
    usize::try_from(found).map_err(|_| CoreMlError::invalid(format!("{found} is no length")))
}

fn lengths(found: &[i64]) -> Result<Vec<usize>, CoreMlError> {
    found.iter().map(|&found| length(found)).collect()
}

fn bounds(found: &SizeRange) -> Result<(usize, Option<usize>), CoreMlError> {
    let low = usize::try_from(found.lower_bound)
        .map_err(|_| CoreMlError::invalid(format!("{} is no length", found.lower_bound)))?;
    let high = usize::try_from(found.upper_bound).ok();
    match high {
        Some(high) if high < low => {
            Err(CoreMlError::invalid(format!("a length from {low} to {high}")))
        }
        _ => Ok((low, high)),
    }
}

fn array(found: &ArrayFeatureType) -> Result<FeatureType, CoreMlError> {
    use super::proto::DefaultValue;
    let dtype = match found.data_type() {
        CoreMlArrayDataTypeProto::Float16 => DataType::Fp16,
        CoreMlArrayDataTypeProto::Float32 => DataType::Fp32,
        CoreMlArrayDataTypeProto::Double => DataType::Fp64,
        CoreMlArrayDataTypeProto::Int8 => DataType::Int8,
        CoreMlArrayDataTypeProto::Int32 => DataType::Int32,
        CoreMlArrayDataTypeProto::Invalid => {
            let text = format!("there is no type of elements {}", found.data_type);
            return Err(CoreMlError::invalid(text));
        }
    };
    let shapes = match &found.flexibility {
        None => FeatureShapes::Fixed,
        Some(ShapeFlexibility::Enumerated(all)) => {
            let shapes = all.shapes.iter().map(|shape| lengths(&shape.shape));
            FeatureShapes::Enumerated(shapes.collect::<Result<_, _>>()?)
        }
        Some(ShapeFlexibility::Range(all)) => {
            FeatureShapes::Range(all.size_ranges.iter().map(bounds).collect::<Result<_, _>>()?)
        }
    };
    let default = found.default_value.map(|value| match value {
        DefaultValue::Int(value) => f64::from(value),
        DefaultValue::Float(value) => f64::from(value),
        DefaultValue::Double(value) => value,
    });
    Ok(FeatureType::Array { dtype, shape: lengths(&found.shape)?, shapes, default })
}

fn image(found: &ImageFeatureType) -> Result<FeatureType, CoreMlError> {
    let colors = match found.color_space() {
        ColorSpace::Grayscale => ColorOrder::Gray,
        ColorSpace::GrayscaleFloat16 => ColorOrder::GrayHalf,
        ColorSpace::Rgb => ColorOrder::Rgb,
        ColorSpace::Bgr => ColorOrder::Bgr,
        ColorSpace::Invalid => {
            let text = format!("there is no colour space {}", found.color_space);
            return Err(CoreMlError::invalid(text));
        }
    };
    let unsigned = |found: u64| {
        usize::try_from(found).map_err(|_| CoreMlError::invalid(format!("{found} is no length")))
    };
    let sizes = match &found.flexibility {
        None => FeatureShapes::Fixed,
        Some(SizeFlexibility::Enumerated(all)) => {
            let size = |size: &super::proto::ImageSize| {
                Ok(vec![unsigned(size.height)?, unsigned(size.width)?])
            };
            FeatureShapes::Enumerated(
                all.sizes.iter().map(size).collect::<Result<_, CoreMlError>>()?,
            )
        }
        Some(SizeFlexibility::Range(all)) => {
            let any = SizeRange { lower_bound: 1, upper_bound: -1 };
            let axes = [all.height_range.unwrap_or(any), all.width_range.unwrap_or(any)];
            FeatureShapes::Range(axes.iter().map(bounds).collect::<Result<_, _>>()?)
        }
    };
    Ok(FeatureType::Image { colors, size: [length(found.height)?, length(found.width)?], sizes })
}

impl ModelFeature {
    /// The description of a feature, which [`ModelFeature::read`] reads; without the value of what is left out.
    #[must_use]
    pub fn write(&self) -> FeatureDescription {
        let kind = match &self.kind {
            FeatureType::Array { dtype, shape, shapes, .. } => {
                CoreMlFeatureKindProto::MultiArray(written_array(*dtype, shape, shapes))
            }
            FeatureType::Image { colors, size, sizes } => {
                CoreMlFeatureKindProto::Image(written_image(*colors, size[0], size[1], sizes))
            }
            FeatureType::Int64 => CoreMlFeatureKindProto::Int64(EmptyProto {}),
            FeatureType::Double => CoreMlFeatureKindProto::Double(EmptyProto {}),
            FeatureType::Text => CoreMlFeatureKindProto::String(EmptyProto {}),
            FeatureType::List => CoreMlFeatureKindProto::Sequence(EmptyProto {}),
            FeatureType::Dictionary { text_keys } => {
                let key = match text_keys {
                    true => KeyType::String(EmptyProto {}),
                    false => KeyType::Int64(EmptyProto {}),
                };
                CoreMlFeatureKindProto::Dictionary(DictionaryFeatureType { key: Some(key) })
            }
        };
        self.described(kind)
    }

    /// The description of a feature that is a state.
    pub(super) fn write_state(&self) -> FeatureDescription {
        let FeatureType::Array { dtype, shape, shapes, .. } = &self.kind else {
            return self.write();
        };
        let array_type = Some(written_array(*dtype, shape, shapes));
        self.described(CoreMlFeatureKindProto::State(StateFeatureType { array_type }))
    }

    fn described(&self, kind: CoreMlFeatureKindProto) -> FeatureDescription {
        let found = proto::CoreMlFeatureTypeProto { kind: Some(kind), is_optional: self.optional };
        FeatureDescription {
            name: self.name.clone(),
            short_description: self.description.clone(),
            r#type: Some(found),
        }
    }
}

fn signed(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

fn unsigned(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn written_bounds(low: usize, high: Option<usize>) -> SizeRange {
    SizeRange { lower_bound: unsigned(low), upper_bound: high.map_or(-1, signed) }
}

fn written_array(dtype: DataType, shape: &[usize], shapes: &FeatureShapes) -> ArrayFeatureType {
    let data_type = match dtype {
        DataType::Fp16 => CoreMlArrayDataTypeProto::Float16,
        DataType::Fp64 => CoreMlArrayDataTypeProto::Double,
        DataType::Int8 => CoreMlArrayDataTypeProto::Int8,
        DataType::Int32 => CoreMlArrayDataTypeProto::Int32,
        _ => CoreMlArrayDataTypeProto::Float32,
    };
    let lengths = |shape: &[usize]| shape.iter().copied().map(signed).collect();
    let flexibility = match shapes {
        FeatureShapes::Fixed => None,
        FeatureShapes::Enumerated(all) => {
            let shapes = all.iter().map(|shape| proto::CoreMlShapeProto { shape: lengths(shape) });
            Some(ShapeFlexibility::Enumerated(proto::EnumeratedShapes { shapes: shapes.collect() }))
        }
        FeatureShapes::Range(all) => {
            let size_ranges = all.iter().map(|&(low, high)| written_bounds(low, high)).collect();
            Some(ShapeFlexibility::Range(proto::ShapeRange { size_ranges }))
        }
    };
    ArrayFeatureType {
        shape: lengths(shape),
        data_type: data_type.into(),
        flexibility,
        default_value: None,
    }
}

fn written_image(
    colors: ColorOrder,
    height: usize,
    width: usize,
    sizes: &FeatureShapes,
) -> ImageFeatureType {
    let color_space = match colors {
        ColorOrder::Gray => ColorSpace::Grayscale,
        ColorOrder::GrayHalf => ColorSpace::GrayscaleFloat16,
        ColorOrder::Rgb => ColorSpace::Rgb,
        ColorOrder::Bgr => ColorSpace::Bgr,
    };
    let flexibility = match sizes {
        FeatureShapes::Fixed => None,
        FeatureShapes::Enumerated(all) => {
            let size = |size: &Vec<usize>| proto::ImageSize {
                height: unsigned(size.first().copied().unwrap_or(0)),
                width: unsigned(size.get(1).copied().unwrap_or(0)),
            };
            let sizes = all.iter().map(size).collect();
            Some(SizeFlexibility::Enumerated(proto::EnumeratedImageSizes { sizes }))
        }
        FeatureShapes::Range(all) => Some(SizeFlexibility::Range(proto::ImageSizeRange {
            height_range: all.first().map(|&(low, high)| written_bounds(low, high)),
            width_range: all.get(1).map(|&(low, high)| written_bounds(low, high)),
        })),
    };
    ImageFeatureType {
        width: signed(width),
        height: signed(height),
        color_space: color_space.into(),
        flexibility,
    }
}
