//! Models that the doubles of Core ML play: a test or a program installs them.
//!
//! Plain values stand for Core ML's objects, so that a player needs no Objective-C.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use objc2::runtime::NSObject;

pub use crate::objc::foundation::ErrorContents;
use crate::objc::foundation::raise;

/// Tensor without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedTensor {
    /// Its type, a number of `MLMultiArrayDataType`.
    pub data_type: isize,
    /// Number of elements along each dimension.
    pub shape: Vec<usize>,
    /// Elements in order.
    pub bytes: Vec<u8>,
}

/// Label of a dictionary.
#[derive(Debug, Clone, PartialEq)]
pub enum PlayedLabel {
    /// Text.
    Text(String),
    /// Integer.
    Whole(i64),
    /// Something that is neither.
    Odd,
}

/// Label and its number.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledNumber {
    /// The label.
    pub label: PlayedLabel,
    /// The number.
    pub number: f64,
}

/// Value of a feature.
#[derive(Debug, Clone, PartialEq)]
pub enum PlayedValue {
    /// Array.
    Tensor(PlayedTensor),
    /// 64-bit integer.
    Whole(i64),
    /// Double.
    Real(f64),
    /// Text.
    Text(String),
    /// Numbers by label.
    Dictionary(Vec<LabelledNumber>),
    /// Feature without a value.
    Undefined,
    /// Feature of this `MLFeatureType` whose value nobody asks for.
    Other(isize),
}

/// Value with the name of its feature, an input or an output.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedOutput {
    /// Name of the feature.
    pub name: String,
    /// The value.
    pub value: PlayedValue,
}

/// Shapes that an array may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedShapes {
    /// The preferred one.
    Fixed,
    /// Several, each as good.
    Enumerated(Vec<Vec<usize>>),
    /// A range for each dimension.
    Ranges(Vec<PlayedRange>),
}

/// Sizes of a dimension, as a range of Foundation: so many from the first on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayedRange {
    /// The least.
    pub location: usize,
    /// Number of sizes.
    pub length: usize,
}

/// Values of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedKind {
    /// Arrays.
    Array {
        /// Number of `MLMultiArrayDataType`.
        data_type: isize,
        /// Preferred shape.
        shape: Vec<usize>,
        /// All shapes.
        shapes: PlayedShapes,
    },
    /// Pictures.
    Image {
        /// Pixels in a row.
        width: isize,
        /// Rows.
        height: isize,
        /// Format of a pixel.
        format: u32,
    },
    /// State.
    State {
        /// Number of `MLMultiArrayDataType`.
        data_type: isize,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Any other `MLFeatureType`, without a constraint.
    Plain(isize),
}

/// An input, output or state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedFeature {
    /// Its name.
    pub name: String,
    /// Its values.
    pub kind: PlayedKind,
    /// True if predictions work without it.
    pub optional: bool,
}

/// Metadata of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedMetadata {
    /// Description.
    pub description: Option<String>,
    /// Author.
    pub author: Option<String>,
    /// Names and texts of the author's own.
    pub additional: Vec<NamedText>,
}

/// Text with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Description of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedInterface {
    /// Inputs.
    pub inputs: Vec<PlayedFeature>,
    /// Outputs.
    pub outputs: Vec<PlayedFeature>,
    /// States.
    pub states: Vec<PlayedFeature>,
    /// Output with a classifier's label.
    pub predicted_feature: Option<String>,
    /// Output with its probabilities.
    pub predicted_probabilities: Option<String>,
    /// Metadata.
    pub metadata: PlayedMetadata,
}

/// Options with which a model is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedConfiguration {
    /// Number of `MLComputeUnits`.
    pub units: isize,
    /// Function of a model with several.
    pub function: Option<String>,
    /// Name for people.
    pub display_name: Option<String>,
    /// True if the GPU may add in half precision.
    pub low_precision: bool,
    /// True if shapes change rarely.
    pub infrequent_reshapes: bool,
    /// True if predictions matter more than the time to load.
    pub fast_prediction: bool,
}

/// Way in which a call fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedFailure {
    /// Error.
    Error(ErrorContents),
    /// Exception.
    Exception {
        /// Its name.
        name: String,
        /// Its reason.
        reason: String,
    },
    /// Exception that is no `NSException`.
    OddException,
    /// Neither result nor error.
    Nothing,
    /// Silence: whoever waits is forgotten. A call that gives its result at once gives none.
    Forgotten,
}

impl PlayedFailure {
    /// Makes an error of Core ML.
    #[must_use]
    pub fn error(code: isize, description: &str) -> Self {
        Self::Error(ErrorContents {
            domain: "com.apple.CoreML".to_owned(),
            code,
            description: description.to_owned(),
            ..ErrorContents::default()
        })
    }

    /// Makes an exception of a wrong argument.
    #[must_use]
    pub fn exception(reason: &str) -> Self {
        let name = "NSInvalidArgumentException".to_owned();
        Self::Exception { name, reason: reason.to_owned() }
    }

    /// The error, where it is none of the others: those raise what they are.
    pub(super) fn into_error(self) -> Option<ErrorContents> {
        match self {
            Self::Error(error) => Some(error),
            Self::Nothing | Self::Forgotten => None,
            Self::Exception { name, reason } => raise(&name, &reason),
            Self::OddException => {
                let object: *const NSObject = objc2::rc::Retained::autorelease_ptr(NSObject::new());
                // SAFETY: the pool has the object until whoever catches it does.
                unsafe { objc2::ffi::objc_exception_throw(object.cast_mut().cast()) }
            }
        }
    }
}

/// Order of the elements of arrays that a model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputLayout {
    /// Rows begin at multiples of 64 bytes; the gaps count as bytes of the array.
    #[default]
    Padded,
    /// Rows begin at multiples of 64 bytes; the gaps do not count as bytes of the array.
    PaddedUncounted,
    /// Elements lie close.
    Close,
    /// Elements lie in a surface.
    Surface,
}

/// Device that models run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedDevice {
    /// The CPU.
    Cpu,
    /// A GPU of this name; without one where it is gone.
    Gpu(Option<String>),
    /// A Neural Engine with so many cores.
    NeuralEngine(isize),
    /// Something else.
    Other,
}

/// Operation of a planned model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlayedOperation {
    /// Its operator.
    pub operator: String,
    /// Names of what it gives.
    pub outputs: Vec<String>,
    /// Blocks inside.
    pub blocks: Vec<Vec<PlayedOperation>>,
    /// The device that is preferred and those that are supported; none for a constant.
    pub usage: Option<PlayedUsage>,
    /// Its share of the cost.
    pub weight: Option<f64>,
}

/// Devices of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedUsage {
    /// The one that is preferred.
    pub preferred: PlayedDevice,
    /// Supported ones.
    pub supported: Vec<PlayedDevice>,
}

/// Function of a planned program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlayedFunction {
    /// Its name.
    pub name: String,
    /// Its operations.
    pub operations: Vec<PlayedOperation>,
}

/// Structure of a planned model.
#[derive(Debug, Clone, PartialEq)]
pub enum PlayedStructure {
    /// Program of functions.
    Program(Vec<PlayedFunction>),
    /// Layers; their blocks and weights are not looked at.
    Network(Vec<PlayedOperation>),
    /// Models after each other.
    Pipeline(Vec<PipelineStage>),
}

/// Model of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineStage {
    /// Its name.
    pub name: String,
    /// Its structure.
    pub structure: PlayedStructure,
}

/// Model that is played.
pub trait PlayedModel: Send + Sync {
    /// Describes it.
    fn interface(&self) -> PlayedInterface;

    /// Looks at a prediction that nobody waits for, on the thread that asks for it.
    ///
    /// # Errors
    /// Fails as Core ML is to fail there.
    fn begin(&self) -> Result<(), PlayedFailure> {
        Ok(())
    }

    /// Predicts. The states lie in the order of the description, and change.
    ///
    /// # Errors
    /// Fails as Core ML is to fail.
    fn predict(
        &self,
        inputs: Vec<PlayedOutput>,
        states: &mut [PlayedTensor],
    ) -> Result<Vec<PlayedOutput>, PlayedFailure>;

    /// Says how its arrays lie in memory.
    fn layout(&self) -> OutputLayout {
        OutputLayout::default()
    }

    /// Returns whether outputs go to the arrays that the caller has for them.
    fn takes_backings(&self) -> bool {
        true
    }
}

/// Core ML that is played.
pub trait PlayedCoreMl: Send + Sync {
    /// Compiles a package and returns the folder.
    ///
    /// # Errors
    /// Fails as Core ML is to fail.
    fn compile(&self, package: &Path) -> Result<PathBuf, PlayedFailure>;

    /// Loads a compiled model.
    ///
    /// # Errors
    /// Fails as Core ML is to fail.
    fn load(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<Arc<dyn PlayedModel>, PlayedFailure>;

    /// Plans a compiled model.
    ///
    /// # Errors
    /// Fails as Core ML is to fail.
    fn plan(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<PlayedStructure, PlayedFailure>;

    /// Lists the devices; none before macOS 14.
    fn devices(&self) -> Option<Vec<PlayedDevice>> {
        Some(vec![PlayedDevice::Cpu])
    }
}

/// Player of this process.
static PLAYER: RwLock<Option<Arc<dyn PlayedCoreMl>>> = RwLock::new(None);

/// Lets the doubles of Core ML play this from now on.
pub fn install(player: Arc<dyn PlayedCoreMl>) {
    *PLAYER.write().unwrap_or_else(PoisonError::into_inner) = Some(player);
}

/// Returns the player, or the error of a Core ML that has none.
pub(super) fn player() -> Result<Arc<dyn PlayedCoreMl>, PlayedFailure> {
    let player = PLAYER.read().unwrap_or_else(PoisonError::into_inner).clone();
    player.ok_or_else(|| PlayedFailure::error(0, "nothing plays Core ML here"))
}
