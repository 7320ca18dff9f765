//! An Objective-C runtime as far as objc2 and block2 ask for one: the functions that they call of GNUstep's.
//!
//! Messages go through `objc_msg_lookup`, which returns the method to call, so the runtime has no assembly but the
//! frame that catches exceptions.

mod block;
mod class;
mod exception;
mod method;
mod object;
mod pool;
mod protocol;
mod root;
mod selector;

pub use block::live_blocks;
pub(crate) use class::{ConstantObject, RuntimeClass};
pub use class::{HiddenNames, hide};
pub(super) use object::is_alive;
pub use object::{LiveInstances, live_objects};
pub(super) use root::class_object as root_class;
