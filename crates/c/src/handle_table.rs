//! Tables of the objects that C has handles of.
//!
//! A handle is a pointer that is never followed: its bits are the kind of the object, a slot of the table, and the
//! generation of the slot. Whoever frees an object makes all handles of that generation void.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api_status::{ApiStatus, CallFailure};

/// Bits of a handle for its slot, and for the generation of the slot.
const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 32;
/// Mark in the top byte of every handle; no system has addresses there.
const MARK: u64 = 0xA0;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles need pointers of 64 bits");

/// Objects of one kind. `O` is the type that C sees.
pub(crate) struct HandleTable<T, O> {
    /// Name of the kind in messages.
    name: &'static str,
    /// Number of the kind, which no other table has.
    kind: u8,
    slots: Mutex<TableSlots<T>>,
    opaque: PhantomData<fn() -> O>,
}

struct TableSlots<T> {
    all: Vec<TableSlot<T>>,
    free: Vec<usize>,
}

struct TableSlot<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T, O> HandleTable<T, O> {
    pub(crate) const fn new(kind: u8, name: &'static str) -> Self {
        let slots = Mutex::new(TableSlots { all: Vec::new(), free: Vec::new() });
        Self { name, kind, slots, opaque: PhantomData }
    }

    fn slots(&self) -> MutexGuard<'_, TableSlots<T>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn top(&self) -> u64 {
        MARK + u64::from(self.kind)
    }

    /// Keeps an object and returns its handle.
    pub(crate) fn insert(&self, object: T) -> Result<*mut O, CallFailure> {
        let mut slots = self.slots();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None if slots.all.len() >> SLOT_BITS != 0 => {
                let text = format!("there are too many handles of kind {}", self.name);
                return Err(CallFailure::new(ApiStatus::Unsupported, text));
            }
            None => {
                slots.all.push(TableSlot { generation: 1, object: None });
                slots.all.len() - 1
            }
        };
        let entry = &mut slots.all[slot];
        entry.object = Some(Arc::new(object));
        let bits = self.top() << (SLOT_BITS + GENERATION_BITS)
            | u64::from(entry.generation) << SLOT_BITS
            | slot as u64;
        let address = usize::try_from(bits).unwrap_or_default();
        Ok(std::ptr::without_provenance_mut(address))
    }

    /// Finds the slot of a handle.
    fn slot(&self, handle: *const O, slots: &TableSlots<T>) -> Result<usize, CallFailure> {
        if handle.is_null() {
            return Err(CallFailure::null(self.name));
        }
        let bits = handle.addr() as u64;
        let wrong = |why: &str| {
            let text = format!("the handle of kind {} {why}", self.name);
            Err(CallFailure::new(ApiStatus::InvalidHandle, text))
        };
        if bits >> (SLOT_BITS + GENERATION_BITS) != self.top() {
            return wrong("is of another kind, or never came from this library");
        }
        let slot = usize::try_from(bits & ((1 << SLOT_BITS) - 1)).unwrap_or(usize::MAX);
        let generation = bits >> SLOT_BITS & ((1 << GENERATION_BITS) - 1);
        match slots.all.get(slot) {
            Some(entry) if u64::from(entry.generation) == generation && entry.object.is_some() => {
                Ok(slot)
            }
            Some(_) => wrong("was freed"),
            None => wrong("never came from this library"),
        }
    }

    /// Returns the object of a handle. It lives on where another thread frees the handle meanwhile.
    pub(crate) fn get(&self, handle: *const O) -> Result<Arc<T>, CallFailure> {
        let slots = self.slots();
        let slot = self.slot(handle, &slots)?;
        let object = slots.all[slot].object.clone();
        object.ok_or_else(|| CallFailure::null(self.name))
    }

    /// Takes the object of a handle, which is void from now on.
    pub(crate) fn remove(&self, handle: *const O) -> Result<Arc<T>, CallFailure> {
        let mut slots = self.slots();
        let slot = self.slot(handle, &slots)?;
        let entry = &mut slots.all[slot];
        let object = entry.object.take();
        // A slot whose generations are used up rests for ever.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            slots.free.push(slot);
        }
        object.ok_or_else(|| CallFailure::null(self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Opaque;

    #[test]
    fn a_freed_handle_is_refused_though_its_slot_is_used_again() {
        let table: HandleTable<u8, Opaque> = HandleTable::new(1, "number");
        let first = table.insert(7).unwrap();
        assert_eq!(*table.get(first).unwrap(), 7);
        table.remove(first).unwrap();
        let second = table.insert(8).unwrap();
        assert_ne!(first, second);
        for found in [table.get(first), table.remove(first)] {
            let failure = found.unwrap_err();
            assert_eq!(failure.status, ApiStatus::InvalidHandle);
            assert!(failure.sentence.contains("was freed"), "{}", failure.sentence);
        }
        assert_eq!(*table.get(second).unwrap(), 8);
    }

    #[test]
    fn handles_of_other_kinds_and_addresses_are_refused() {
        let numbers: HandleTable<u8, Opaque> = HandleTable::new(1, "number");
        let others: HandleTable<u8, Opaque> = HandleTable::new(2, "other");
        let handle = numbers.insert(1).unwrap();
        assert_eq!(others.get(handle).unwrap_err().status, ApiStatus::InvalidHandle);
        let mut local = Opaque;
        assert_eq!(numbers.get(&raw mut local).unwrap_err().status, ApiStatus::InvalidHandle);
        assert_eq!(numbers.get(std::ptr::null()).unwrap_err().status, ApiStatus::NullArgument);
    }
}
