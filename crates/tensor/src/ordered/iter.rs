//! Iterators over ordered maps and sets.

use std::fmt;
use std::iter::FusedIterator;
use std::{slice, vec};

use super::PairPlace;

/// Iterates over the pairs of an [`OrderedMap`](super::OrderedMap) in the order of its keys.
pub struct OrderedIter<'m, K, V> {
    front: slice::Iter<'m, (K, V)>,
    chunks: slice::Iter<'m, Vec<(K, V)>>,
    back: slice::Iter<'m, (K, V)>,
    left: usize,
}

impl<'m, K, V> OrderedIter<'m, K, V> {
    pub(super) fn new(chunks: &'m [Vec<(K, V)>], len: usize) -> Self {
        Self { front: [].iter(), chunks: chunks.iter(), back: [].iter(), left: len }
    }

    /// Iterates over the pairs from one place up to another one.
    pub(super) fn between(chunks: &'m [Vec<(K, V)>], from: PairPlace, to: PairPlace) -> Self {
        let chunk = |at: usize| chunks.get(at).map_or(&[][..], Vec::as_slice);
        if from.chunk == to.chunk {
            let pairs = &chunk(from.chunk)[from.within..to.within];
            return Self { left: pairs.len(), front: pairs.iter(), ..Self::new(&[], 0) };
        }
        let front = &chunk(from.chunk)[from.within..];
        let whole = &chunks[from.chunk + 1..to.chunk];
        let back = &chunk(to.chunk)[..to.within];
        let left = front.len() + whole.iter().map(Vec::len).sum::<usize>() + back.len();
        Self { front: front.iter(), chunks: whole.iter(), back: back.iter(), left }
    }
}

impl<'m, K, V> Iterator for OrderedIter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                self.left -= 1;
                return Some((key, value));
            }
            match self.chunks.next() {
                Some(chunk) => self.front = chunk.iter(),
                None if self.left == 0 => return None,
                None => self.front = std::mem::replace(&mut self.back, [].iter()),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for OrderedIter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                self.left -= 1;
                return Some((key, value));
            }
            match self.chunks.next_back() {
                Some(chunk) => self.back = chunk.iter(),
                None if self.left == 0 => return None,
                None => self.back = std::mem::replace(&mut self.front, [].iter()),
            }
        }
    }
}

impl<K, V> ExactSizeIterator for OrderedIter<'_, K, V> {}
impl<K, V> FusedIterator for OrderedIter<'_, K, V> {}

impl<K, V> Clone for OrderedIter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            front: self.front.clone(),
            chunks: self.chunks.clone(),
            back: self.back.clone(),
            left: self.left,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Iterates over the pairs of an [`OrderedMap`](super::OrderedMap), whose values may be changed.
#[derive(Debug)]
pub struct OrderedIterMut<'m, K, V> {
    front: slice::IterMut<'m, (K, V)>,
    chunks: slice::IterMut<'m, Vec<(K, V)>>,
    back: slice::IterMut<'m, (K, V)>,
    left: usize,
}

impl<'m, K, V> OrderedIterMut<'m, K, V> {
    pub(super) fn new(chunks: &'m mut [Vec<(K, V)>], len: usize) -> Self {
        Self { front: [].iter_mut(), chunks: chunks.iter_mut(), back: [].iter_mut(), left: len }
    }
}

impl<'m, K, V> Iterator for OrderedIterMut<'m, K, V> {
    type Item = (&'m K, &'m mut V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.front.next() {
                self.left -= 1;
                return Some((key, value));
            }
            match self.chunks.next() {
                Some(chunk) => self.front = chunk.iter_mut(),
                None if self.left == 0 => return None,
                None => self.front = std::mem::take(&mut self.back),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for OrderedIterMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.back.next_back() {
                self.left -= 1;
                return Some((key, value));
            }
            match self.chunks.next_back() {
                Some(chunk) => self.back = chunk.iter_mut(),
                None if self.left == 0 => return None,
                None => self.back = std::mem::take(&mut self.front),
            }
        }
    }
}

impl<K, V> ExactSizeIterator for OrderedIterMut<'_, K, V> {}
impl<K, V> FusedIterator for OrderedIterMut<'_, K, V> {}

/// Gives away the pairs of an [`OrderedMap`](super::OrderedMap) in the order of its keys.
#[derive(Debug)]
pub struct OrderedIntoIter<K, V> {
    front: vec::IntoIter<(K, V)>,
    chunks: vec::IntoIter<Vec<(K, V)>>,
    back: vec::IntoIter<(K, V)>,
    left: usize,
}

impl<K, V> OrderedIntoIter<K, V> {
    pub(super) fn new(chunks: Vec<Vec<(K, V)>>, len: usize) -> Self {
        Self {
            front: vec::IntoIter::default(),
            chunks: chunks.into_iter(),
            back: vec::IntoIter::default(),
            left: len,
        }
    }
}

impl<K, V> Iterator for OrderedIntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.front.next() {
                self.left -= 1;
                return Some(pair);
            }
            match self.chunks.next() {
                Some(chunk) => self.front = chunk.into_iter(),
                None if self.left == 0 => return None,
                None => self.front = std::mem::take(&mut self.back),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for OrderedIntoIter<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.back.next_back() {
                self.left -= 1;
                return Some(pair);
            }
            match self.chunks.next_back() {
                Some(chunk) => self.back = chunk.into_iter(),
                None if self.left == 0 => return None,
                None => self.back = std::mem::take(&mut self.front),
            }
        }
    }
}

impl<K, V> ExactSizeIterator for OrderedIntoIter<K, V> {}
impl<K, V> FusedIterator for OrderedIntoIter<K, V> {}

/// Iterates over the keys of an [`OrderedMap`](super::OrderedMap) in their order, or over the items
/// of an [`OrderedSet`](super::OrderedSet).
pub struct OrderedKeys<'m, K, V = ()>(OrderedIter<'m, K, V>);

impl<'m, K, V> OrderedKeys<'m, K, V> {
    pub(super) const fn new(pairs: OrderedIter<'m, K, V>) -> Self {
        Self(pairs)
    }
}

impl<'m, K, V> Iterator for OrderedKeys<'m, K, V> {
    type Item = &'m K;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, _)| key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for OrderedKeys<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, _)| key)
    }
}

impl<K, V> ExactSizeIterator for OrderedKeys<'_, K, V> {}
impl<K, V> FusedIterator for OrderedKeys<'_, K, V> {}

impl<K, V> Clone for OrderedKeys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: fmt::Debug, V> fmt::Debug for OrderedKeys<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
