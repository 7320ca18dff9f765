use super::tests::reference;
use super::*;
use crate::gemm::test_values as values;
use crate::{ActivationFunction, ThreadPool};
use proptest::prelude::*;

/// A convolution of a chain with values of its own.
struct Part {
    params: ConvParams,
    weights: Vec<f32>,
    bias: Vec<f32>,
    activation: ActivationFunction,
}

impl Part {
    fn new(params: ConvParams, seed: u32, activation: ActivationFunction) -> Self {
        let cin = params.in_channels / params.groups;
        let weights = values(params.out_channels * cin * params.taps(), seed);
        Self { params, weights, bias: values(params.out_channels, seed + 1), activation }
    }

    /// The definition, in double precision.
    fn apply(
        &self,
        x: &[f32],
        batch: usize,
        size: [usize; 3],
        residual: Option<&[f32]>,
    ) -> Vec<f64> {
        let n = self.params.out_channels;
        let sums = reference(&self.params, &self.weights, x, batch, size);
        let finished = sums.into_iter().enumerate().map(|(i, sum)| {
            let sum = sum + f64::from(self.bias[i % n]);
            let sum = sum + residual.map_or(0.0, |residual| f64::from(residual[i]));
            match self.activation {
                ActivationFunction::Clip { min, max } => sum.clamp(f64::from(min), f64::from(max)),
                ActivationFunction::Sigmoid => 1.0 / (1.0 + (-sum).exp()),
                _ => sum,
            }
        });
        finished.collect()
    }

    fn packed(&self, isa: Isa) -> PackedConv {
        let algorithm = if self.params.is_pointwise() && self.params.groups == 1 {
            CpuConvAlgorithm::Packed
        } else {
            CpuConvAlgorithm::for_any_size(&self.params)
        };
        PackedConv::pack_with(isa, self.params, &self.weights, algorithm)
    }
}

/// Up to three convolutions in their order, and whether a residual joins the last.
struct Case {
    first: Option<Part>,
    depthwise: Part,
    last: Option<Part>,
    residual: bool,
    size: [usize; 2],
}

impl Case {
    fn parts(&self) -> Vec<&Part> {
        [self.first.as_ref(), Some(&self.depthwise), self.last.as_ref()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Results on an instruction set.
    fn run(&self, exec: KernelContext<'_>, x: &[f32], batch: usize, residual: &[f32]) -> Vec<f32> {
        let parts = self.parts();
        let packed: Vec<PackedConv> = parts.iter().map(|part| part.packed(exec.isa)).collect();
        let count = parts.len();
        let links: Vec<ChainLink<'_>> = parts
            .iter()
            .zip(&packed)
            .enumerate()
            .map(|(i, (part, packed))| {
                let epilogue = GemmEpilogue::bias(&part.bias).with_activation(part.activation);
                let joins = self.residual && i + 1 == count;
                let n = part.params.out_channels;
                let epilogue = if joins { epilogue.with_residual(residual, n) } else { epilogue };
                ChainLink { packed, epilogue }
            })
            .collect();
        let at = usize::from(self.first.is_some());
        let chain = ConvChainSpec {
            first: self.first.as_ref().map(|_| links[0]),
            depthwise: links[at],
            last: links.get(at + 1).copied(),
        };
        let size = [1, self.size[0], self.size[1]];
        assert!(chain.fits(size));
        let mut y = vec![f32::NAN; self.result_len() * batch];
        conv_chain(exec, &chain, x, batch, size, &mut y);
        y
    }

    /// Elements of the result of one image.
    fn result_len(&self) -> usize {
        let size = [1, self.size[0], self.size[1]];
        let parts = self.parts();
        let out = parts.iter().fold(size, |size, part| part.params.output_size(size));
        let channels = parts.last().map_or(0, |part| part.params.out_channels);
        out.iter().product::<usize>() * channels
    }

    /// Against the definition on every instruction set; the same whatever the threads and the batch.
    fn check(&self, batch: usize) {
        let parts = self.parts();
        let channels = parts[0].params.in_channels;
        let image = self.size[0] * self.size[1] * channels;
        let x = values(batch * image, 9);
        let residual = values(batch * self.result_len(), 10);
        let mut size = [1, self.size[0], self.size[1]];
        let mut want = x.clone();
        let mut exact = Vec::new();
        let mut terms = 4;
        for (i, part) in parts.iter().enumerate() {
            let joined = (self.residual && i + 1 == parts.len()).then_some(&residual[..]);
            exact = part.apply(&want, batch, size, joined);
            #[allow(clippy::cast_possible_truncation, reason = "a convolution gives FP32")]
            want.splice(.., exact.iter().map(|&x| x as f32));
            size = part.params.output_size(size);
            terms *= part.params.in_channels / part.params.groups * part.params.taps();
        }
        for isa in Isa::available() {
            let mut all = Vec::new();
            for threads in [1, 2, 3] {
                let pool = ThreadPool::new(threads);
                let y = self.run(KernelContext { pool: &pool, isa }, &x, batch, &residual);
                for (i, (&got, &want)) in y.iter().zip(&exact).enumerate() {
                    let near = (f64::from(got) - want).abs() <= 3e-7 * terms as f64;
                    assert!(near, "{} {i}: {got} for {want}", isa.name());
                }
                all.push(y);
            }
            assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{}", isa.name());
            let pool = ThreadPool::new(2);
            let len = self.result_len();
            for row in 0..batch {
                let x = &x[row * image..][..image];
                let own = &residual[row * len..][..len];
                let alone = self.run(KernelContext { pool: &pool, isa }, x, 1, own);
                assert_eq!(alone, all[0][row * len..][..len], "{} row {row}", isa.name());
            }
        }
    }
}

fn pointwise(cin: usize, cout: usize) -> ConvParams {
    ConvParams::new_2d(cin, cout, [1, 1])
}

fn depthwise(channels: usize, kernel: [usize; 2], stride: usize, pad: usize) -> ConvParams {
    ConvParams {
        stride: [1, stride, stride],
        pads_begin: [0, pad, pad],
        pads_end: [0, pad, pad],
        groups: channels,
        ..ConvParams::new_2d(channels, channels, kernel)
    }
}

const RELU6: ActivationFunction = ActivationFunction::Clip { min: 0.0, max: 6.0 };

fn inverted(cin: usize, filter: ConvParams, cout: usize, size: [usize; 2]) -> Case {
    let wide = filter.in_channels;
    Case {
        first: Some(Part::new(pointwise(cin, wide), 1, RELU6)),
        depthwise: Part::new(filter, 3, RELU6),
        last: Some(Part::new(pointwise(wide, cout), 5, ActivationFunction::None)),
        residual: filter.stride == [1; 3],
        size,
    }
}

#[test]
fn inverted_residuals_equal_the_definition() {
    inverted(8, depthwise(40, [3, 3], 1, 1), 8, [13, 56]).check(2);
    inverted(3, depthwise(35, [3, 3], 2, 1), 21, [30, 29]).check(3);
    inverted(20, depthwise(70, [5, 5], 1, 2), 10, [7, 7]).check(2);
    inverted(5, depthwise(17, [5, 5], 2, 2), 9, [9, 131]).check(1);
    // Deeper than a block of a product.
    inverted(16, depthwise(600, [3, 3], 1, 1), 24, [5, 4]).check(2);
    // A window that leaves rows out, and one that sees padding only.
    inverted(4, depthwise(18, [1, 1], 3, 0), 6, [17, 40]).check(2);
    inverted(4, depthwise(18, [3, 3], 2, 4), 6, [9, 9]).check(1);
}

#[test]
fn chains_may_begin_or_end_with_the_depthwise_convolution() {
    let mut case = inverted(6, depthwise(40, [3, 3], 2, 1), 11, [21, 24]);
    case.first = None;
    case.check(2);
    let mut case = inverted(6, depthwise(40, [3, 3], 1, 1), 11, [21, 24]);
    case.last = None;
    case.depthwise.activation = ActivationFunction::Sigmoid;
    case.check(2);
}

#[test]
fn functions_that_are_no_clamps_follow_every_convolution() {
    let mut case = inverted(6, depthwise(36, [3, 3], 1, 1), 37, [15, 28]);
    for part in [case.first.as_mut(), case.last.as_mut()].into_iter().flatten() {
        part.activation = ActivationFunction::Sigmoid;
    }
    case.depthwise.activation = ActivationFunction::Sigmoid;
    case.check(2);
}

#[test]
fn a_chain_may_begin_with_a_window_over_few_channels() {
    for stride in [1, 2] {
        let stem = ConvParams {
            stride: [1, stride, stride],
            pads_begin: [0, 1, 1],
            pads_end: [0, 1, 1],
            ..ConvParams::new_2d(3, 20, [3, 3])
        };
        let mut case = inverted(3, depthwise(20, [3, 3], 1, 1), 9, [31, 40]);
        case.residual = false;
        case.first = Some(Part::new(stem, 1, RELU6));
        case.check(2);
    }
}

#[test]
fn what_does_not_follow_is_refused() {
    let isa = Isa::detect();
    let pack = |params: ConvParams| Part::new(params, 1, ActivationFunction::None).packed(isa);
    let wide = pack(pointwise(8, 40));
    let filter = pack(depthwise(40, [3, 3], 1, 1));
    let narrow = pack(pointwise(40, 8));
    let link = |packed| ChainLink { packed, epilogue: GemmEpilogue::default() };
    let chain = |first, depthwise, last| ConvChainSpec {
        first: Some(link(first)),
        depthwise: link(depthwise),
        last: Some(link(last)),
    };
    assert!(chain(&wide, &filter, &narrow).fits([1, 9, 9]));
    // Two threads make two of 13 rows twice, and four threads six; images are whole for four.
    assert!(chain(&wide, &filter, &narrow).pays(2, 1, [1, 13, 9]));
    assert!(!chain(&wide, &filter, &narrow).pays(4, 1, [1, 13, 9]));
    assert!(chain(&wide, &filter, &narrow).pays(4, 4, [1, 13, 9]));
    assert!(!chain(&narrow, &filter, &narrow).fits([1, 9, 9]));
    assert!(!chain(&wide, &filter, &wide).fits([1, 9, 9]));
    assert!(!chain(&wide, &narrow, &narrow).fits([1, 9, 9]));
    assert!(!chain(&wide, &filter, &narrow).fits([2, 9, 9]));
    // Rows too long to be kept.
    assert!(!chain(&wide, &filter, &narrow).fits([1, 9, 9000]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn any_chain_equals_the_definition(
        kernel in proptest::array::uniform2(1usize..6),
        (stride, dilation, pad) in (1usize..4, 1usize..3, 0usize..3),
        size in proptest::array::uniform2(1usize..40),
        (cin, wide, cout) in (1usize..20, 2usize..50, 1usize..40),
        (first, last, residual) in (any::<bool>(), any::<bool>(), any::<bool>()),
        batch in 1usize..3,
    ) {
        let filter = ConvParams {
            dilation: [1, dilation, dilation],
            ..depthwise(wide, kernel, stride, pad)
        };
        let out = filter.output_size([1, size[0], size[1]]);
        prop_assume!(!out.contains(&0));
        let case = Case {
            first: first.then(|| Part::new(pointwise(cin, wide), 1, RELU6)),
            depthwise: Part::new(filter, 3, RELU6),
            last: last.then(|| Part::new(pointwise(wide, cout), 5, ActivationFunction::None)),
            residual,
            size,
        };
        case.check(batch);
    }
}
