//! Rust types that stand for elements of 8 and fewer bits.

use std::fmt;

use crate::dtype::DataType;
use crate::element::{Element, private};
use crate::small::SmallType;

macro_rules! small_elements {
    ($($name:ident: $text:literal),* $(,)?) => {$(
        #[doc = concat!("An element of type ", $text, ": its code. Equal are equal values.")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The element with this code; bits above the type's are dropped.
            #[must_use]
            pub const fn from_code(code: u8) -> Self {
                Self(code & SmallType::$name.mask())
            }

            /// The bits of the element.
            #[must_use]
            pub const fn code(self) -> u8 {
                self.0
            }

            /// The value, exactly.
            #[must_use]
            pub fn value(self) -> f64 {
                SmallType::$name.value(self.0)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.value() == other.value()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.value().partial_cmp(&other.value())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.value(), f)
            }
        }

        impl private::Sealed for $name {}

        impl Element for $name {
            const DTYPE: DataType = DataType::Small(SmallType::$name);
        }
    )*};
}

small_elements! {
    Float8E4M3Fn: "`FLOAT8E4M3FN`",
    Float8E4M3FnUz: "`FLOAT8E4M3FNUZ`",
    Float8E5M2: "`FLOAT8E5M2`",
    Float8E5M2FnUz: "`FLOAT8E5M2FNUZ`",
    Float8E8M0: "`FLOAT8E8M0`",
    Float4E2M1: "`FLOAT4E2M1`",
    Int4: "`INT4`",
    Uint4: "`UINT4`",
    Int2: "`INT2`",
    Uint2: "`UINT2`",
}
