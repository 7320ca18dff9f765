//! Place of a key in a map, held or not.

use super::{OrderedMap, PairPlace};

/// Place of a key in an [`OrderedMap`].
#[derive(Debug)]
pub enum OrderedEntry<'m, K, V> {
    /// The map holds the key.
    Occupied(OccupiedEntry<'m, K, V>),
    /// The map does not hold the key.
    Vacant(VacantEntry<'m, K, V>),
}

/// Place of a key that a map holds.
#[derive(Debug)]
pub struct OccupiedEntry<'m, K, V> {
    pub(super) map: &'m mut OrderedMap<K, V>,
    pub(super) at: PairPlace,
    /// The key that was asked for, equal to the one held.
    pub(super) key: K,
}

/// Place where a key belongs that a map does not hold.
#[derive(Debug)]
pub struct VacantEntry<'m, K, V> {
    pub(super) map: &'m mut OrderedMap<K, V>,
    pub(super) at: PairPlace,
    pub(super) key: K,
}

impl<'m, K, V> OrderedEntry<'m, K, V> {
    /// Returns the key's value, after putting `value` there if the map holds none.
    pub fn or_insert(self, value: V) -> &'m mut V {
        self.or_insert_with(|| value)
    }

    /// Returns the key's value, after putting that of `make` there if the map holds none.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'m mut V {
        match self {
            Self::Occupied(held) => held.into_mut(),
            Self::Vacant(missing) => missing.insert(make()),
        }
    }

    /// Returns the key's value, after putting the default there if the map holds none.
    pub fn or_default(self) -> &'m mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if the map holds one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(held) = &mut self {
            change(held.get_mut());
        }
        self
    }

    /// Returns the key that was asked for.
    #[must_use]
    pub const fn key(&self) -> &K {
        match self {
            Self::Occupied(held) => &held.key,
            Self::Vacant(missing) => &missing.key,
        }
    }
}

impl<'m, K, V> OccupiedEntry<'m, K, V> {
    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.map.chunks[self.at.chunk][self.at.within].1
    }

    /// Returns the value, which may be changed.
    pub fn get_mut(&mut self) -> &mut V {
        self.map.value_mut(self.at)
    }

    /// Returns the value for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'m mut V {
        self.map.value_mut(self.at)
    }

    /// Sets the value and returns the one that was there.
    pub fn insert(&mut self, value: V) -> V {
        std::mem::replace(self.get_mut(), value)
    }

    /// Removes the key and returns its value.
    #[must_use]
    pub fn remove(self) -> V {
        self.map.take(self.at).1
    }
}

impl<'m, K, V> VacantEntry<'m, K, V> {
    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Puts a value there and returns it.
    pub fn insert(self, value: V) -> &'m mut V {
        let at = self.map.put(self.at, (self.key, value));
        self.map.value_mut(at)
    }
}
