//! Surfaces that predictions use again: to make one takes the system about as long as a small prediction.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use galatea_apple::coreml::{ArrayDataType, MultiArray};

/// Bytes of surfaces that wait for their next use; what has waited for the longest time goes first.
const MAX_BYTES: usize = 64 << 20;
/// Bytes of a page, of which a surface has one or more.
const PAGE_BYTES: usize = 16 << 10;

/// Array that a pool keeps.
pub(super) trait PooledArray {
    /// Returns the type of the elements.
    fn data_type(&self) -> ArrayDataType;

    /// Returns the length of each dimension.
    fn shape(&self) -> &[usize];

    /// Returns the number of bytes, gaps left out.
    fn len_bytes(&self) -> usize;

    /// Returns whether it lies in a surface of its own.
    fn is_surface(&self) -> bool;
}

/// Bytes that a surface takes of the system.
fn surface_bytes(array: &impl PooledArray) -> usize {
    array.len_bytes().max(1).next_multiple_of(PAGE_BYTES)
}

impl PooledArray for MultiArray {
    fn data_type(&self) -> ArrayDataType {
        self.data_type()
    }

    fn shape(&self) -> &[usize] {
        self.shape()
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes()
    }

    fn is_surface(&self) -> bool {
        self.is_surface()
    }
}

/// Surfaces that nobody uses, the one that has waited for the longest time first.
#[derive(Debug)]
struct WaitingSurfaces<A> {
    surfaces: VecDeque<A>,
    bytes: usize,
}

/// Surfaces of a model's inputs and outputs by shape and type.
#[derive(Debug)]
pub(super) struct SurfacePool<A = MultiArray> {
    waiting: Mutex<WaitingSurfaces<A>>,
    max_bytes: usize,
}

impl<A: PooledArray> Default for SurfacePool<A> {
    fn default() -> Self {
        Self::bounded(MAX_BYTES)
    }
}

impl<A: PooledArray> SurfacePool<A> {
    /// A pool that keeps so many bytes.
    fn bounded(max_bytes: usize) -> Self {
        let waiting = WaitingSurfaces { surfaces: VecDeque::new(), bytes: 0 };
        Self { waiting: Mutex::new(waiting), max_bytes }
    }

    /// Returns a surface of this type and shape with whatever it held before, or what `make` makes.
    pub(super) fn take<E>(
        &self,
        data_type: ArrayDataType,
        shape: &[usize],
        make: impl FnOnce() -> Result<A, E>,
    ) -> Result<A, E> {
        let found = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |array: &A| array.data_type() == data_type && array.shape() == shape;
            // The last one that was used is the likeliest to be in caches.
            let place = waiting.surfaces.iter().rposition(fits);
            let found = place.and_then(|place| waiting.surfaces.remove(place));
            waiting.bytes -= found.as_ref().map_or(0, surface_bytes);
            found
        };
        found.map_or_else(make, Ok)
    }

    /// Keeps a surface that no prediction uses any more. Other arrays, and what is over the bound, are dropped.
    pub(super) fn give_back(&self, array: A) {
        let bytes = surface_bytes(&array);
        if !array.is_surface() || bytes > self.max_bytes {
            return;
        }
        let mut dropped = Vec::new();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.bytes + bytes > self.max_bytes {
            let Some(oldest) = waiting.surfaces.pop_front() else { break };
            waiting.bytes -= surface_bytes(&oldest);
            dropped.push(oldest);
        }
        waiting.bytes += bytes;
        waiting.surfaces.push_back(array);
        drop(waiting);
        // The system takes its time to let go of surfaces; nobody waits for that.
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Stand-in of a surface with a number.
    #[derive(Debug, PartialEq)]
    struct NumberedSurface {
        number: u32,
        shape: Vec<usize>,
        data_type: ArrayDataType,
        is_surface: bool,
    }

    impl PooledArray for NumberedSurface {
        fn data_type(&self) -> ArrayDataType {
            self.data_type
        }

        fn shape(&self) -> &[usize] {
            &self.shape
        }

        fn len_bytes(&self) -> usize {
            self.shape.iter().product::<usize>()
        }

        fn is_surface(&self) -> bool {
            self.is_surface
        }
    }

    fn surface(number: u32, shape: &[usize]) -> NumberedSurface {
        let data_type = ArrayDataType::Float16;
        NumberedSurface { number, shape: shape.to_vec(), data_type, is_surface: true }
    }

    /// Number of the surface of FP16 that the pool gives; 0 for a new one.
    fn taken(pool: &SurfacePool<NumberedSurface>, shape: &[usize]) -> u32 {
        let made = || Ok::<_, Infallible>(surface(0, shape));
        pool.take(ArrayDataType::Float16, shape, made).unwrap().number
    }

    #[test]
    fn a_surface_is_used_again_for_its_shape_and_type_alone() {
        let pool = SurfacePool::default();
        pool.give_back(surface(1, &[2, 8]));
        pool.give_back(surface(2, &[16]));
        let bytes = || Ok::<_, Infallible>(surface(9, &[16]));
        assert_eq!(pool.take(ArrayDataType::Int8, &[16], bytes).unwrap().number, 9);
        assert_eq!(taken(&pool, &[2, 8]), 1);
        assert_eq!(taken(&pool, &[2, 8]), 0, "it was given to two predictions");
        assert_eq!(taken(&pool, &[16]), 2);
    }

    #[test]
    fn what_waits_is_bounded_and_the_oldest_goes_first() {
        let pool = SurfacePool::bounded(4 * PAGE_BYTES);
        let pages = |count: usize| [count * PAGE_BYTES];
        // The first is less than a page, and takes one.
        for (number, shape) in [(1, [1]), (2, pages(1)), (3, pages(3))] {
            pool.give_back(surface(number, &shape));
        }
        assert_eq!(taken(&pool, &[1]), 0);
        assert_eq!((taken(&pool, &pages(1)), taken(&pool, &pages(3))), (2, 3));
        pool.give_back(surface(4, &pages(5)));
        assert_eq!(taken(&pool, &pages(5)), 0);
        // Bytes of what was taken count no longer.
        pool.give_back(surface(5, &pages(4)));
        assert_eq!(taken(&pool, &pages(4)), 5);
    }

    #[test]
    fn arrays_in_other_memory_are_not_kept() {
        let pool = SurfacePool::default();
        pool.give_back(NumberedSurface { is_surface: false, ..surface(1, &[4]) });
        assert_eq!(taken(&pool, &[4]), 0);
    }
}
