//! `NSObject`.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Once;

use objc2::runtime::AnyClass;

use super::class::{ObjectHead, RuntimeClass, class_of, objc_msg_lookup};
use super::method::MethodCode;
use super::object::{free, make, release, retain};
use super::selector::SelectorName;

/// Root of all classes.
#[unsafe(export_name = "._OBJC_CLASS_NSObject")]
static ROOT: RuntimeClass = RuntimeClass::unready(c"NSObject", register);

/// Returns the class.
pub(crate) const fn class_object() -> &'static RuntimeClass {
    &ROOT
}

/// Makes the class ready.
fn register() -> &'static AnyClass {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        ROOT.begin(None);
        for method in METHODS {
            ROOT.add_method(method.name, method.code(), method.types);
        }
        for method in CLASS_METHODS {
            ROOT.meta().add_method(method.name, method.code(), method.types);
        }
        ROOT.register();
    });
    let class: *const RuntimeClass = &raw const ROOT;
    // SAFETY: a class of the bindings is the address of one of this runtime.
    unsafe { &*class.cast() }
}

/// Row of a table of methods.
struct RootMethod {
    name: &'static CStr,
    types: &'static CStr,
    code: *const (),
}

// SAFETY: a row is constant.
unsafe impl Sync for RootMethod {}

impl RootMethod {
    fn code(&self) -> MethodCode {
        // SAFETY: every row has a function, and callers go by its types.
        unsafe { std::mem::transmute::<*const (), MethodCode>(self.code) }
    }
}

const fn row(name: &'static CStr, types: &'static CStr, code: *const ()) -> RootMethod {
    RootMethod { name, types, code }
}

static METHODS: &[RootMethod] = &[
    row(c"init", c"@@:", itself as *const ()),
    row(c"self", c"@@:", itself as *const ()),
    row(c"dealloc", c"v@:", dealloc as *const ()),
    row(c"class", c"#@:", class as *const ()),
    row(c"retain", c"@@:", retained as *const ()),
    row(c"release", c"v@:", released as *const ()),
    row(c"hash", c"Q@:", hash as *const ()),
    row(c"copy", c"@@:", copy as *const ()),
    row(c"isEqual:", c"C@:@", is_equal as *const ()),
    row(c"isKindOfClass:", c"C@:#", is_kind_of as *const ()),
    row(c"respondsToSelector:", c"C@::", responds as *const ()),
];

static CLASS_METHODS: &[RootMethod] = &[
    row(c"alloc", c"@@:", alloc as *const ()),
    row(c"new", c"@@:", new as *const ()),
    row(c"class", c"#@:", itself as *const ()),
];

extern "C-unwind" fn itself(object: *mut ObjectHead, _: SelectorName) -> *mut ObjectHead {
    object
}

unsafe extern "C-unwind" fn dealloc(object: *mut ObjectHead, _: SelectorName) {
    // SAFETY: it is sent when the last owner has gone.
    unsafe { free(object) };
}

unsafe extern "C-unwind" fn class(object: *mut ObjectHead, _: SelectorName) -> *const RuntimeClass {
    // SAFETY: messages are sent to objects that are alive.
    unsafe { class_of(object) }
}

unsafe extern "C-unwind" fn retained(object: *mut ObjectHead, _: SelectorName) -> *mut ObjectHead {
    // SAFETY: messages are sent to objects that are alive.
    unsafe { retain(object) };
    object
}

unsafe extern "C-unwind" fn released(object: *mut ObjectHead, _: SelectorName) {
    // SAFETY: the sender is one of its owners.
    unsafe { release(object) };
}

unsafe extern "C-unwind" fn copy(object: *mut ObjectHead, _: SelectorName) -> *mut ObjectHead {
    let name = super::selector::interned(c"copyWithZone:");
    // SAFETY: messages are sent to objects that are alive.
    let code = unsafe { objc_msg_lookup(object, name) };
    type Copy = unsafe extern "C-unwind" fn(
        *mut ObjectHead,
        SelectorName,
        *const c_void,
    ) -> *mut ObjectHead;
    // SAFETY: the method has this type in every class.
    let copy = unsafe { std::mem::transmute::<MethodCode, Copy>(code) };
    // SAFETY: the object is alive, and a null zone is the usual one.
    unsafe { copy(object, name, ptr::null()) }
}

extern "C-unwind" fn hash(object: *mut ObjectHead, _: SelectorName) -> usize {
    object.addr()
}

extern "C-unwind" fn is_equal(
    object: *mut ObjectHead,
    _: SelectorName,
    other: *mut ObjectHead,
) -> u8 {
    u8::from(ptr::eq(object, other))
}

unsafe extern "C-unwind" fn is_kind_of(
    object: *mut ObjectHead,
    _: SelectorName,
    class: *const RuntimeClass,
) -> u8 {
    // SAFETY: messages are sent to objects that are alive.
    let mut line = unsafe { class_of(object) }.line();
    u8::from(line.any(|one| ptr::eq(one, class)))
}

unsafe extern "C-unwind" fn responds(
    object: *mut ObjectHead,
    _: SelectorName,
    name: SelectorName,
) -> u8 {
    // SAFETY: messages are sent to objects that are alive.
    u8::from(unsafe { class_of(object) }.responds(name))
}

unsafe extern "C-unwind" fn alloc(class: *mut ObjectHead, _: SelectorName) -> *mut ObjectHead {
    let class: *const RuntimeClass = class.cast();
    // SAFETY: the receiver is a class, which is never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    make(class.settled())
}

unsafe extern "C-unwind" fn new(class: *mut ObjectHead, name: SelectorName) -> *mut ObjectHead {
    // SAFETY: as for `alloc`.
    let object = unsafe { alloc(class, name) };
    let name = super::selector::interned(c"init");
    // SAFETY: the object is alive.
    let method = unsafe { class_of(object) }.method(name);
    type Init = unsafe extern "C-unwind" fn(*mut ObjectHead, SelectorName) -> *mut ObjectHead;
    match method {
        Some(method) => {
            // SAFETY: `init` has this type in every class.
            let init = unsafe { std::mem::transmute::<MethodCode, Init>(method.code) };
            // SAFETY: the object is alive, and its owner is handed over.
            unsafe { init(object, name) }
        }
        None => object,
    }
}
