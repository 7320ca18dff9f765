//! Foundation: texts, numbers, collections, places, errors and exceptions.

mod array;
mod dictionary;
mod error;
mod number;
mod string;
mod url;

pub(super) use array::ArrayDouble;
pub(super) use dictionary::DictionaryDouble;
pub use error::{ErrorContents, raise};
pub(super) use error::{ErrorDouble, ExceptionDouble, error, failed};
pub(super) use number::{NumberDouble, ValueDouble};
pub(super) use string::{ConstantStringDouble, StringDouble, constant};
pub(super) use url::UrlDouble;
