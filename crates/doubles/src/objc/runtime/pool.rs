//! Autorelease pools.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr;

use super::class::ObjectHead;
use super::object::{release, retain};

/// Objects of a thread that are released with its pools. Those outside of pools are released when it ends.
struct ThreadPools {
    objects: RefCell<Vec<*mut ObjectHead>>,
    /// Object that a method returns to a caller who takes it at once.
    handed: Cell<*mut ObjectHead>,
}

impl ThreadPools {
    /// Releases what came after `from`.
    fn drain(&self, from: usize) {
        self.settle();
        loop {
            let object = {
                let mut objects = self.objects.borrow_mut();
                if objects.len() <= from { None } else { objects.pop() }
            };
            let Some(object) = object else { return };
            // SAFETY: the pool is one of its owners.
            unsafe { release(object) };
        }
    }

    /// Leaves an object to the innermost pool which nobody took at once.
    fn settle(&self) {
        let object = self.handed.replace(ptr::null_mut());
        if !object.is_null() {
            self.objects.borrow_mut().push(object);
        }
    }

    fn add(&self, object: *mut ObjectHead) {
        self.settle();
        self.objects.borrow_mut().push(object);
    }
}

impl Drop for ThreadPools {
    fn drop(&mut self) {
        self.drain(0);
    }
}

thread_local! {
    static POOLS: ThreadPools = const {
        ThreadPools { objects: RefCell::new(Vec::new()), handed: Cell::new(ptr::null_mut()) }
    };
}

#[unsafe(no_mangle)]
extern "C-unwind" fn objc_autoreleasePoolPush() -> *mut c_void {
    // The pool is the number of objects before it.
    let before = POOLS.try_with(|pools| {
        pools.settle();
        pools.objects.borrow().len()
    });
    ptr::without_provenance_mut(before.unwrap_or(0))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn objc_autoreleasePoolPop(pool: *mut c_void) {
    // A thread that ends has drained its pools.
    let _ = POOLS.try_with(|pools| pools.drain(pool.addr()));
}

#[unsafe(no_mangle)]
extern "C-unwind" fn objc_autorelease(object: *mut ObjectHead) -> *mut ObjectHead {
    if !object.is_null() {
        // What a thread leaves at its end is leaked, and counted as alive.
        let _ = POOLS.try_with(|pools| pools.add(object));
    }
    object
}

#[unsafe(no_mangle)]
extern "C-unwind" fn objc_autoreleaseReturnValue(object: *mut ObjectHead) -> *mut ObjectHead {
    if !object.is_null() {
        let _ = POOLS.try_with(|pools| {
            pools.settle();
            pools.handed.set(object);
        });
    }
    object
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc_retainAutoreleasedReturnValue(
    object: *mut ObjectHead,
) -> *mut ObjectHead {
    let taken = POOLS.try_with(|pools| {
        let taken = !object.is_null() && pools.handed.get() == object;
        if taken {
            pools.handed.set(ptr::null_mut());
        }
        taken
    });
    if !taken.unwrap_or(false) {
        // SAFETY: what a method has returned is alive, or null.
        unsafe { retain(object) };
    }
    object
}
