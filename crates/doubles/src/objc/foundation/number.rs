//! `NSValue` and `NSNumber`.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use objc2::encode::Encode;
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol, NSZone};
use objc2::{AnyThread, DefinedClass, Message, define_class, msg_send};
use objc2_foundation::{NSCopying, NSRange};

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSValue"]
    #[ivars = NSRange]
    pub(crate) struct ValueDouble;

    unsafe impl NSObjectProtocol for ValueDouble {}

    impl ValueDouble {
        #[unsafe(method_id(valueWithRange:))]
        fn with_range(range: NSRange) -> Retained<Self> {
            let this = Self::alloc().set_ivars(range);
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method(objCType))]
        fn encoding(&self) -> *const c_char {
            static ENCODING: OnceLock<CString> = OnceLock::new();
            let text = || CString::new(NSRange::ENCODING.to_string()).unwrap_or_default();
            ENCODING.get_or_init(text).as_ptr()
        }

        #[unsafe(method(rangeValue))]
        fn range(&self) -> NSRange {
            *self.ivars()
        }
    }
);

/// A number as it was given.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum NumberContents {
    Whole(i64),
    Real(f64),
}

define_class!(
    /// Numbers, which are no values here: nobody asks them for what values have.
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSNumber"]
    #[ivars = NumberContents]
    pub(crate) struct NumberDouble;

    unsafe impl NSObjectProtocol for NumberDouble {}

    unsafe impl NSCopying for NumberDouble {
        #[unsafe(method_id(copyWithZone:))]
        fn copy(&self, _zone: *const NSZone) -> Retained<Self> {
            self.retain()
        }
    }

    impl NumberDouble {
        #[unsafe(method_id(numberWithUnsignedInteger:))]
        fn with_unsigned(number: usize) -> Retained<Self> {
            // The bits are kept, as those of Foundation are.
            Self::of(NumberContents::Whole(number.cast_signed() as i64))
        }

        #[unsafe(method_id(numberWithInteger:))]
        fn with_integer(number: isize) -> Retained<Self> {
            Self::of(NumberContents::Whole(number as i64))
        }

        #[unsafe(method_id(numberWithLongLong:))]
        fn with_long(number: i64) -> Retained<Self> {
            Self::of(NumberContents::Whole(number))
        }

        #[unsafe(method_id(numberWithDouble:))]
        fn with_double(number: f64) -> Retained<Self> {
            Self::of(NumberContents::Real(number))
        }

        #[unsafe(method(integerValue))]
        fn integer(&self) -> isize {
            isize::try_from(self.whole()).unwrap_or(isize::MAX)
        }

        #[unsafe(method(longLongValue))]
        fn long(&self) -> i64 {
            self.whole()
        }

        #[unsafe(method(doubleValue))]
        fn double(&self) -> f64 {
            match *self.ivars() {
                NumberContents::Whole(number) => number as f64,
                NumberContents::Real(number) => number,
            }
        }

        #[unsafe(method(isEqual:))]
        fn is_equal(&self, other: Option<&AnyObject>) -> bool {
            let other = other.and_then(|other| other.downcast_ref::<Self>());
            other.is_some_and(|other| other.ivars() == self.ivars())
        }
    }
);

impl NumberDouble {
    fn of(contents: NumberContents) -> Retained<Self> {
        let this = Self::alloc().set_ivars(contents);
        // SAFETY: the parent's method takes nothing.
        unsafe { msg_send![super(this), init] }
    }

    fn whole(&self) -> i64 {
        match *self.ivars() {
            NumberContents::Whole(number) => number,
            // Nobody asks a fraction for an integer here.
            NumberContents::Real(_) => 0,
        }
    }
}
