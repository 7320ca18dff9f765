//! Doubles of Core Foundation's objects: texts, numbers, bytes, arrays and dictionaries.
//!
//! All live objects are in one table, so that a use of one that is gone ends the process with a message. Addresses are
//! never used again.

mod collections;
mod values;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::refuse;

// Objects of Objective-C are retained and released by its runtime.
unsafe extern "C-unwind" {
    fn galatea_double_is_object(address: *const c_void) -> bool;
    fn objc_retain(object: *const c_void) -> *const c_void;
    fn objc_release(object: *const c_void);
}

/// Reference to an object, which owns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CfReference(usize);

/// Contents of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CfContents {
    /// `CFString`.
    Text(String),
    /// `CFNumber`.
    Number(i64),
    /// `CFData`.
    Data(Vec<u8>),
    /// `CFArray`, which owns its items.
    Array(Vec<CfReference>),
    /// `CFDictionary`, which owns its keys and values.
    Dictionary(Vec<CfPair>),
    /// Object of another library, with a number that tells it from others.
    Other(u64),
}

/// Key and value of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CfPair {
    /// The key.
    pub(crate) key: CfReference,
    /// The value.
    pub(crate) value: CfReference,
}

/// Object with the number of its owners.
#[derive(Debug)]
struct CfObject {
    owners: usize,
    contents: CfContents,
}

type CfTable = HashMap<CfReference, CfObject>;

static OBJECTS: Mutex<Option<CfTable>> = Mutex::new(None);

/// The table of live objects.
struct LiveObjects(MutexGuard<'static, Option<CfTable>>);

impl LiveObjects {
    fn lock() -> Self {
        Self(OBJECTS.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn table(&mut self) -> &mut CfTable {
        self.0.get_or_insert_default()
    }

    /// Finds an object that a function was given.
    fn find(&mut self, function: &str, of: CfReference) -> &mut CfObject {
        let found = self.table().get_mut(&of);
        found.unwrap_or_else(|| refuse(function, &format!("{:#x} is no live object", of.0)))
    }

    /// Returns whether it is an object of Objective-C, which this table does not have.
    fn is_foreign(&mut self, of: CfReference) -> bool {
        // SAFETY: the function only compares the address.
        !self.table().contains_key(&of) && unsafe { galatea_double_is_object(of.pointer()) }
    }

    fn retain(&mut self, function: &str, of: CfReference) {
        if self.is_foreign(of) {
            // SAFETY: it is such an object, and alive.
            unsafe { objc_retain(of.pointer()) };
            return;
        }
        self.find(function, of).owners += 1;
    }

    fn release(&mut self, function: &str, of: CfReference) {
        if self.is_foreign(of) {
            // SAFETY: it is such an object, and alive; the caller was one of its owners.
            return unsafe { objc_release(of.pointer()) };
        }
        let object = self.find(function, of);
        object.owners -= 1;
        if object.owners > 0 {
            return;
        }
        let owned = match self.table().remove(&of).map(|object| object.contents) {
            Some(CfContents::Array(items)) => items,
            Some(CfContents::Dictionary(pairs)) => {
                pairs.into_iter().flat_map(|pair| [pair.key, pair.value]).collect()
            }
            _ => return,
        };
        for item in owned {
            self.release(function, item);
        }
    }
}

impl CfReference {
    /// Makes an object, which the caller owns.
    pub(crate) fn new(contents: CfContents) -> Self {
        // The bytes are given up, so that no other object has their address.
        let address = Box::leak(Box::new([0_u64; 2])).as_ptr().expose_provenance();
        let object = CfObject { owners: 1, contents };
        LiveObjects::lock().table().insert(Self(address), object);
        Self(address)
    }

    /// Makes a text, which the caller owns.
    pub(crate) fn text(text: &str) -> Self {
        Self::new(CfContents::Text(text.to_owned()))
    }

    /// Makes a dictionary, which the caller owns and which takes over the values.
    pub(crate) fn dictionary(pairs: &[(&str, CfReference)]) -> Self {
        let pair = |&(key, value): &(&str, Self)| CfPair { key: Self::text(key), value };
        Self::new(CfContents::Dictionary(pairs.iter().map(pair).collect()))
    }

    /// Makes an array, which the caller owns and which takes over the items.
    pub(crate) fn array(items: Vec<CfReference>) -> Self {
        Self::new(CfContents::Array(items))
    }

    /// The reference that a caller gave to `function`; null ends the process.
    pub(crate) fn given(function: &str, pointer: *const c_void) -> Self {
        Self::optional(pointer).unwrap_or_else(|| refuse(function, "an object is null"))
    }

    /// The reference that a caller gave, which may be null.
    pub(crate) fn optional(pointer: *const c_void) -> Option<Self> {
        Some(Self(pointer.addr())).filter(|of| of.0 != 0)
    }

    /// The pointer for a caller.
    pub(crate) fn pointer(self) -> *const c_void {
        std::ptr::with_exposed_provenance(self.0)
    }

    /// Copies what the object holds.
    pub(crate) fn contents(self, function: &str) -> CfContents {
        LiveObjects::lock().find(function, self).contents.clone()
    }

    /// Copies a text.
    pub(crate) fn as_text(self, function: &str) -> String {
        match self.contents(function) {
            CfContents::Text(text) => text,
            other => refuse(function, &format!("expected a text, found {other:?}")),
        }
    }

    /// Adds an owner.
    pub(crate) fn retain(self, function: &str) -> Self {
        LiveObjects::lock().retain(function, self);
        self
    }

    /// Takes an owner away.
    pub(crate) fn release(self, function: &str) {
        LiveObjects::lock().release(function, self);
    }

    /// Returns whether two objects hold the same.
    fn equals(self, function: &str, other: Self) -> bool {
        self == other || self.contents(function) == other.contents(function)
    }

    /// Returns the value of a dictionary under a key that is equal, which the dictionary owns.
    pub(crate) fn value(self, function: &str, key: &CfContents) -> Option<CfReference> {
        let CfContents::Dictionary(pairs) = self.contents(function) else {
            refuse(function, "expected a dictionary")
        };
        let found = pairs.iter().find(|pair| pair.key.contents(function) == *key);
        found.map(|pair| pair.value)
    }
}

/// Number of live objects.
#[must_use]
pub fn live_objects() -> usize {
    LiveObjects::lock().table().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_others_gives_them_up_with_its_last_owner() {
        let inner = CfReference::text("inner");
        let array = CfReference::array(vec![inner.retain("test")]);
        let of = CfReference::dictionary(&[("items", array)]);
        let found = of.value("test", &CfContents::Text("items".to_owned()));
        assert_eq!(found, Some(array));
        assert_eq!(of.value("test", &CfContents::Text("odd".to_owned())), None);
        of.release("test");
        let live = |of: CfReference| LiveObjects::lock().table().contains_key(&of);
        assert!(!live(array) && !live(of));
        assert_eq!(inner.as_text("test"), "inner");
        inner.release("test");
        assert!(!live(inner));
    }
}
