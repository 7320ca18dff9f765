//! `NSString`.

use std::ffi::{CStr, CString, c_char, c_void};

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol, NSZone};
use objc2::{AnyThread, DefinedClass, Message, define_class, msg_send};
use objc2_foundation::{NSCopying, NSString};

use crate::objc::runtime::ConstantObject;

/// `NSUTF8StringEncoding`.
const UTF8: i32 = 4;

/// Contents of a text.
pub(crate) struct StringContents {
    text: CString,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSString"]
    #[ivars = StringContents]
    pub(crate) struct StringDouble;

    unsafe impl NSObjectProtocol for StringDouble {}

    unsafe impl NSCopying for StringDouble {
        #[unsafe(method_id(copyWithZone:))]
        fn copy(&self, _zone: *const NSZone) -> Retained<Self> {
            self.retain()
        }
    }

    impl StringDouble {
        #[unsafe(method_id(initWithBytes:length:encoding:))]
        fn init_with_bytes(
            this: Allocated<Self>,
            bytes: *const c_void,
            length: usize,
            encoding: i32,
        ) -> Retained<Self> {
            assert_eq!(encoding, UTF8, "texts are UTF-8");
            // SAFETY: the caller has so many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
            // A text with a zero inside is of no use here.
            let text = CString::new(bytes).ok().filter(|_| std::str::from_utf8(bytes).is_ok());
            let text = text.unwrap_or_else(|| panic!("a text is not UTF-8 without zeros"));
            let this = this.set_ivars(StringContents { text });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method_id(stringWithUTF8String:))]
        fn with_utf8(text: *const c_char) -> Retained<Self> {
            // SAFETY: the caller's text is terminated.
            let text = unsafe { CStr::from_ptr(text) }.to_owned();
            let this = Self::alloc().set_ivars(StringContents { text });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method(UTF8String))]
        fn utf8(&self) -> *const c_char {
            self.ivars().text.as_ptr()
        }

        #[unsafe(method(lengthOfBytesUsingEncoding:))]
        fn length_of_bytes(&self, _encoding: i32) -> usize {
            self.ivars().text.as_bytes().len()
        }

        #[unsafe(method(isEqual:))]
        fn is_equal(&self, other: Option<&AnyObject>) -> bool {
            same(&self.ivars().text.to_string_lossy(), other)
        }

        #[unsafe(method(isEqualToString:))]
        fn is_equal_to_string(&self, other: Option<&NSString>) -> bool {
            other.is_some_and(|other| other.to_string() == self.ivars().text.to_string_lossy())
        }
    }
);

define_class!(
    /// Class of texts that are part of a program.
    // SAFETY: every method that reads the parent's contents is replaced.
    #[unsafe(super(StringDouble, NSObject))]
    #[name = "NSConstantString"]
    pub(crate) struct ConstantStringDouble;

    impl ConstantStringDouble {
        #[unsafe(method(UTF8String))]
        fn utf8(&self) -> *const c_char {
            self.contents().text.as_ptr()
        }

        #[unsafe(method(lengthOfBytesUsingEncoding:))]
        fn length_of_bytes(&self, _encoding: i32) -> usize {
            self.contents().text.to_bytes().len()
        }

        #[unsafe(method(isEqual:))]
        fn is_equal(&self, other: Option<&AnyObject>) -> bool {
            same(&self.contents().text.to_string_lossy(), other)
        }

        #[unsafe(method(isEqualToString:))]
        fn is_equal_to_string(&self, other: Option<&NSString>) -> bool {
            let text = self.contents().text.to_string_lossy();
            other.is_some_and(|other| other.to_string() == text)
        }
    }
);

impl ConstantStringDouble {
    fn contents(&self) -> &ConstantObject {
        let this: *const Self = self;
        // SAFETY: all objects of this class are such constants.
        unsafe { &*this.cast() }
    }
}

fn same(text: &str, other: Option<&AnyObject>) -> bool {
    let other = other.and_then(|other| other.downcast_ref::<NSString>());
    other.is_some_and(|other| other.to_string() == text)
}

/// Defines constants of libraries: a symbol, which is the address of a text.
macro_rules! constant {
    ($($name:ident = $text:literal;)*) => {
        $(
            #[unsafe(no_mangle)]
            static $name: &crate::objc::runtime::ConstantObject = {
                static TEXT: crate::objc::runtime::ConstantObject =
                    crate::objc::runtime::ConstantObject::new($text);
                &TEXT
            };
        )*
    };
}
pub(crate) use constant;
