//! Macros that run an expression with the Rust type of an element type.

/// Runs an expression with a type alias bound to the Rust element type of a [`DataType`].
///
/// ```
/// use galatea_tensor::{DataType, Element, with_element};
/// let size = with_element!(DataType::Fp32, T => std::mem::size_of::<T>());
/// assert_eq!(size, 4);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DataType::Bool => { type $T = bool; $body }
            $crate::DataType::Bytes => { type $T = $crate::ByteString; $body }
            $crate::DataType::Small(small) => $crate::with_small!(small, $T => $body),
            other => $crate::with_number!(other, $T => $body, else { unreachable!("not a number") }),
        }
    };
}

/// Like [`with_element!`], with the element type of [`crate::DataType::carrier`].
///
/// Code that only moves elements needs one instance for each width in place of one for each type.
///
/// ```
/// use galatea_tensor::{DataType, Element, with_carrier};
/// let carrier = with_carrier!(DataType::Fp32, T => T::DTYPE);
/// assert_eq!(carrier, DataType::Uint32);
/// ```
#[macro_export]
macro_rules! with_carrier {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $crate::DataType::carrier($dtype) {
            $crate::DataType::Uint8 => {
                type $T = u8;
                $body
            }
            $crate::DataType::Uint16 => {
                type $T = u16;
                $body
            }
            $crate::DataType::Uint32 => {
                type $T = u32;
                $body
            }
            $crate::DataType::Uint64 => {
                type $T = u64;
                $body
            }
            $crate::DataType::Bytes => {
                type $T = $crate::ByteString;
                $body
            }
            _ => unreachable!("no carrier"),
        }
    };
}

/// Like [`with_element!`] for a [`crate::SmallType`].
#[macro_export]
macro_rules! with_small {
    ($small:expr, $T:ident => $body:expr) => {
        match $small {
            $crate::SmallType::Float8E4M3Fn => {
                type $T = $crate::Float8E4M3Fn;
                $body
            }
            $crate::SmallType::Float8E4M3FnUz => {
                type $T = $crate::Float8E4M3FnUz;
                $body
            }
            $crate::SmallType::Float8E5M2 => {
                type $T = $crate::Float8E5M2;
                $body
            }
            $crate::SmallType::Float8E5M2FnUz => {
                type $T = $crate::Float8E5M2FnUz;
                $body
            }
            $crate::SmallType::Float8E8M0 => {
                type $T = $crate::Float8E8M0;
                $body
            }
            $crate::SmallType::Float4E2M1 => {
                type $T = $crate::Float4E2M1;
                $body
            }
            $crate::SmallType::Int4 => {
                type $T = $crate::Int4;
                $body
            }
            $crate::SmallType::Uint4 => {
                type $T = $crate::Uint4;
                $body
            }
            $crate::SmallType::Int2 => {
                type $T = $crate::Int2;
                $body
            }
            $crate::SmallType::Uint2 => {
                type $T = $crate::Uint2;
                $body
            }
        }
    };
}

/// Like [`with_element!`] for the numeric types only (every integer and float of the wire); the
/// `else` block answers for `BOOL`, `BYTES` and the small types.
#[macro_export]
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:block) => {
        match $dtype {
            $crate::DataType::Uint8 => {
                type $T = u8;
                $body
            }
            $crate::DataType::Uint16 => {
                type $T = u16;
                $body
            }
            $crate::DataType::Uint32 => {
                type $T = u32;
                $body
            }
            $crate::DataType::Uint64 => {
                type $T = u64;
                $body
            }
            $crate::DataType::Int8 => {
                type $T = i8;
                $body
            }
            $crate::DataType::Int16 => {
                type $T = i16;
                $body
            }
            $crate::DataType::Int32 => {
                type $T = i32;
                $body
            }
            $crate::DataType::Int64 => {
                type $T = i64;
                $body
            }
            $crate::DataType::Fp16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DataType::Fp32 => {
                type $T = f32;
                $body
            }
            $crate::DataType::Fp64 => {
                type $T = f64;
                $body
            }
            $crate::DataType::Bf16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DataType::Bool | $crate::DataType::Bytes | $crate::DataType::Small(_) => $other,
        }
    };
}

/// Like [`with_element!`] for the floating-point types only; the `else` block answers for all
/// others.
#[macro_export]
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr, else $other:block) => {
        match $dtype {
            $crate::DataType::Fp16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DataType::Fp32 => {
                type $T = f32;
                $body
            }
            $crate::DataType::Fp64 => {
                type $T = f64;
                $body
            }
            $crate::DataType::Bf16 => {
                type $T = $crate::bf16;
                $body
            }
            _ => $other,
        }
    };
}
