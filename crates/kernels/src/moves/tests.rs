//! Kernels that move elements, beside plain loops.

use super::*;
use crate::ThreadPool;

fn on_two_threads<R>(body: impl FnOnce(KernelContext<'_>) -> R) -> R {
    let pool = ThreadPool::new(2);
    body(KernelContext::new(&pool))
}

fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// The places of all elements of a shape, in their order.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    let count = shape.iter().product();
    let mut counter = AxisCounter::new(shape, 0);
    (0..count)
        .map(|_| {
            let at = counter.at.clone();
            counter.advance();
            at
        })
        .collect()
}

fn offset(at: &[usize], steps: &[usize]) -> usize {
    at.iter().zip(steps).map(|(at, step)| at * step).sum()
}

#[test]
fn copies_at_strides_read_every_place() {
    // Long and short runs, repeated, reversed and turned axes.
    let cases: &[(usize, &[(usize, isize)])] = &[
        (0, &[(3, 40), (5, 8), (8, 1)]),
        (0, &[(50, 0), (3, 40), (40, 1)]),
        (119, &[(120, -1)]),
        (0, &[(8, 1), (15, 8)]),
        (7, &[(15, 8), (4, -2)]),
        (0, &[(700, 0), (2, 60), (3, 1)]),
        (5, &[]),
        (0, &[(0, 1), (3, 1)]),
    ];
    let x = numbers(120);
    for (start, axes) in cases {
        let axes: Vec<StridedAxis> =
            axes.iter().map(|&(len, stride)| StridedAxis { len, stride }).collect();
        let shape: Vec<usize> = axes.iter().map(|axis| axis.len).collect();
        let want = places(&shape).into_iter().map(|at| {
            let moved = at.iter().zip(&axes).map(|(&at, axis)| at as isize * axis.stride);
            x[(*start as isize + moved.sum::<isize>()) as usize]
        });
        let mut y = vec![0; shape.iter().product()];
        on_two_threads(|exec| copy_strided(exec, &x, *start, &axes, &mut y));
        assert_eq!(y, want.collect::<Vec<_>>(), "{axes:?}");
    }
}

#[test]
fn frames_are_filled_from_their_sources() {
    let x = numbers(2 * 3 * 4);
    let some = |all: &[i32]| -> Vec<Option<usize>> {
        all.iter().map(|&at| usize::try_from(at).ok()).collect()
    };
    let outer = vec![
        FrameAxis { sources: some(&[-1, 0, 1, 0]), step: 12 },
        FrameAxis { sources: some(&[2, 0, 1, 2, -1]), step: 4 },
    ];
    for (sources, unit) in [(some(&[-1, -1, 0, 1, 2, 3, 2, 1]), 1), (some(&[1, 0, 1, -1]), 2)] {
        let row = FrameRow { sources: sources.clone(), unit };
        let mut y = vec![0; 4 * 5 * sources.len() * unit];
        on_two_threads(|exec| frame(exec, &x, &outer, &row, 99, &mut y));
        let mut want = Vec::new();
        for a in &outer[0].sources {
            for b in &outer[1].sources {
                for c in &sources {
                    for u in 0..unit {
                        want.push(match (a, b, c) {
                            (Some(a), Some(b), Some(c)) => x[a * 12 + b * 4 + c * unit + u],
                            _ => 99,
                        });
                    }
                }
            }
        }
        assert_eq!(y, want);
    }
}

#[test]
fn triangles_are_kept_on_either_side_of_any_diagonal() {
    let (rows, columns) = (4, 5);
    let x: Vec<u32> = (1..=3 * rows as u32 * columns as u32).collect();
    for upper in [false, true] {
        for diagonal in [i64::MIN, -5, -1, 0, 2, 7, i64::MAX] {
            let triangle = MatrixTriangle { rows, columns, diagonal, upper };
            let mut y = vec![7; x.len()];
            on_two_threads(|exec| keep_triangle(exec, &x, triangle, 0, &mut y));
            for (at, (&x, &y)) in x.iter().zip(&y).enumerate() {
                let above = (at % columns) as i64 - (at / columns % rows) as i64;
                let stays = if upper { above >= diagonal } else { above <= diagonal };
                assert_eq!(y, if stays { x } else { 0 }, "{triangle:?} at {at}");
            }
        }
    }
}

/// Shapes of data, shapes of indices, axes.
const PICKS: &[(&[usize], &[usize], usize)] = &[
    (&[300, 200], &[300, 70], 1),
    (&[40, 30], &[90, 30], 0),
    (&[3, 40, 50], &[2, 25, 40], 1),
    (&[7], &[20], 0),
    (&[2, 3, 4], &[0, 3, 4], 2),
];

fn some_indices(count: usize, len: usize) -> Vec<i64> {
    let len = len as i64;
    (0..count as i64).map(|at| (at * 7919 + 13) % (2 * len) - len).collect()
}

#[test]
fn elements_are_picked_along_every_axis() {
    for &(data, indices, axis) in PICKS {
        let x = numbers(data.iter().product());
        let at = some_indices(indices.iter().product(), data[axis]);
        let mut y = vec![0; at.len()];
        let picks = ElementPicks { data, indices, axis };
        on_two_threads(|exec| pick_elements(exec, &x, &at, &picks, &mut y)).unwrap();
        let all = steps(data);
        for ((mut place, at), y) in places(indices).into_iter().zip(&at).zip(&y) {
            place[axis] = (if *at < 0 { *at + data[axis] as i64 } else { *at }) as usize;
            assert_eq!(*y, x[offset(&place, &all)]);
        }
    }
}

#[test]
fn elements_are_written_in_order_along_every_axis() {
    for &(data, indices, axis) in PICKS {
        let at = some_indices(indices.iter().product(), data[axis]);
        let updates = numbers(at.len());
        let f = |old: u32, new: u32| old.wrapping_mul(3).wrapping_add(new);
        let mut want = numbers(data.iter().product());
        let all = steps(data);
        for ((mut place, at), new) in places(indices).into_iter().zip(&at).zip(&updates) {
            place[axis] = (if *at < 0 { *at + data[axis] as i64 } else { *at }) as usize;
            let to = offset(&place, &all);
            want[to] = f(want[to], *new);
        }
        let mut y = numbers(want.len());
        let writes = ElementWrites { data, indices, axis };
        on_two_threads(|exec| write_elements(exec, &at, &updates, &writes, f, &mut y)).unwrap();
        assert_eq!(y, want, "{data:?} {indices:?} {axis}");
    }
}

#[test]
fn wrong_indices_are_told() {
    let picks = ElementPicks { data: &[2, 3], indices: &[2, 1], axis: 1 };
    let x = numbers(6);
    for wrong in [3, -4, i64::MIN, i64::MAX] {
        let found = on_two_threads(|exec| {
            let picked = pick_elements(exec, &x, &[0, wrong], &picks, &mut [0; 2]);
            let mut y = x.clone();
            let written = write_elements(exec, &[wrong, 0], &[1, 2], &picks, |_, new| new, &mut y);
            (picked, written)
        });
        let want = Err(WrongIndex { index: wrong, len: 3 });
        assert_eq!(found, (want, want));
    }
    let text = WrongIndex { index: -4, len: 3 }.to_string();
    assert_eq!(text, "index -4 is outside an axis of length 3");
}

#[test]
fn runs_are_picked_in_the_order_of_their_starts() {
    let x = numbers(100);
    for run in [1, 3, 10] {
        let starts: Vec<usize> = (0..40_usize).map(|at| at * 31 % (101 - run)).collect();
        let mut y = vec![0; 40 * run];
        on_two_threads(|exec| pick_runs(exec, &x, &starts, run, &mut y));
        let want = starts.iter().flat_map(|&start| x[start..start + run].iter().copied());
        assert_eq!(y, want.collect::<Vec<_>>());
    }
}
