//! Transposed convolutions: every pixel of the image adds a window to the result.
//!
//! One matrix product makes the windows of all pixels of an image; then every pixel of the result
//! sums the values that fall on it, always in the same order.

use super::{ConvParams, MOST, volume};
use crate::KernelContext;
use crate::gemm::{
    DenseRows, GemmEpilogue, GemmProduct, PackedB, TileFinish, Transposition, check_matrix,
    multiply,
};
use crate::isa::{Isa, IsaKernel, Simd};
use crate::memory::DisjointSlice;
use galatea_tensor::Tensor;

/// The weights of a transposed convolution, packed once for an instruction set.
#[derive(Clone)]
pub struct PackedTransposed {
    params: ConvParams,
    isa: Isa,
    /// One matrix (in-channels, taps x out-channels) per group.
    groups: Vec<PackedB>,
}

impl std::fmt::Debug for PackedTransposed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { params, isa, .. } = self;
        write!(f, "PackedTransposed {{ params: {params:?}, isa: {} }}", isa.name())
    }
}

impl PackedTransposed {
    /// Packs weights in ONNX's order: in-channel, out-channel of the group, depth, height, width.
    /// Of the parameters, the pads are what is cut from the result.
    ///
    /// # Panics
    /// Panics when `weights` has another length, or `params` contradicts itself.
    #[must_use]
    pub fn pack(isa: Isa, params: ConvParams, weights: &[f32]) -> Self {
        params.check();
        let (cin, cout) = params.group_channels();
        let taps = params.taps();
        assert!(
            weights.len() == volume(&[params.in_channels, cout, taps]),
            "transposed convolution: {} weights for {params:?}",
            weights.len()
        );
        let n = taps * cout;
        let mut rows = vec![0.0; cin * n];
        let pack = |group: usize| {
            let w = &weights[group * cin * n..(group + 1) * cin * n];
            for (row, w) in rows.chunks_exact_mut(n.max(1)).zip(w.chunks_exact(n.max(1))) {
                for (i, &w) in w.iter().enumerate() {
                    row[i % taps * cout + i / taps] = w;
                }
            }
            PackedB::pack(isa, cin, n, &rows, n, Transposition::No)
        };
        Self { params, isa, groups: (0..params.groups).map(pack).collect() }
    }

    /// Weights that were packed before: [`PackedTransposed::data`] of that time, one part after the
    /// other. `None` where they do not fit.
    ///
    /// # Panics
    /// Panics when `params` contradicts itself.
    #[must_use]
    pub fn from_data(isa: Isa, params: ConvParams, all: &Tensor) -> Option<Self> {
        params.check();
        let (cin, cout) = params.group_channels();
        let mut at = 0;
        let mut groups = Vec::with_capacity(params.groups);
        for _ in 0..params.groups {
            let group = PackedB::from_data(isa, cin, params.taps() * cout, all, at)?;
            at += group.data().len();
            groups.push(group);
        }
        (all.elements() == at).then_some(Self { params, isa, groups })
    }

    /// The packed weights, in parts that are whole numbers of cache lines.
    #[must_use]
    pub fn data(&self) -> Vec<&[f32]> {
        self.groups.iter().map(PackedB::data).collect()
    }

    /// Returns whether the packed weights lie in a mapped file.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.groups.iter().all(PackedB::is_mapped)
    }

    /// Memory held by the weights, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.groups.iter().map(PackedB::size_bytes).sum()
    }

    /// Floats that [`conv_transposed`] needs for the windows of an image of this size.
    ///
    /// # Panics
    /// Panics when that is more than fits memory.
    #[must_use]
    pub fn room(&self, size: [usize; 3]) -> usize {
        let [depth, height, width] = size;
        volume(&[depth, height, width, self.params.taps(), self.params.group_channels().1])
    }
}

/// Sizes of the images of a batch, and of their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposedSizes {
    /// Number of images.
    pub batch: usize,
    /// Depth, height and width of an image.
    pub size: [usize; 3],
    /// The first place of a result in the full one.
    pub pads_begin: [usize; 3],
    /// Depth, height and width of a result.
    pub out: [usize; 3],
}

/// `y = transposed convolution of x, + bias`.
///
/// Shapes: `x` is `[batch, …size, in_channels]`; `y` is `[batch, …out, out_channels]`, from
/// `pads_begin` on in the full result; places that no window reaches get the bias alone. `room` has
/// at least [`PackedTransposed::room`] floats.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or the weights are packed for another
/// instruction set than `exec.isa`.
pub fn conv_transposed(
    exec: KernelContext<'_>,
    packed: &PackedTransposed,
    x: &[f32],
    sizes: TransposedSizes,
    bias: Option<&[f32]>,
    room: &mut [f32],
    y: &mut [f32],
) {
    let TransposedSizes { batch, size, pads_begin, out } = sizes;
    let p = &packed.params;
    let all = [size, out, pads_begin].concat();
    assert!(all.iter().all(|&x| x < MOST), "transposed convolution: a size beyond {MOST}");
    assert!(packed.isa == exec.isa, "weights are packed for {}", packed.isa.name());
    let pixels = volume(&size);
    let result = volume(&out);
    check_matrix("image", x.len(), volume(&[batch, pixels]), p.in_channels, p.in_channels);
    check_matrix("result", y.len(), volume(&[batch, result]), p.out_channels, p.out_channels);
    assert!(room.len() >= packed.room(size), "transposed convolution: room of {}", room.len());
    assert!(bias.is_none_or(|bias| bias.len() >= p.out_channels), "a bias that is too short");
    if result == 0 || p.out_channels == 0 {
        return;
    }
    let (cin, cout) = p.group_channels();
    let y = DisjointSlice::new(y);
    let room = DisjointSlice::new(room);
    let finish = TileFinish::new(&GemmEpilogue::default());
    for image in 0..batch {
        for (group, b) in packed.groups.iter().enumerate() {
            let from = x.as_ptr().wrapping_add(image * pixels * p.in_channels + group * cin);
            let product = GemmProduct {
                m: pixels,
                n: b.n(),
                k: cin,
                a: DenseRows::new(from, p.in_channels),
                b: b.as_source(),
                c: room,
                c_stride: b.n(),
                finish,
            };
            // SAFETY: the lengths are checked above, and the room is borrowed exclusively.
            unsafe { multiply(exec, 1, |_| product) };
            let bias = bias.map(|bias| &bias[group * cout..(group + 1) * cout]);
            let y = y.at(image * result * p.out_channels + group * cout);
            let windows = TransposedWindows { params: p, size, out, pads_begin, bias, room, y };
            let work = out[2] * cout * p.taps().div_ceil(p.stride[2]);
            exec.pool.run_ranges(out[0] * out[1], 32_768usize.div_ceil(work.max(1)), |rows| {
                exec.isa.run(TransposedSum { windows, rows });
            });
        }
    }
}

/// The windows of the pixels of an image, and where they fall.
#[derive(Clone, Copy)]
struct TransposedWindows<'a> {
    params: &'a ConvParams,
    size: [usize; 3],
    out: [usize; 3],
    pads_begin: [usize; 3],
    /// The bias of the group.
    bias: Option<&'a [f32]>,
    room: DisjointSlice<f32>,
    y: DisjointSlice<f32>,
}

impl TransposedWindows<'_> {
    /// The image coordinate whose window has tap `tap` at coordinate `o` of the result.
    #[inline(always)]
    fn source(&self, d: usize, o: usize, tap: usize) -> Option<usize> {
        let from = (o + self.pads_begin[d]).checked_sub(tap * self.params.dilation[d])?;
        let place = from / self.params.stride[d];
        (from.is_multiple_of(self.params.stride[d]) && place < self.size[d]).then_some(place)
    }
}

/// Some rows of the result.
struct TransposedSum<'a> {
    windows: TransposedWindows<'a>,
    rows: std::ops::Range<usize>,
}

impl IsaKernel for TransposedSum<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = &self.windows;
        let p = w.params;
        let cout = p.group_channels().1;
        let [kd, kh, kw] = p.kernel;
        let mut lines = Vec::with_capacity(kd * kh);
        let mut terms = Vec::with_capacity(p.taps());
        for row in self.rows.clone() {
            let depth = row / w.out[1];
            let height = row % w.out[1];
            lines.clear();
            for tap in 0..kd * kh {
                let place = w.source(0, depth, tap / kh).zip(w.source(1, height, tap % kh));
                lines.extend(place.map(|(d, h)| ((d * w.size[1] + h) * w.size[2], tap * kw)));
            }
            for column in 0..w.out[2] {
                terms.clear();
                for tap in 0..kw {
                    let Some(place) = w.source(2, column, tap) else { continue };
                    let term = |&(line, first)| ((line + place) * p.taps() + first + tap) * cout;
                    terms.extend(lines.iter().map(term));
                }
                let at = (row * w.out[2] + column) * p.out_channels;
                // SAFETY: the terms are windows of pixels of the image, and y has this pixel.
                unsafe { self.pixel(s, &terms, w.y.at(at).ptr(), cout) };
            }
        }
    }
}

impl TransposedSum<'_> {
    /// # Safety
    /// Each term is the start of `cout` values of the room; `y` is valid for as many.
    #[inline(always)]
    unsafe fn pixel<S: Simd>(&self, s: S, terms: &[usize], y: *mut f32, cout: usize) {
        let room = self.windows.room.ptr().cast_const();
        let mut c = 0;
        while c < cout {
            let m = s.tail(cout - c);
            // SAFETY: the mask chooses values that the caller vouches for.
            unsafe {
                let mut sum = match self.windows.bias {
                    Some(bias) => s.load_tail(bias.as_ptr().add(c), m),
                    None => s.splat(0.0),
                };
                for &term in terms {
                    sum = s.add(sum, s.load_tail(room.add(term + c), m));
                }
                s.store_tail(y.add(c), m, sum);
            }
            c += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;
    use crate::gemm::test_values as values;
    use proptest::prelude::*;

    fn check(p: &ConvParams, batch: usize, size: [usize; 3], extra: [usize; 3]) {
        let full: [usize; 3] = std::array::from_fn(|d| {
            (size[d] - 1) * p.stride[d] + (p.kernel[d] - 1) * p.dilation[d] + 1 + extra[d]
        });
        let out: [usize; 3] =
            std::array::from_fn(|d| full[d].saturating_sub(p.pads_begin[d] + p.pads_end[d]));
        let (cin, cout) = p.group_channels();
        let taps = p.taps();
        let x = values(batch * volume(&size) * p.in_channels, 1);
        let w = values(p.in_channels * cout * taps, 2);
        let bias = values(p.out_channels, 3);
        let mut want = Vec::new();
        (0..batch * volume(&out)).for_each(|_| want.extend(bias.iter().map(|&b| f64::from(b))));
        for from in 0..batch * volume(&size) {
            let [d, h, v] =
                [from / size[2] / size[1] % size[0], from / size[2] % size[1], from % size[2]];
            for tap in 0..taps {
                let [_, kh, kw] = p.kernel;
                let t = [tap / kw / kh, tap / kw % kh, tap % kw];
                let at: [usize; 3] = std::array::from_fn(|i| {
                    ([d, h, v][i] * p.stride[i] + t[i] * p.dilation[i])
                        .wrapping_sub(p.pads_begin[i])
                });
                if (0..3).any(|i| at[i] >= out[i]) {
                    continue;
                }
                let image = from / volume(&size) * volume(&out);
                let to = image + (at[0] * out[1] + at[1]) * out[2] + at[2];
                for i in 0..p.in_channels {
                    for o in 0..cout {
                        let weight = w[(i * cout + o) * taps + tap];
                        want[to * p.out_channels + i / cin * cout + o] +=
                            f64::from(x[from * p.in_channels + i]) * f64::from(weight);
                    }
                }
            }
        }
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let first = PackedTransposed::pack(isa, *p, &w);
            let all = Tensor::vector(first.data().concat());
            let packed = PackedTransposed::from_data(isa, *p, &all).unwrap();
            let mut room = vec![f32::NAN; packed.room(size)];
            let mut y = vec![f32::NAN; want.len()];
            let exec = KernelContext { pool: &pool, isa };
            let sizes = TransposedSizes { batch, size, pads_begin: p.pads_begin, out };
            conv_transposed(exec, &packed, &x, sizes, Some(&bias), &mut room, &mut y);
            for (i, (&g, &w)) in y.iter().zip(&want).enumerate() {
                let tolerance = 3e-7 * (cin * taps + 4) as f64;
                assert!((f64::from(g) - w).abs() <= tolerance, "{} {p:?} {i}: {g} {w}", isa.name());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_transposed_convolution_equals_the_definition(
            kernel in proptest::array::uniform3(1usize..4),
            stride in proptest::array::uniform3(1usize..4),
            dilation in proptest::array::uniform3(1usize..3),
            pads_begin in proptest::array::uniform3(0usize..2),
            pads_end in proptest::array::uniform3(0usize..2),
            extra in proptest::array::uniform3(0usize..2),
            size in proptest::array::uniform3(1usize..5),
            (groups, cin, cout) in (1usize..4, 1usize..20, 1usize..40),
            batch in 1usize..3,
        ) {
            let p = ConvParams {
                in_channels: groups * cin, out_channels: groups * cout,
                kernel, stride, dilation, pads_begin, pads_end, groups,
            };
            check(&p, batch, size, extra);
        }
    }
}
