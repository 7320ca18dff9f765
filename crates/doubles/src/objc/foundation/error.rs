//! `NSError` and `NSException`.

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{AnyThread, DefinedClass, define_class, msg_send};
use objc2_foundation::{NSArray, NSError, NSException, NSString};

/// Contents of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorContents {
    /// Name of whose code it is.
    pub domain: String,
    /// Its number.
    pub code: isize,
    /// Description for people.
    pub description: String,
    /// Reason, where there is one.
    pub reason: Option<String>,
    /// Errors that led to it.
    pub underlying: Vec<ErrorContents>,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSError"]
    #[ivars = ErrorContents]
    pub(crate) struct ErrorDouble;

    unsafe impl NSObjectProtocol for ErrorDouble {}

    impl ErrorDouble {
        // The bindings make the error of a call that gives neither result nor error.
        #[unsafe(method_id(errorWithDomain:code:userInfo:))]
        fn with_domain(
            domain: &NSString,
            code: isize,
            _information: Option<&NSObject>,
        ) -> Retained<NSError> {
            let domain = domain.to_string();
            error(&ErrorContents { domain, code, ..ErrorContents::default() })
        }

        #[unsafe(method_id(domain))]
        fn domain(&self) -> Retained<NSString> {
            NSString::from_str(&self.ivars().domain)
        }

        #[unsafe(method(code))]
        fn code(&self) -> isize {
            self.ivars().code
        }

        #[unsafe(method_id(localizedDescription))]
        fn description(&self) -> Retained<NSString> {
            NSString::from_str(&self.ivars().description)
        }

        #[unsafe(method_id(localizedFailureReason))]
        fn reason(&self) -> Option<Retained<NSString>> {
            self.ivars().reason.as_deref().map(NSString::from_str)
        }

        #[unsafe(method_id(underlyingErrors))]
        fn underlying(&self) -> Retained<NSArray<NSError>> {
            let errors: Vec<_> = self.ivars().underlying.iter().map(error).collect();
            NSArray::from_retained_slice(&errors)
        }
    }
);

/// Makes an error.
pub(crate) fn error(contents: &ErrorContents) -> Retained<NSError> {
    let this = ErrorDouble::alloc().set_ivars(contents.clone());
    // SAFETY: the parent's method takes nothing.
    let made: Retained<ErrorDouble> = unsafe { msg_send![super(this), init] };
    // SAFETY: this is the class of that name.
    unsafe { Retained::cast_unchecked(made) }
}

/// Leaves an error to a caller who has a place for it.
///
/// # Safety
/// The place is there to be written, or null.
pub(crate) unsafe fn failed(contents: &ErrorContents, place: *mut *mut NSError) {
    let error = Retained::autorelease_ptr(error(contents));
    if !place.is_null() {
        // SAFETY: the caller vouches for the place.
        unsafe { place.write(error) };
    }
}

/// Contents of an exception.
pub(crate) struct ExceptionContents {
    name: String,
    reason: String,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSException"]
    #[ivars = ExceptionContents]
    pub(crate) struct ExceptionDouble;

    unsafe impl NSObjectProtocol for ExceptionDouble {}

    impl ExceptionDouble {
        #[unsafe(method_id(name))]
        fn name(&self) -> Retained<NSString> {
            NSString::from_str(&self.ivars().name)
        }

        #[unsafe(method_id(reason))]
        fn reason(&self) -> Option<Retained<NSString>> {
            Some(NSString::from_str(&self.ivars().reason))
        }
    }
);

/// Makes an exception, which is not yet raised.
pub(crate) fn exception(name: &str, reason: &str) -> Retained<NSException> {
    let contents = ExceptionContents { name: name.to_owned(), reason: reason.to_owned() };
    let this = ExceptionDouble::alloc().set_ivars(contents);
    // SAFETY: the parent's method takes nothing.
    let made: Retained<ExceptionDouble> = unsafe { msg_send![super(this), init] };
    // SAFETY: this is the class of that name.
    unsafe { Retained::cast_unchecked(made) }
}

/// Raises an exception.
pub fn raise(name: &str, reason: &str) -> ! {
    let exception: *const NSException = Retained::autorelease_ptr(exception(name, reason));
    // SAFETY: the pool keeps it alive until it has an owner.
    unsafe { objc2::ffi::objc_exception_throw(exception.cast_mut().cast()) }
}

/// Raises an exception of the runtime's own.
#[unsafe(no_mangle)]
fn galatea_double_raise(name: &str, reason: &str) -> ! {
    raise(name, reason)
}
