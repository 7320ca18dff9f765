//! Register tiles of bytes that pass over groups of terms that are zero in a vector of columns.

use super::full_groups::{AHEAD, GroupList, GroupLists};
use super::micro::Int8Step;
use crate::isa::{DotInstructions, DotKernel, Simd};

/// A tile of `R` rows and one vector, in `U` sets of sums: one sum per element would wait for itself
/// where there are few.
struct ListedTile<'a, const R: usize, const U: usize> {
    step: &'a Int8Step,
    list: GroupList,
}

impl<const R: usize, const U: usize> DotKernel for ListedTile<'_, R, U> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let s = d.simd();
        let mut sets = [[s.splat_i(0); R]; U];
        let mut groups = self.list.groups;
        let mut left = self.list.count;
        while left >= U {
            for set in &mut sets {
                // SAFETY: a number of the list.
                unsafe { listed_group(d, self.step, groups, set) };
                groups = groups.wrapping_add(1);
            }
            left -= U;
        }
        for _ in 0..left {
            // SAFETY: as above.
            unsafe { listed_group(d, self.step, groups, &mut sets[0]) };
            groups = groups.wrapping_add(1);
        }
        for r in 0..R {
            let mut sum = sets[0][r];
            for set in &sets[1..] {
                sum = s.add_i(sum, set[r]);
            }
            // SAFETY: the step has the row.
            unsafe { self.step.finish(d, r, 0, sum) };
        }
    }
}

/// Adds the products of a group of terms.
///
/// # Safety
/// `group` is a number of a list, at least [`AHEAD`] before the end of all; A has the group in `R`
/// rows, and B in the step's vector.
#[inline(always)]
unsafe fn listed_group<D: DotInstructions, const R: usize>(
    d: D,
    step: &Int8Step,
    group: *const u32,
    sums: &mut [<D::S as Simd>::I; R],
) {
    let s = d.simd();
    let row = D::TILE_VECTORS * D::S::LANES * D::TERMS;
    // SAFETY: the caller vouches for the group.
    unsafe {
        s.prefetch(step.b.wrapping_add(*group.add(AHEAD) as usize * row).cast());
        let number = *group as usize;
        let right = d.load_terms(step.b.add(number * row));
        let a = step.a.add(number * size_of::<i32>());
        for (r, sum) in sums.iter_mut().enumerate() {
            let left = s.splat_i(a.add(r * step.a_stride).cast::<i32>().read_unaligned());
            *sum = d.dot(*sum, left, right);
        }
    }
}

macro_rules! by_rows {
    ($d:ident, $step:ident, $list:ident, $rows:ident, $($r:literal, $u:literal;)*) => {
        match $rows {
            $($r if const { $r <= D::TILE_ROWS[0] } => {
                $d.enter(ListedTile::<$r, $u> { step: $step, list: $list });
            })*
            _ => {}
        }
    };
}

/// Runs a step of one panel over `rows` rows, vector by vector; `vector` is the panel's first.
///
/// # Safety
/// The step's pointers are valid for `rows` rows, and the lists have the panel's vectors.
#[inline(always)]
pub(super) unsafe fn listed_block<D: DotInstructions>(
    d: D,
    step: &Int8Step,
    lists: GroupLists,
    vector: usize,
    rows: usize,
) {
    // Tiles of nearly equal height: a thin last tile would be slow.
    let tiles = rows.div_ceil(D::TILE_ROWS[0]);
    for inside in 0..step.width.div_ceil(D::S::LANES) {
        // SAFETY: a vector of the caller's panel.
        let list = unsafe { lists.list(vector + inside) };
        let column = inside * D::S::LANES;
        let mut start = 0;
        for i in 1..=tiles {
            let end = rows * i / tiles;
            let part = &Int8Step {
                a: step.a.wrapping_add(start * step.a_stride),
                b: step.b.wrapping_add(column * D::TERMS),
                columns: step.columns.shifted(column),
                row_sums: step.row_sums.wrapping_add(start),
                out: step.out.at(start * step.c_stride + column),
                width: D::S::LANES.min(step.width - column),
                ..*step
            };
            let count = end - start;
            by_rows!(d, part, list, count, 1, 4; 2, 4; 3, 2; 4, 2; 5, 2; 6, 2; 7, 1; 8, 1; 9, 1; 10, 1; 11, 1; 12, 1;);
            start = end;
        }
    }
}
