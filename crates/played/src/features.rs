//! Descriptions of the interpreter's models, as the doubles of Core ML give them.

use galatea_coreml::engine::EngineInterface;
use galatea_doubles::objc::core_ml::{
    PlayedFailure, PlayedFeature, PlayedInterface, PlayedKind, PlayedRange, PlayedShapes,
};
use galatea_formats::coreml::{FeatureShapes, FeatureType, ModelFeature};

use crate::values;

/// Role of a feature.
#[derive(Clone, Copy, PartialEq)]
enum FeatureRole {
    /// Input or output.
    Value,
    State,
}

/// Length of a range of Foundation without an upper end.
const ENDLESS: usize = isize::MAX.unsigned_abs();

fn shapes(of: &FeatureShapes) -> PlayedShapes {
    let range = |&(low, high): &(usize, Option<usize>)| PlayedRange {
        location: low,
        length: high.map_or(ENDLESS, |high| high - low + 1),
    };
    match of {
        FeatureShapes::Fixed => PlayedShapes::Fixed,
        FeatureShapes::Enumerated(all) => PlayedShapes::Enumerated(all.clone()),
        FeatureShapes::Range(ranges) => PlayedShapes::Ranges(ranges.iter().map(range).collect()),
    }
}

fn feature(of: &ModelFeature, role: FeatureRole) -> Result<PlayedFeature, PlayedFailure> {
    let kind = match &of.kind {
        FeatureType::Array { dtype, shape, .. } if role == FeatureRole::State => {
            PlayedKind::State { data_type: values::number(*dtype)?, shape: shape.clone() }
        }
        FeatureType::Array { dtype, shape, shapes: all, .. } => PlayedKind::Array {
            data_type: values::number(*dtype)?,
            shape: shape.clone(),
            shapes: shapes(all),
        },
        FeatureType::Int64 => PlayedKind::Plain(values::WHOLE),
        FeatureType::Double => PlayedKind::Plain(values::REAL),
        FeatureType::Text => PlayedKind::Plain(values::TEXT),
        other => {
            let text = format!("feature '{}' is {other:?}, which nobody plays", of.name);
            return Err(PlayedFailure::error(1, &text));
        }
    };
    Ok(PlayedFeature { name: of.name.clone(), kind, optional: of.optional })
}

/// Describes a model of the interpreter's.
///
/// # Errors
/// Fails where a feature is no array and no plain value.
pub(crate) fn interface(of: &EngineInterface) -> Result<PlayedInterface, PlayedFailure> {
    let all = |list: &[ModelFeature], role| {
        list.iter().map(|one| feature(one, role)).collect::<Result<Vec<_>, _>>()
    };
    Ok(PlayedInterface {
        inputs: all(&of.inputs, FeatureRole::Value)?,
        outputs: all(&of.outputs, FeatureRole::Value)?,
        states: all(&of.states, FeatureRole::State)?,
        ..PlayedInterface::default()
    })
}
