//! Foundation: texts, numbers, collections, places, errors, exceptions and the process.

mod array;
mod dictionary;
mod error;
mod number;
mod process;
mod string;
mod url;

pub(super) use array::ArrayDouble;
pub(super) use dictionary::DictionaryDouble;
pub use error::{ErrorContents, raise};
pub(super) use error::{ErrorDouble, ExceptionDouble, error, failed};
pub(super) use number::{NumberDouble, ValueDouble};
pub(super) use process::ProcessDouble;
pub(super) use string::{ConstantStringDouble, StringDouble, constant};
pub(super) use url::UrlDouble;
