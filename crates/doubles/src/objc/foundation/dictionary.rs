//! `NSDictionary`.

use std::ptr::NonNull;

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class, msg_send};

/// Key and value.
struct DictionaryEntry {
    key: Retained<AnyObject>,
    value: Retained<AnyObject>,
}

/// Contents of a dictionary, which are few.
pub(crate) struct DictionaryContents {
    entries: Vec<DictionaryEntry>,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSDictionary"]
    #[ivars = DictionaryContents]
    pub(crate) struct DictionaryDouble;

    unsafe impl NSObjectProtocol for DictionaryDouble {}

    impl DictionaryDouble {
        #[unsafe(method_id(init))]
        fn init(this: Allocated<Self>) -> Retained<Self> {
            let this = this.set_ivars(DictionaryContents { entries: Vec::new() });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method_id(initWithObjects:forKeys:count:))]
        fn init_with_objects(
            this: Allocated<Self>,
            objects: *mut NonNull<AnyObject>,
            keys: *mut NonNull<AnyObject>,
            count: usize,
        ) -> Retained<Self> {
            let mut entries: Vec<DictionaryEntry> = Vec::with_capacity(count);
            for index in 0..count {
                // SAFETY: the caller has so many values.
                let value = unsafe { objects.add(index).read() };
                // SAFETY: and as many keys.
                let key = unsafe { keys.add(index).read() };
                // SAFETY: the value is alive.
                let value = unsafe { Retained::retain(value.as_ptr()) };
                // SAFETY: a key is alive, and can be copied.
                let key: Retained<AnyObject> = unsafe { msg_send![key.as_ref(), copy] };
                if let Some(value) = value {
                    entries.push(DictionaryEntry { key, value });
                }
            }
            let this = this.set_ivars(DictionaryContents { entries });
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this), init] }
        }

        #[unsafe(method(count))]
        fn count(&self) -> usize {
            self.ivars().entries.len()
        }

        #[unsafe(method_id(objectForKey:))]
        fn object_for_key(&self, key: &AnyObject) -> Option<Retained<AnyObject>> {
            let is = |entry: &&DictionaryEntry| {
                // SAFETY: every object compares itself with another.
                unsafe { msg_send![&*entry.key, isEqual: key] }
            };
            self.ivars().entries.iter().find(is).map(|entry| entry.value.clone())
        }

        #[unsafe(method(getObjects:andKeys:))]
        fn get_objects(&self, values: *mut NonNull<AnyObject>, keys: *mut NonNull<AnyObject>) {
            for (index, entry) in self.ivars().entries.iter().enumerate() {
                // SAFETY: the caller has room for all values.
                unsafe { values.add(index).write(NonNull::from(&*entry.value)) };
                // SAFETY: and for all keys.
                unsafe { keys.add(index).write(NonNull::from(&*entry.key)) };
            }
        }
    }
);
