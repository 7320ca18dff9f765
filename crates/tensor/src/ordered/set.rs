//! Sets in the order of their items.

use super::{OrderedIntoIter, OrderedKeys, OrderedMap};
use std::borrow::Borrow;
use std::fmt;
use std::iter::Map;
use std::ops::RangeBounds;

/// Set in the order of its items: an [`OrderedMap`] without values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderedSet<T>(OrderedMap<T, ()>);

impl<T> OrderedSet<T> {
    /// Returns an empty set, which holds no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self(OrderedMap::new())
    }

    /// Number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no item.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes every item.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Iterates over the items in their order.
    #[must_use]
    pub fn iter(&self) -> OrderedKeys<'_, T> {
        self.0.keys()
    }

    /// Returns the least item.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.0.first_key_value().map(|(item, ())| item)
    }

    /// Returns the greatest item.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.0.last_key_value().map(|(item, ())| item)
    }

    /// Removes and returns the least item.
    pub fn pop_first(&mut self) -> Option<T> {
        self.0.pop_first().map(|(item, ())| item)
    }

    /// Removes and returns the greatest item.
    pub fn pop_last(&mut self) -> Option<T> {
        self.0.pop_last().map(|(item, ())| item)
    }

    /// Moves the items of another set here.
    pub fn append(&mut self, other: &mut Self)
    where
        T: Ord,
    {
        self.0.append(&mut other.0);
    }

    /// Keeps the items for which `keep` answers true. It is asked in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|item, ()| keep(item));
    }
}

impl<T: Ord> OrderedSet<T> {
    /// Whether the set holds an item.
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(item)
    }

    /// Returns the item that the set holds.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, item: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        self.0.get_key_value(item).map(|(item, ())| item)
    }

    /// Adds an item, and returns whether it is new.
    pub fn insert(&mut self, item: T) -> bool {
        self.0.insert(item, ()).is_none()
    }

    /// Removes an item, and returns whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(item).is_some()
    }

    /// Iterates over the items in a range.
    #[must_use]
    pub fn range<Q: Ord + ?Sized, R: RangeBounds<Q>>(&self, range: R) -> OrderedKeys<'_, T>
    where
        T: Borrow<Q>,
    {
        OrderedKeys::new(self.0.range(range))
    }

    /// Iterates over the items that another set has not.
    pub fn difference<'s>(&'s self, other: &'s Self) -> impl DoubleEndedIterator<Item = &'s T> {
        self.iter().filter(|item| !other.contains(*item))
    }

    /// Iterates over the items that another set has too.
    pub fn intersection<'s>(&'s self, other: &'s Self) -> impl DoubleEndedIterator<Item = &'s T> {
        self.iter().filter(|item| other.contains(*item))
    }

    /// Whether another set has every item of this one.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|item| other.contains(item))
    }

    /// Whether another set has no item of this one.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !self.iter().any(|item| other.contains(item))
    }
}

impl<T> Default for OrderedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OrderedSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T: Ord> Extend<T> for OrderedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| {
            self.insert(item);
        });
    }
}

impl<'t, T: Ord + Copy> Extend<&'t T> for OrderedSet<T> {
    fn extend<I: IntoIterator<Item = &'t T>>(&mut self, items: I) {
        self.extend(items.into_iter().copied());
    }
}

impl<T: Ord> FromIterator<T> for OrderedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = Self::new();
        set.extend(items);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for OrderedSet<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> IntoIterator for OrderedSet<T> {
    type Item = T;
    type IntoIter = Map<OrderedIntoIter<T, ()>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(item, ())| item)
    }
}

impl<'m, T> IntoIterator for &'m OrderedSet<T> {
    type Item = &'m T;
    type IntoIter = OrderedKeys<'m, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
