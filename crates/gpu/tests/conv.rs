//! Convolutions on the device, compared with their reference over windows, strides, groups and layouts, with
//! weights that are known beforehand and such that are not, in both precisions.

use std::collections::HashSet;
use std::sync::Arc;

use crate::support;
use crate::support::node::{Node, floats};
use galatea_gpu::conv::GpuConvKernel;
use galatea_gpu::{
    CooperativeMatrix, DispatchStep, GpuCapabilities, GpuDevice, GpuKernel, PoolConfig, StepTrial,
};
use galatea_graph::ops::convolution::{Conv, ConvTranspose, FusedConv, WindowPadding};
use galatea_graph::ops::fused::FusedActivation;
use galatea_graph::{AttributeValue, Attributes, GALATEA_DOMAIN, Operator, OperatorInputs};
use galatea_runtime::Precision;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::{DataType, Tensor, Tolerance, compare, f16};

fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

fn attributes<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A convolution with weights as an input and as a constant.
fn both(node: &dyn Fn() -> Node, weights: &[usize]) {
    node().input(floats(weights, 1.0)).near(3e-5, 3e-2);
    node().constant(floats(weights, 1.0)).near(3e-5, 3e-2);
}

/// Shapes of image and weights, groups, strides, pads and dilations.
type Case<'a> = (&'a [usize], &'a [usize], i64, [i64; 2], [i64; 4], [i64; 2]);

#[test]
fn windows_strides_pads_and_groups_agree() {
    let cases: &[Case] = &[
        (&[1, 3, 9, 7], &[5, 3, 3, 3], 1, [1, 1], [1, 1, 1, 1], [1, 1]),
        (&[2, 17, 8, 8], &[33, 17, 1, 1], 1, [1, 1], [0, 0, 0, 0], [1, 1]),
        (&[1, 4, 13, 11], &[70, 4, 5, 3], 1, [2, 3], [2, 0, 1, 1], [1, 1]),
        (&[1, 6, 10, 10], &[128, 6, 3, 3], 1, [1, 2], [2, 2, 2, 2], [2, 2]),
        (&[2, 8, 7, 9], &[8, 1, 3, 3], 8, [1, 1], [1, 1, 1, 1], [1, 1]),
        (&[2, 5, 9, 14], &[10, 1, 5, 5], 5, [1, 1], [2, 2, 1, 3], [1, 1]),
        (&[1, 6, 8, 11], &[6, 1, 3, 3], 6, [1, 1], [2, 2, 2, 2], [2, 2]),
        (&[1, 3, 12, 21], &[3, 1, 1, 9], 3, [1, 1], [0, 4, 0, 4], [1, 1]),
        (&[1, 6, 7, 9], &[12, 2, 3, 3], 3, [2, 1], [0, 1, 0, 1], [1, 1]),
        (&[1, 40, 6, 5], &[44, 20, 3, 3], 2, [1, 1], [1, 1, 1, 1], [1, 1]),
    ];
    for (x, w, group, strides, pads, dilations) in cases {
        let attributes = attributes([
            ("group", AttributeValue::Int(*group)),
            ("strides", ints(strides)),
            ("pads", ints(pads)),
            ("dilations", ints(dilations)),
        ]);
        let node = || Node::new("", "Conv").with(attributes.clone()).input(floats(x, 2.0));
        both(&node, w);
    }
}

#[test]
fn one_and_three_axes_agree() {
    both(&|| Node::new("", "Conv").input(floats(&[2, 3, 19], 1.0)), &[4, 3, 5]);
    both(&|| Node::new("", "Conv").input(floats(&[1, 2, 5, 6, 7], 1.0)), &[3, 2, 2, 3, 3]);
    both(&|| Node::new("", "ConvTranspose").input(floats(&[2, 3, 9], 1.0)), &[3, 4, 3]);
}

#[test]
fn images_grow_as_the_reference_says() {
    for (strides, pads, group) in [([1, 1], [0, 0, 0, 0], 1), ([2, 3], [1, 0, 1, 2], 2)] {
        let attributes = attributes([
            ("strides", ints(&strides)),
            ("pads", ints(&pads)),
            ("group", AttributeValue::Int(group)),
        ]);
        let node = || {
            let x = floats(&[2, 6, 5, 4], 1.0);
            Node::new("", "ConvTranspose").with(attributes.clone()).input(x)
        };
        both(&node, &[6, 5, 3, 3]);
    }
}

#[test]
fn bias_residual_and_activation_are_added_in_both_layouts() {
    for (last, image, result) in [(0, [2, 5, 6, 7], [2, 9, 6, 7]), (1, [2, 6, 7, 5], [2, 6, 7, 9])]
    {
        for activation in ["Relu", "Silu", ""] {
            let attributes = attributes([
                ("channels_last", AttributeValue::Int(last)),
                ("pads", ints(&[1, 1, 1, 1])),
                ("activation", AttributeValue::String(activation.into())),
            ]);
            Node::new(GALATEA_DOMAIN, "FusedConv")
                .with(attributes)
                .input(floats(&image, 2.0))
                .constant(floats(&[9, 5, 3, 3], 1.0))
                .constant(floats(&[9], 1.0))
                .input(floats(&result, 3.0))
                .near(3e-5, 3e-2);
        }
    }
}

/// In FP16 these go through cooperative matrices where the device has them, as the others do.
#[test]
fn images_of_many_pixels_agree() {
    for (x, w, strides) in [
        (&[1, 3, 33, 31], &[40, 3, 7, 7], [2, 2]),
        (&[2, 24, 19, 20], &[130, 24, 1, 1], [1, 1]),
        (&[1, 32, 21, 17], &[96, 32, 1, 1], [2, 2]),
    ] as [(&[usize], &[usize], [i64; 2]); 3]
    {
        let with = attributes([("strides", ints(&strides)), ("pads", ints(&[w[2] as i64 / 2; 4]))]);
        let node = Node::new("", "Conv").with(with).input(floats(x, 2.0));
        node.constant(floats(w, 0.2)).constant(floats(&w[..1], 1.0)).near(3e-5, 3e-2);
    }
}

/// Large tiles lose a digit in FP32: factors of their transforms are up to 8.
#[test]
fn windows_of_three_by_three_go_through_short_products() {
    let cases: &[(&[usize], &[usize], [i64; 4])] = &[
        (&[1, 64, 9, 13], &[64, 64, 3, 3], [1, 1, 1, 1]),
        (&[3, 67, 4, 5], &[71, 67, 3, 3], [1, 0, 2, 1]),
        (&[1, 65, 1, 1], &[64, 65, 3, 3], [1, 1, 1, 1]),
    ];
    for (x, w, pads) in cases {
        let with = attributes([("pads", ints(pads))]);
        let node = Node::new("", "Conv").with(with).input(floats(x, 2.0));
        node.constant(floats(w, 0.1)).constant(floats(&w[..1], 1.0)).near(1e-4, 3e-2);
    }
    for (last, image, result) in
        [(0, [2, 64, 9, 8], [2, 66, 9, 8]), (1, [2, 9, 8, 64], [2, 9, 8, 66])]
    {
        let attributes = attributes([
            ("channels_last", AttributeValue::Int(last)),
            ("pads", ints(&[1, 1, 1, 1])),
            ("activation", AttributeValue::String("Relu".into())),
        ]);
        Node::new(GALATEA_DOMAIN, "FusedConv")
            .with(attributes)
            .input(floats(&image, 2.0))
            .constant(floats(&[66, 64, 3, 3], 0.1))
            .constant(floats(&[66], 1.0))
            .input(floats(&result, 3.0))
            .near(1e-4, 3e-2);
    }
}

/// A tensor of floats in a type.
fn lying(tensor: &Tensor, dtype: DataType) -> Tensor {
    if dtype == DataType::Fp32 {
        return tensor.clone();
    }
    let all = tensor.to_vec::<f32>().unwrap().into_iter().map(f16::from_f32).collect();
    Tensor::from_vec(tensor.shape(), all).unwrap()
}

/// A tensor as FP32.
fn widened(tensor: &Tensor) -> Tensor {
    if tensor.dtype() == DataType::Fp32 {
        return tensor.clone();
    }
    let all = tensor.to_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect();
    Tensor::from_vec(tensor.shape(), all).unwrap()
}

/// A convolution with bias, residual and activation in every way.
fn every_way(
    device: &Arc<GpuDevice>,
    dtype: DataType,
    fused: &FusedConv,
    (x, w): (&[usize], &[usize]),
    noted: (&mut HashSet<String>, &mut Vec<String>),
) {
    let [x, w] = [floats(x, 1.0), floats(w, 0.2)].map(|tensor| lying(&tensor, dtype));
    let bias = lying(&floats(&w.shape()[..1], 1.0), dtype);
    let plain = [&x, &w].map(Some);
    let shape = fused.conv.reference(OperatorInputs::new(&plain)).unwrap()[0].shape().to_vec();
    let residual = lying(&floats(&shape, 1.0), dtype);
    let kernel = |precision| GpuConvKernel::new(fused, &w, device, precision);
    compared((device, dtype), &kernel, fused, &[&x, &w, &bias, &residual], noted);
}

/// All ways of a kernel, whatever is chosen unasked, that were not seen yet; their kinds are noted.
fn compared(
    (device, dtype): (&Arc<GpuDevice>, DataType),
    kernel: &dyn Fn(Precision) -> GpuConvKernel,
    operator: &dyn Operator,
    inputs: &[&Tensor],
    (seen, kinds): (&mut HashSet<String>, &mut Vec<String>),
) {
    let wide: Vec<Tensor> = inputs.iter().map(|tensor| widened(tensor)).collect();
    let wide: Vec<Option<&Tensor>> = wide.iter().map(Some).collect();
    let expected = operator.reference(OperatorInputs::new(&wide)).unwrap().remove(0);
    let shape = expected.shape().to_vec();
    let slot = |tensor: &Tensor| Some(ValueShape::new(tensor.dtype(), tensor.shape().to_vec()));
    let shapes = NodeShapes {
        inputs: inputs.iter().map(|tensor| slot(tensor)).collect(),
        outputs: vec![Some(ValueShape::new(dtype, shape.clone()))],
        constants: vec![None, Some(inputs[1].clone()), None, None],
    };
    let precision = if dtype == DataType::Fp16 { Precision::Fp16 } else { Precision::Fp32 };
    let bytes: Vec<&[u8]> = inputs.iter().map(|tensor| tensor.as_bytes().unwrap()).collect();
    let bytes: Vec<Option<&[u8]>> = bytes.into_iter().map(Some).collect();
    let size = shape.iter().product::<usize>() * dtype.size_bytes().unwrap();
    let near = if dtype == DataType::Fp16 { 3e-2 } else { 2e-4 };
    for (way, estimate) in kernel(precision).ways(&shapes).unwrap() {
        assert!(estimate > 0.0 && estimate.is_finite(), "{way:?}: {estimate}");
        let name = format!("{way:?}");
        let kind = name.split('(').next().unwrap_or_default().to_owned();
        // The processor compiles tiles of matrices for seconds.
        let named = matches!(kind.as_str(), "Direct" | "Product" | "Windows" | "Columns");
        let most = if named { 8 } else { 1 };
        let few = kind == "Cooperative" || dtype == DataType::Fp16 && kind != "Direct";
        let enough = device.capabilities().software
            && few
            && kinds.iter().filter(|one| **one == kind).count() >= most;
        if enough || !named && !seen.insert(format!("{name} {dtype}")) {
            continue;
        }
        let mut step = DispatchStep::default();
        kernel(precision).forcing(way).bind(&shapes, &mut step).unwrap();
        let trial = StepTrial::new(device, &step, &bytes, &[size as u64 + 16], 1).unwrap();
        trial.run(1).unwrap();
        let found = Tensor::from_bytes(dtype, &shape, &trial.output(0, size).unwrap()).unwrap();
        compare(&widened(&found), &expected, Tolerance::Within(near))
            .map_err(|error| format!("{way:?}: {error}"))
            .unwrap();
        kinds.push(kind);
    }
}

#[test]
fn every_way_to_grow_computes_the_same() {
    let Some(device) = support::device() else { return };
    let (mut seen, mut kinds) = (HashSet::new(), Vec::new());
    for dtype in [DataType::Fp32, DataType::Fp16] {
        if dtype == DataType::Fp16 && !device.capabilities().f16 {
            continue;
        }
        let cases: [(_, &[usize], &[usize], _, _); 4] = [
            (1, &[2, 12, 5, 6], &[12, 9, 2, 2], [2, 2], [0; 4]),
            (2, &[2, 6, 5, 4], &[6, 5, 3, 3], [2, 3], [1, 0, 1, 2]),
            (1, &[1, 35, 7, 9], &[35, 34, 3, 3], [1, 1], [1; 4]),
            (1, &[3, 8, 1, 1], &[8, 70, 4, 4], [1, 1], [0; 4]),
        ];
        for (group, x, w, strides, pads) in cases {
            let back = ConvTranspose {
                kernel_shape: None,
                strides: strides.to_vec(),
                dilations: Vec::new(),
                pads: WindowPadding::Explicit(pads.to_vec()),
                output_padding: Vec::new(),
                output_shape: None,
                group,
            };
            let channels = w[1] * group;
            let [x, w] = [floats(x, 1.0), floats(w, 0.2)].map(|tensor| lying(&tensor, dtype));
            let bias = lying(&floats(&[channels], 1.0), dtype);
            let kernel = |precision| GpuConvKernel::transposed(&back, &w, &device, precision);
            let noted = (&mut seen, &mut kinds);
            compared((&device, dtype), &kernel, &back, &[&x, &w, &bias], noted);
        }
    }
    for kind in ["Columns", "Tiled"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind} is not among {kinds:?}");
    }
}

#[test]
fn every_way_computes_the_same() {
    let Some(device) = support::device() else { return };
    let conv = |stride, group, channels_last| FusedConv {
        conv: Conv {
            kernel_shape: None,
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads: WindowPadding::Explicit(vec![1; 4]),
            group,
            channels_last,
        },
        activation: FusedActivation::Silu,
    };
    let bare = |stride, channels_last| {
        let fused = conv(stride, 1, channels_last);
        FusedConv {
            conv: Conv { pads: WindowPadding::Explicit(vec![0; 4]), ..fused.conv },
            ..fused
        }
    };
    let cases: [(FusedConv, &[usize], &[usize]); 10] = [
        (bare(1, false), &[3, 36, 5, 8], &[40, 36, 1, 1]),
        (bare(1, false), &[2, 19, 7, 5], &[33, 19, 1, 1]),
        (bare(1, true), &[2, 5, 7, 20], &[12, 20, 1, 1]),
        (bare(1, false), &[5, 24, 1, 1], &[17, 24, 1, 1]),
        (bare(2, false), &[2, 13, 9, 10], &[20, 13, 1, 1]),
        // Windows are read where they lie.
        (bare(1, true), &[2, 6, 7, 16], &[9, 16, 2, 2]),
        (conv(1, 1, false), &[2, 17, 13, 18], &[36, 17, 3, 3]),
        (conv(1, 1, true), &[1, 11, 15, 16], &[33, 16, 3, 3]),
        (conv(2, 1, false), &[1, 7, 25, 23], &[128, 7, 3, 3]),
        (conv(1, 2, false), &[1, 4, 6, 5], &[6, 2, 3, 3]),
    ];
    let (mut seen, mut kinds) = (HashSet::new(), Vec::new());
    for dtype in [DataType::Fp32, DataType::Fp16] {
        if dtype == DataType::Fp16 && !device.capabilities().f16 {
            continue;
        }
        for (fused, x, w) in &cases {
            every_way(&device, dtype, fused, (x, w), (&mut seen, &mut kinds));
        }
    }
    let matrices = device.capabilities().wide_cooperative().is_some();
    for kind in ["Direct", "Product", "Tiled", "Winograd", "Windows"]
        .into_iter()
        .chain(matrices.then_some("Cooperative"))
    {
        assert!(kinds.iter().any(|one| one == kind), "{kind} is not among {kinds:?}");
    }
}

/// A large GPU with cooperative matrices.
fn large() -> GpuCapabilities {
    let matrices = vec![CooperativeMatrix { size: 16, wide_sums: true }];
    GpuCapabilities {
        name: "some GPU".into(),
        f16: true,
        subgroup: Some((32, 32)),
        cooperative: matrices,
        wide_matrices: true,
        binding_bytes: 4 << 30,
        buffer_bytes: 4 << 30,
        workgroup_bytes: 48 << 10,
        workgroup_threads: 1024,
        workgroups: 65_535,
        alignment: 256,
        ..GpuCapabilities::default()
    }
}

/// Names of the way that is taken unasked, with pads that keep lengths.
fn usual(
    device: &Arc<GpuDevice>,
    dtype: DataType,
    [n, c, side, m, r, stride, group]: [usize; 7],
) -> String {
    let conv = Conv {
        kernel_shape: None,
        strides: vec![stride; 2],
        dilations: vec![1; 2],
        pads: WindowPadding::Explicit(vec![r / 2; 4]),
        group,
        channels_last: false,
    };
    let fused = FusedConv { conv, activation: FusedActivation::None };
    let w = lying(&floats(&[m, c / group, r, r], 0.1), dtype);
    let out = (side + r / 2 * 2 - r) / stride + 1;
    let shapes = NodeShapes {
        inputs: vec![
            Some(ValueShape::new(dtype, vec![n, c, side, side])),
            Some(ValueShape::new(dtype, w.shape().to_vec())),
        ],
        outputs: vec![Some(ValueShape::new(dtype, vec![n, m, out, out]))],
        constants: vec![None, Some(w.clone())],
    };
    let precision = if dtype == DataType::Fp16 { Precision::Fp16 } else { Precision::Fp32 };
    let way = GpuConvKernel::new(&fused, &w, device, precision).ways(&shapes).unwrap()[0].0;
    format!("{way:?}")
}

/// Checks that the usual algorithm is the one that was measured to be the fastest on such a device.
#[test]
fn the_usual_way_goes_by_lengths_and_device() {
    let device = GpuDevice::imagined(large(), &PoolConfig::default()).unwrap();
    let (wide, half) = (DataType::Fp32, DataType::Fp16);
    let (large, small) =
        ("Winograd(WinogradConfig { tile: 4 })", "Winograd(WinogradConfig { tile: 2 })");
    let all: &[(DataType, [usize; 7], &str)] = &[
        (wide, [32, 64, 56, 64, 3, 1, 1], large),
        (wide, [1, 64, 56, 64, 3, 1, 1], large),
        (wide, [32, 256, 14, 256, 3, 1, 1], small),
        (wide, [1, 256, 14, 256, 3, 1, 1], small),
        // The largest tiles pay where products take most of the time, or images are large.
        (wide, [8, 512, 28, 512, 3, 1, 1], "Winograd(WinogradConfig { tile: 6 })"),
        (wide, [1, 64, 224, 64, 3, 1, 1], "Winograd(WinogradConfig { tile: 6 })"),
        (wide, [8, 128, 56, 128, 3, 1, 1], large),
        (wide, [32, 128, 28, 128, 3, 1, 1], large),
        (wide, [1, 128, 28, 128, 3, 1, 1], large),
        (half, [32, 256, 14, 256, 3, 1, 1], small),
        (half, [1, 256, 14, 256, 3, 1, 1], small),
        (half, [32, 512, 7, 512, 3, 1, 1], small),
        (half, [1, 512, 7, 512, 3, 1, 1], small),
        // Other steps and windows have no short products, and where there are few channels transforms do not pay.
        (wide, [32, 128, 56, 128, 3, 2, 1], "Windows"),
        (wide, [1, 128, 56, 128, 3, 2, 1], "Windows"),
        (wide, [32, 3, 224, 64, 7, 2, 1], "Tiled"),
        (wide, [1, 3, 224, 64, 7, 2, 1], "Tiled"),
        (half, [32, 64, 56, 64, 3, 1, 1], "Windows"),
        (half, [32, 128, 28, 128, 3, 1, 1], "Windows"),
        (half, [32, 128, 56, 128, 3, 2, 1], "Windows"),
        (half, [1, 128, 56, 128, 3, 2, 1], "Windows"),
        (half, [32, 3, 224, 64, 7, 2, 1], "Windows"),
        (half, [1, 3, 224, 64, 7, 2, 1], "Cooperative"),
        (half, [32, 256, 56, 512, 1, 2, 1], "Windows"),
        // Pixels by themselves need no windows, but where an image's do not lie by fours.
        (wide, [32, 256, 56, 64, 1, 1, 1], "Tiled"),
        (wide, [1, 256, 56, 64, 1, 1, 1], "Product"),
        (half, [32, 1024, 14, 256, 1, 1, 1], "Product"),
        (half, [1, 1024, 14, 256, 1, 1, 1], "Product"),
        (half, [32, 256, 56, 64, 1, 1, 1], "Product"),
        (half, [1, 256, 56, 64, 1, 1, 1], "Product"),
        (half, [32, 512, 7, 2048, 1, 1, 1], "Windows"),
        (half, [1, 512, 7, 2048, 1, 1, 1], "Product"),
        // One channel a group: a product would be mostly zeros.
        (wide, [1, 96, 56, 96, 3, 1, 96], "Direct"),
        (half, [32, 96, 56, 96, 3, 1, 96], "Direct"),
        (half, [1, 96, 56, 96, 3, 1, 96], "Direct"),
    ];
    for &(dtype, lengths, way) in all {
        let found = usual(&device, dtype, lengths);
        assert!(found.starts_with(way), "{dtype} {lengths:?}: {found}");
    }
}
