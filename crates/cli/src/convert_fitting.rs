//! Options of `galatea convert` that go with some outputs only: given with others, they are refused.

use std::path::Path;

use galatea_coreml::{ConvertOptions, WeightCompression};
use galatea_formats::coreml::mil::MilProgram;
use galatea_formats::coreml::{FeatureShapes, FeatureType, NewPackage};

use super::convert_choices::{ChunkChoices, ProgramChoices};
use super::precision_choices::PrecisionChoices;

/// Kind of a conversion, by what it reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConversionKind {
    /// A graph as a package of Core ML.
    Package,
    /// A graph as an ONNX model.
    Onnx,
    /// A checkpoint as packages of chunks.
    Chunks,
}

/// Options as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenOptions<'a> {
    pub(super) program: &'a ProgramChoices,
    pub(super) measured: &'a PrecisionChoices,
    pub(super) chunks: &'a ChunkChoices,
    pub(super) function: bool,
    pub(super) level: bool,
}

impl GivenOptions<'_> {
    /// Refuses options that a kind of conversion has no use for.
    ///
    /// # Errors
    /// Fails with the first of them, and with what it goes with.
    pub(super) fn check(&self, kind: ConversionKind) -> Result<(), String> {
        let refuse = |names: Vec<&'static str>, goes: &str| match names.first() {
            None => Ok(()),
            Some(name) => Err(format!("--{name} goes with {goes}")),
        };
        let of_graphs = "packages of Core ML that are made of ONNX models";
        if kind != ConversionKind::Package {
            refuse(self.measured.given(), of_graphs)?;
            refuse(self.program.given_shapes(), of_graphs)?;
        }
        if kind != ConversionKind::Chunks {
            refuse(self.chunks.given(), "language models that become packages of Core ML")?;
        }
        match kind {
            ConversionKind::Package => Ok(()),
            ConversionKind::Onnx => {
                let level = self.level.then_some("level");
                let all = self.program.given_forms().into_iter().chain(level).collect();
                refuse(all, "packages of Core ML, an ONNX model is written as it is read")
            }
            ConversionKind::Chunks => {
                let function = self.function.then_some("function");
                refuse(function.into_iter().collect(), "models that have several functions")
            }
        }
    }
}

/// Refuses options for lengths that no input of a package has a use for, and returns a line where no
/// weights are stored in the form that was asked for.
///
/// # Errors
/// Fails with the option.
pub(super) fn check_effects(
    package: &NewPackage,
    program: &ProgramChoices,
    options: &ConvertOptions,
) -> Result<Option<String>, String> {
    let inputs = package.functions.iter().flat_map(|function| &function.inputs);
    let shapes: Vec<&FeatureShapes> = inputs
        .filter_map(|input| match &input.kind {
            FeatureType::Array { shapes, .. } => Some(shapes),
            _ => None,
        })
        .collect();
    if !options.buckets.is_empty()
        && !shapes.iter().any(|shapes| matches!(shapes, FeatureShapes::Enumerated(_)))
    {
        let text =
            "--bucket: all lengths of the inputs are given by the model, --shape or --length";
        return Err(text.to_owned());
    }
    if program.says_longest()
        && !shapes.iter().any(|shapes| matches!(shapes, FeatureShapes::Range(_)))
    {
        return Err("--longest: each input has its lengths, none is open".to_owned());
    }
    let plain = options.compression == WeightCompression::None || has_compressed(&package.program);
    Ok((!plain).then(|| {
        "--weights: no weights are large enough to be stored in this form, from 2,048 elements and two axes on"
            .to_owned()
    }))
}

/// Returns whether a program has weights that an operation makes when it is loaded.
fn has_compressed(program: &MilProgram) -> bool {
    let blocks = program.functions.values().map(|function| &function.block);
    let mut operators =
        blocks.flat_map(|block| &block.operations).map(|operation| operation.operator.as_str());
    operators.any(|operator| operator.starts_with("constexpr_"))
}

/// Returns whether an output is a package, by its name.
pub(super) fn is_package(target: &Path) -> bool {
    target.extension().is_some_and(|end| end == "mlpackage")
}
