//! `NSArray`.

use std::ffi::c_ulong;
use std::ptr::NonNull;

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class, msg_send};
use objc2_foundation::NSFastEnumerationState;

use super::error::raise;

/// Contents of an array. The addresses of its objects lie side by side, as enumeration asks.
pub(crate) struct ListContents {
    objects: Vec<Retained<AnyObject>>,
    /// Never changes, and enumeration looks whether it does.
    changes: c_ulong,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSArray"]
    #[ivars = ListContents]
    pub(crate) struct ArrayDouble;

    unsafe impl NSObjectProtocol for ArrayDouble {}

    impl ArrayDouble {
        #[unsafe(method_id(init))]
        fn init(this: Allocated<Self>) -> Retained<Self> {
            let this = this.set_ivars(ListContents { objects: Vec::new(), changes: 0 });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method_id(initWithObjects:count:))]
        fn init_with_objects(
            this: Allocated<Self>,
            objects: *mut NonNull<AnyObject>,
            count: usize,
        ) -> Retained<Self> {
            let retained = |index| {
                // SAFETY: the caller has so many objects.
                let object = unsafe { objects.add(index).read() };
                // SAFETY: they are alive.
                unsafe { Retained::retain(object.as_ptr()) }
            };
            let objects = (0..count).filter_map(retained).collect();
            let this = this.set_ivars(ListContents { objects, changes: 0 });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method(count))]
        fn count(&self) -> usize {
            self.ivars().objects.len()
        }

        #[unsafe(method_id(objectAtIndex:))]
        fn object_at(&self, index: usize) -> Retained<AnyObject> {
            match self.ivars().objects.get(index) {
                Some(object) => object.clone(),
                None => {
                    let count = self.ivars().objects.len();
                    let text = format!("index {index} beyond bounds of {count} objects");
                    raise("NSRangeException", &text)
                }
            }
        }

        #[unsafe(method(getObjects:))]
        fn get_objects(&self, place: *mut NonNull<AnyObject>) {
            for (index, object) in self.ivars().objects.iter().enumerate() {
                // SAFETY: the caller has room for all objects.
                unsafe { place.add(index).write(NonNull::from(&**object)) };
            }
        }

        #[unsafe(method(countByEnumeratingWithState:objects:count:))]
        fn enumerate(
            &self,
            state: NonNull<NSFastEnumerationState>,
            _room: NonNull<*mut AnyObject>,
            _count: usize,
        ) -> usize {
            let contents = self.ivars();
            // SAFETY: the caller has the state for as long as it enumerates.
            let state = unsafe { &mut *state.as_ptr() };
            if state.state != 0 {
                return 0;
            }
            state.state = 1;
            state.itemsPtr = contents.objects.as_ptr().cast_mut().cast();
            state.mutationsPtr = (&raw const contents.changes).cast_mut();
            contents.objects.len()
        }
    }
);
