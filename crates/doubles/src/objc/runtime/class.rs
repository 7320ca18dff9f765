//! Classes: their names, methods and variables, and how a message finds its method.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use objc2::runtime::AnyClass;

use super::method::{MethodCode, RuntimeMethod, RuntimeVariable};
use super::selector::{self, SelectorName};

/// A class or the class of one. It is never freed.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RuntimeClass {
    /// Class of this class.
    pub(super) meta: AtomicPtr<RuntimeClass>,
    pub(super) parent: AtomicPtr<RuntimeClass>,
    pub(crate) name: &'static CStr,
    /// True for the class of a class.
    pub(super) is_meta: bool,
    /// Bytes of an instance.
    pub(super) size: AtomicUsize,
    /// Instances that are alive.
    pub(super) live: AtomicIsize,
    /// Makes all its methods, once.
    make: fn() -> &'static AnyClass,
    /// True when all its methods are there.
    ready: AtomicBool,
    methods: Mutex<BTreeMap<usize, &'static RuntimeMethod>>,
    variables: Mutex<Vec<&'static RuntimeVariable>>,
}

/// Any object: its first word is its class.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ObjectHead {
    pub(super) class: AtomicPtr<RuntimeClass>,
}

/// Object that is part of the program: a text that a library has as a constant.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ConstantObject {
    class: AtomicPtr<RuntimeClass>,
    pub(crate) text: &'static CStr,
}

impl ConstantObject {
    pub(crate) const fn new(text: &'static CStr) -> Self {
        Self { class: AtomicPtr::new((&raw const CONSTANT).cast_mut()), text }
    }
}

#[allow(improper_ctypes, reason = "the class is one of this crate")]
unsafe extern "C" {
    /// Class of [`ConstantObject`]s.
    #[link_name = "._OBJC_CLASS_NSConstantString"]
    static CONSTANT: RuntimeClass;
}

// What is built on the runtime gives it its classes and what it raises.
unsafe extern "Rust" {
    safe fn galatea_double_classes() -> &'static [&'static RuntimeClass];
    safe fn galatea_double_raise(name: &str, reason: &str) -> !;
}

/// Classes that are ready, by name.
static CLASSES: Mutex<BTreeMap<&'static CStr, &'static RuntimeClass>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static HIDDEN: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Names of classes and methods that a thread does not find, as on an older macOS, until this is dropped.
#[derive(Debug)]
pub struct HiddenNames {
    before: Vec<&'static str>,
}

/// Hides classes and selectors of these names from this thread.
#[must_use]
pub fn hide(names: &[&'static str]) -> HiddenNames {
    HIDDEN.with(|hidden| {
        let before = hidden.borrow().clone();
        hidden.borrow_mut().extend(names);
        HiddenNames { before }
    })
}

impl Drop for HiddenNames {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.before);
        HIDDEN.with(|hidden| hidden.replace(before));
    }
}

fn is_hidden(name: &CStr) -> bool {
    HIDDEN.with(|hidden| hidden.borrow().iter().any(|one| one.as_bytes() == name.to_bytes()))
}

impl RuntimeClass {
    /// Makes a class without methods, whose double is made when it is first used.
    pub(crate) const fn unready(name: &'static CStr, make: fn() -> &'static AnyClass) -> Self {
        Self {
            meta: AtomicPtr::new(ptr::null_mut()),
            parent: AtomicPtr::new(ptr::null_mut()),
            name,
            is_meta: false,
            size: AtomicUsize::new(size_of::<ObjectHead>()),
            live: AtomicIsize::new(0),
            make,
            ready: AtomicBool::new(false),
            methods: Mutex::new(BTreeMap::new()),
            variables: Mutex::new(Vec::new()),
        }
    }

    /// Gives a class its own class and its parent.
    pub(super) fn begin(&'static self, parent: Option<&'static Self>) {
        let pointer = |class: &Self| ptr::from_ref(class).cast_mut();
        let parent = parent.map(Self::settled);
        let meta =
            Box::leak(Box::new(Self { is_meta: true, ..Self::unready(self.name, self.make) }));
        meta.ready.store(true, Ordering::Release);
        // Messages to a class that neither it nor its parents answer go to the methods of objects.
        let above = parent.map_or(self, Self::meta);
        meta.parent.store(pointer(above), Ordering::Release);
        let root = parent.map_or(pointer(meta), |parent| pointer(parent.meta().meta()));
        meta.meta.store(root, Ordering::Release);
        if let Some(parent) = parent {
            self.parent.store(pointer(parent), Ordering::Release);
            self.size.store(parent.size.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.meta.store(pointer(meta), Ordering::Release);
    }

    /// Makes the class known by its name.
    pub(super) fn register(&'static self) {
        self.ready.store(true, Ordering::Release);
        locked(&CLASSES).insert(self.name, self);
    }

    /// Returns the class when all its methods are there.
    pub(super) fn settled(&'static self) -> &'static Self {
        if !self.ready.load(Ordering::Acquire) {
            (self.make)();
        }
        self
    }

    /// Returns whether its objects are part of the program.
    pub(super) fn is_of_constants(&self) -> bool {
        ptr::eq(self, &raw const CONSTANT)
    }

    /// Class of the class, which is ready or has been begun.
    pub(super) fn meta(&self) -> &'static Self {
        // SAFETY: such a class has a class, which is never freed.
        unsafe { &*self.meta.load(Ordering::Acquire) }
    }

    pub(super) fn parent(&self) -> Option<&'static Self> {
        // SAFETY: the parent is a class or null; classes are never freed.
        unsafe { self.parent.load(Ordering::Acquire).as_ref() }
    }

    /// The class and its parents, the class first.
    pub(super) fn line(&'static self) -> impl Iterator<Item = &'static Self> {
        std::iter::successors(Some(self), |class| class.parent())
    }

    pub(super) fn add_method(&self, name: &CStr, code: MethodCode, types: &CStr) -> bool {
        let name = selector::interned(name);
        let method = RuntimeMethod { name, code, types: types.to_owned() };
        let mut methods = locked(&self.methods);
        let new = !methods.contains_key(&name.addr());
        if new {
            methods.insert(name.addr(), Box::leak(Box::new(method)));
        }
        new
    }

    /// Returns the method of instances, its own or a parent's.
    pub(super) fn method(&'static self, name: SelectorName) -> Option<&'static RuntimeMethod> {
        self.line().find_map(|class| locked(&class.methods).get(&name.addr()).copied())
    }

    /// Returns whether instances have the method, and the thread finds it.
    pub(super) fn responds(&'static self, name: SelectorName) -> bool {
        // SAFETY: whoever asks has the name from the table of selectors.
        self.method(name).is_some() && !is_hidden(unsafe { selector::text(name) })
    }

    pub(super) fn every() -> Vec<&'static Self> {
        locked(&CLASSES).values().copied().collect()
    }

    /// Returns a class that is ready or has a double.
    fn known(name: &CStr) -> Option<&'static Self> {
        galatea_double_classes().iter().find(|class| class.name == name).copied()
    }

    fn find(name: &CStr) -> Option<&'static Self> {
        let found = locked(&CLASSES).get(name).copied();
        found.or_else(|| Self::known(name)).map(Self::settled)
    }
}

/// Returns the class of an object.
///
/// # Safety
/// The object is alive.
pub(super) unsafe fn class_of(object: *const ObjectHead) -> &'static RuntimeClass {
    // SAFETY: the caller vouches for the object.
    let head = unsafe { &*object };
    // SAFETY: a class is never freed.
    match unsafe { head.class.load(Ordering::Acquire).as_ref() } {
        Some(class) => class.settled(),
        None => {
            let class: *const RuntimeClass = object.cast();
            // SAFETY: what has no class is a class that is not ready.
            unsafe { &*class }.settled().meta()
        }
    }
}

/// Returns what answers a message.
fn answer(object: *mut ObjectHead, class: &'static RuntimeClass, name: SelectorName) -> MethodCode {
    match class.method(name) {
        Some(method) => method.code,
        None => {
            // SAFETY: a message's name is a selector.
            let name = unsafe { selector::text(name) }.to_string_lossy();
            let sign = if class.is_meta { '+' } else { '-' };
            let class = class.name.to_string_lossy();
            let text = format!(
                "{sign}[{class} {name}]: unrecognized selector sent to instance {object:p}"
            );
            galatea_double_raise("NSInvalidArgumentException", &text)
        }
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn objc_msg_lookup(
    object: *mut ObjectHead,
    name: SelectorName,
) -> MethodCode {
    // SAFETY: messages are sent to objects that are alive.
    answer(object, unsafe { class_of(object) }, name)
}

/// Receiver of a message that the parent's method answers.
#[repr(C)]
struct SuperReceiver {
    object: *mut ObjectHead,
    parent: *const RuntimeClass,
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc_msg_lookup_super(
    to: *const SuperReceiver,
    name: SelectorName,
) -> MethodCode {
    // SAFETY: the receiver is there while the message is sent.
    let to = unsafe { &*to };
    // SAFETY: classes are never freed.
    answer(to.object, unsafe { &*to.parent }, name)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn objc_getClass(name: *const c_char) -> *const RuntimeClass {
    // SAFETY: the name is terminated, as the function asks.
    let name = unsafe { CStr::from_ptr(name) };
    let found = if is_hidden(name) { None } else { RuntimeClass::find(name) };
    found.map_or(ptr::null(), ptr::from_ref)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn objc_lookUpClass(name: *const c_char) -> *const RuntimeClass {
    // SAFETY: as for the other function.
    unsafe { objc_getClass(name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn objc_allocateClassPair(
    parent: *const RuntimeClass,
    name: *const c_char,
    _extra: usize,
) -> *const RuntimeClass {
    // SAFETY: the name is terminated, as the function asks.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(class) = RuntimeClass::known(name) else { return ptr::null() };
    // SAFETY: the parent is a class or null; classes are never freed.
    class.begin(unsafe { parent.as_ref() });
    class
}

#[unsafe(no_mangle)]
unsafe extern "C" fn objc_registerClassPair(class: *const RuntimeClass) {
    // SAFETY: classes are never freed.
    unsafe { &*class }.register();
}

/// Never called: every class that is begun is registered.
#[unsafe(no_mangle)]
extern "C" fn objc_disposeClassPair(_class: *const RuntimeClass) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_addMethod(
    class: *const RuntimeClass,
    name: SelectorName,
    code: MethodCode,
    types: *const c_char,
) -> u8 {
    // SAFETY: the name is a selector.
    let name = unsafe { selector::text(name) };
    // SAFETY: the text is terminated, as the function asks.
    let types = unsafe { CStr::from_ptr(types) };
    // SAFETY: classes are never freed.
    u8::from(unsafe { &*class }.add_method(name, code, types))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_addIvar(
    class: *const RuntimeClass,
    name: *const c_char,
    size: usize,
    alignment: u8,
    types: *const c_char,
) -> u8 {
    // SAFETY: classes are never freed.
    let class = unsafe { &*class };
    // SAFETY: the name is terminated, as the function asks.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    // SAFETY: so is the text.
    let types = unsafe { CStr::from_ptr(types) }.to_owned();
    let start = class.size.load(Ordering::Relaxed).next_multiple_of(1 << alignment);
    class.size.store(start + size, Ordering::Relaxed);
    let offset = isize::try_from(start).unwrap_or(isize::MAX);
    locked(&class.variables).push(Box::leak(Box::new(RuntimeVariable { name, offset, types })));
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_getInstanceVariable(
    class: *const RuntimeClass,
    name: *const c_char,
) -> *const RuntimeVariable {
    // SAFETY: classes are never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    // SAFETY: the name is terminated, as the function asks.
    let name = unsafe { CStr::from_ptr(name) };
    let found = class.line().find_map(|class| {
        locked(&class.variables).iter().find(|variable| *variable.name == *name).copied()
    });
    found.map_or(ptr::null(), ptr::from_ref)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn class_getInstanceMethod(
    class: *const RuntimeClass,
    name: SelectorName,
) -> *const RuntimeMethod {
    // SAFETY: classes are never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    class.settled().method(name).map_or(ptr::null(), ptr::from_ref)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn class_getClassMethod(
    class: *const RuntimeClass,
    name: SelectorName,
) -> *const RuntimeMethod {
    // SAFETY: classes are never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    class.settled().meta().method(name).map_or(ptr::null(), ptr::from_ref)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn class_respondsToSelector(
    class: *const RuntimeClass,
    name: SelectorName,
) -> u8 {
    // SAFETY: classes are never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    u8::from(class.settled().responds(name))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_getName(class: *const RuntimeClass) -> *const c_char {
    // SAFETY: classes are never freed.
    unsafe { &*class }.name.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_getSuperclass(class: *const RuntimeClass) -> *const RuntimeClass {
    // SAFETY: classes are never freed.
    unsafe { &*class }.parent().map_or(ptr::null(), ptr::from_ref)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_getInstanceSize(class: *const RuntimeClass) -> usize {
    // SAFETY: classes are never freed.
    let class: &'static RuntimeClass = unsafe { &*class };
    class.settled().size.load(Ordering::Relaxed)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn class_isMetaClass(class: *const RuntimeClass) -> u8 {
    // SAFETY: classes are never freed.
    u8::from(unsafe { &*class }.is_meta)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn object_getClass(object: *const ObjectHead) -> *const RuntimeClass {
    if object.is_null() {
        return ptr::null();
    }
    // SAFETY: what is asked for its class is alive.
    unsafe { class_of(object) }
}

/// Layout of variables for garbage collection, of which there is none.
#[unsafe(no_mangle)]
extern "C" fn class_getIvarLayout(_class: *const RuntimeClass) -> *const c_void {
    ptr::null()
}
