//! Maps and sets in the order of their keys, which compile quickly.
//!
//! They are what `BTreeMap` and `BTreeSet` are, with a quarter of their code for each pair of types:
//! a tree's nodes are compiled anew for every type of key and value, and the program has hundreds.

mod entry;
mod iter;
#[cfg(feature = "serde")]
mod serde;
mod set;

pub use entry::{OccupiedEntry, OrderedEntry, VacantEntry};
pub use iter::{OrderedIntoIter, OrderedIter, OrderedIterMut, OrderedKeys};
pub use set::OrderedSet;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Bound, Index, RangeBounds};

/// Most pairs of a chunk.
const MAX_CHUNK: usize = 64;

/// Map in the order of its keys, as sorted chunks of at most [`MAX_CHUNK`] pairs.
///
/// A look-up is two binary searches. An insertion moves pairs of one chunk, and now and then the
/// chunks behind it, of which there are a sixty-fourth to a thirty-second of the pairs.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    /// No chunk is empty. Keys rise within a chunk and from one to the next.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

/// Position of a pair: the chunk, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PairPlace {
    chunk: usize,
    within: usize,
}

impl<K, V> OrderedMap<K, V> {
    /// Returns an empty map, which holds no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes every pair.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// Iterates over the pairs in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> OrderedIter<'_, K, V> {
        OrderedIter::new(&self.chunks, self.len)
    }

    /// Iterates over the pairs in the order of their keys, with values that may be changed.
    pub fn iter_mut(&mut self) -> OrderedIterMut<'_, K, V> {
        OrderedIterMut::new(&mut self.chunks, self.len)
    }

    /// Iterates over the keys in their order.
    #[must_use]
    pub fn keys(&self) -> OrderedKeys<'_, K, V> {
        OrderedKeys::new(self.iter())
    }

    /// Iterates over the values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over the values in the order of their keys. They may be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Returns the keys in their order.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator {
        self.into_iter().map(|(key, _)| key)
    }

    /// Returns the values in the order of their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.into_iter().map(|(_, value)| value)
    }

    /// Returns the pair with the least key.
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.chunks.first()?.first().map(|(key, value)| (key, value))
    }

    /// Returns the pair with the greatest key.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.chunks.last()?.last().map(|(key, value)| (key, value))
    }

    /// Removes and returns the pair with the least key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take(PairPlace { chunk: 0, within: 0 }))
    }

    /// Removes and returns the pair with the greatest key.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let chunk = self.chunks.len().checked_sub(1)?;
        let within = self.chunks[chunk].len() - 1;
        Some(self.take(PairPlace { chunk, within }))
    }

    /// Keeps the pairs for which `keep` answers true. It is asked in the order of the keys.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for chunk in &mut self.chunks {
            chunk.retain_mut(|(key, value)| keep(key, value));
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.len = self.chunks.iter().map(Vec::len).sum();
    }

    /// Removes the pair at a place that exists.
    fn take(&mut self, at: PairPlace) -> (K, V) {
        let pair = self.chunks[at.chunk].remove(at.within);
        self.len -= 1;
        self.join(at.chunk);
        pair
    }

    /// Joins a chunk that became small to the next one, if the two fill half a chunk at most.
    fn join(&mut self, chunk: usize) {
        let len = self.chunks[chunk].len();
        if len == 0 {
            self.chunks.remove(chunk);
        } else if len <= MAX_CHUNK / 4
            && self.chunks.get(chunk + 1).is_some_and(|next| next.len() + len <= MAX_CHUNK / 2)
        {
            let mut next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].append(&mut next);
        }
    }

    /// Puts a pair where [`OrderedMap::find`] found that its key belongs, and returns its place.
    fn put(&mut self, mut at: PairPlace, pair: (K, V)) -> PairPlace {
        self.len += 1;
        let last = at.chunk + 1 == self.chunks.len();
        match self.chunks.get_mut(at.chunk) {
            None => self.chunks.push(vec![pair]),
            Some(chunk) if chunk.len() < MAX_CHUNK => chunk.insert(at.within, pair),
            // Rising keys fill every chunk.
            Some(_) if last && at.within == MAX_CHUNK => {
                at = PairPlace { chunk: at.chunk + 1, within: 0 };
                self.chunks.push(vec![pair]);
            }
            Some(chunk) => {
                let half = chunk.split_off(MAX_CHUNK / 2);
                self.chunks.insert(at.chunk + 1, half);
                if at.within > MAX_CHUNK / 2 {
                    at = PairPlace { chunk: at.chunk + 1, within: at.within - MAX_CHUNK / 2 };
                }
                self.chunks[at.chunk].insert(at.within, pair);
            }
        }
        at
    }

    fn value_mut(&mut self, at: PairPlace) -> &mut V {
        &mut self.chunks[at.chunk][at.within].1
    }
}

impl<K: Ord, V> OrderedMap<K, V> {
    /// Place of a key, or else the place where it belongs.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<PairPlace, PairPlace>
    where
        K: Borrow<Q>,
    {
        // The last chunk that does not begin behind the key.
        let (mut chunk, mut behind) = (0, self.chunks.len());
        while behind - chunk > 1 {
            let middle = usize::midpoint(chunk, behind);
            if self.chunks[middle][0].0.borrow() <= key {
                chunk = middle;
            } else {
                behind = middle;
            }
        }
        let Some(pairs) = self.chunks.get(chunk) else {
            return Err(PairPlace { chunk, within: 0 });
        };
        let (mut from, mut to) = (0, pairs.len());
        while from < to {
            let within = usize::midpoint(from, to);
            match pairs[within].0.borrow().cmp(key) {
                Ordering::Less => from = within + 1,
                Ordering::Greater => to = within,
                Ordering::Equal => return Ok(PairPlace { chunk, within }),
            }
        }
        Err(PairPlace { chunk, within: from })
    }

    /// Whether there is a value for a key.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns the key that the map holds, and its value.
    #[must_use]
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        let (key, value) = &self.chunks[at.chunk][at.within];
        Some((key, value))
    }

    /// Returns the value of a key, which may be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.value_mut(at))
    }

    /// Sets the value of a key and returns the one that it had. A key that is held stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(self.value_mut(at), value)),
            Err(at) => {
                self.put(at, (key, value));
                None
            }
        }
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key and returns it with its value.
    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.take(at))
    }

    /// Returns the place of a key, for a value to be read, put or changed there.
    pub fn entry(&mut self, key: K) -> OrderedEntry<'_, K, V> {
        match self.find(&key) {
            Ok(at) => OrderedEntry::Occupied(OccupiedEntry { map: self, at, key }),
            Err(at) => OrderedEntry::Vacant(VacantEntry { map: self, at, key }),
        }
    }

    /// Iterates over the pairs whose keys are in a range.
    #[must_use]
    pub fn range<Q: Ord + ?Sized, R: RangeBounds<Q>>(&self, range: R) -> OrderedIter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let from = match range.start_bound() {
            Bound::Unbounded => PairPlace { chunk: 0, within: 0 },
            Bound::Included(key) => self.place(key, false),
            Bound::Excluded(key) => self.place(key, true),
        };
        let to = match range.end_bound() {
            Bound::Unbounded => PairPlace { chunk: self.chunks.len(), within: 0 },
            Bound::Included(key) => self.place(key, true),
            Bound::Excluded(key) => self.place(key, false),
        };
        OrderedIter::between(&self.chunks, from, to.max(from))
    }

    /// Place of a key or where it belongs; the one behind the key if it is held and `behind` says so.
    fn place<Q: Ord + ?Sized>(&self, key: &Q, behind: bool) -> PairPlace
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok(at) => PairPlace { within: at.within + usize::from(behind), ..at },
            Err(at) => at,
        }
    }

    /// Removes the pairs from a key on, and returns them.
    #[must_use]
    pub fn split_off<Q: Ord + ?Sized>(&mut self, key: &Q) -> Self
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).unwrap_or_else(|at| at);
        if at.chunk >= self.chunks.len() {
            return Self::new();
        }
        let mut chunks = self.chunks.split_off(at.chunk);
        let mut behind = chunks[0].split_off(at.within);
        std::mem::swap(&mut chunks[0], &mut behind);
        self.chunks.push(behind);
        self.chunks.retain(|chunk| !chunk.is_empty());
        chunks.retain(|chunk| !chunk.is_empty());
        let len = chunks.iter().map(Vec::len).sum();
        self.len -= len;
        Self { chunks, len }
    }

    /// Moves the pairs of another map here. Of equal keys the other's value is kept.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(std::mem::take(other));
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for OrderedMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for OrderedMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord> Ord for OrderedMap<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash> Hash for OrderedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len);
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for OrderedMap<K, V> {
    type Output = V;

    #[expect(clippy::expect_used, reason = "indexing with a key that is not held panics")]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map holds the key")
    }
}

impl<K: Ord, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        pairs.into_iter().for_each(|(key, value)| {
            self.insert(key, value);
        });
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::new();
        map.extend(pairs);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for OrderedMap<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = OrderedIntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        OrderedIntoIter::new(self.chunks, self.len)
    }
}

impl<'m, K, V> IntoIterator for &'m OrderedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = OrderedIter<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'m, K, V> IntoIterator for &'m mut OrderedMap<K, V> {
    type Item = (&'m K, &'m mut V);
    type IntoIter = OrderedIterMut<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
