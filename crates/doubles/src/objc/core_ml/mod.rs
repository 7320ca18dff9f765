//! Doubles of Core ML's classes. What they compute is played: see [`install`].

mod array;
mod configuration;
mod constraints;
mod description;
mod device;
mod feature;
mod layout;
mod model;
mod plan;
mod played;
mod state;
mod structure;

pub(super) use array::ArrayDouble;
pub(super) use configuration::{ConfigurationDouble, HintsDouble};
pub(super) use constraints::{
    ArrayConstraintDouble, ImageConstraintDouble, ShapeConstraintDouble, StateConstraintDouble,
};
pub(super) use description::{DescriptionDouble, FeatureDescriptionDouble};
pub(super) use device::{CpuDouble, EngineDouble, GpuDouble, MetalDouble, OtherDeviceDouble};
pub(super) use feature::{OptionsDouble, ProviderDouble, ValueDouble};
pub(super) use model::ModelDouble;
pub use model::settle;
pub(super) use plan::{CostDouble, PlanDouble, UsageDouble};
pub use played::*;

pub(super) use state::StateDouble;
pub(super) use structure::{
    BlockDouble, FunctionDouble, LayerDouble, NamedTypeDouble, NetworkDouble, OperationDouble,
    PipelineDouble, ProgramDouble, StructureDouble,
};

/// Makes an object of a double with its contents, as the class that it stands for.
macro_rules! made {
    ($double:ty, $contents:expr, $class:ty) => {{
        let this = <$double as objc2::AnyThread>::alloc().set_ivars($contents);
        // SAFETY: the parent's method takes nothing.
        let made: objc2::rc::Retained<$double> = unsafe { objc2::msg_send![super(this), init] };
        // SAFETY: the double is the class of that name.
        unsafe { objc2::rc::Retained::cast_unchecked::<$class>(made) }
    }};
}
use made;
