//! `NSURL`, for files and folders alone.

use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class, msg_send};
use objc2_foundation::NSURL;

/// Place of a file.
pub(crate) struct UrlContents {
    path: CString,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSURL"]
    #[ivars = UrlContents]
    pub(crate) struct UrlDouble;

    unsafe impl NSObjectProtocol for UrlDouble {}

    impl UrlDouble {
        #[unsafe(method_id(initFileURLWithFileSystemRepresentation:isDirectory:relativeToURL:))]
        fn init_with_path(
            this: Allocated<Self>,
            path: NonNull<c_char>,
            _directory: bool,
            base: Option<&NSURL>,
        ) -> Retained<Self> {
            assert!(base.is_none(), "a place is absolute");
            // SAFETY: the caller's text is terminated.
            let path = unsafe { CStr::from_ptr(path.as_ptr()) }.to_owned();
            let this = this.set_ivars(UrlContents { path });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method(getFileSystemRepresentation:maxLength:))]
        fn path(&self, place: NonNull<c_char>, room: usize) -> bool {
            let bytes = self.ivars().path.to_bytes_with_nul();
            let fits = bytes.len() <= room;
            if fits {
                let place = place.as_ptr().cast::<u8>();
                // SAFETY: the caller has so much room.
                unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            }
            fits
        }
    }
);
