//! How exact a result must be, by the operators that made it.

use std::collections::BTreeSet;

use galatea_tensor::{DataType, Tensor, Tolerance};

/// Operators that call a transcendental function per element: libraries differ in the last bits.
const TRANSCENDENTAL: &[&str] = &[
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Log",
    "Mish",
    "Pow",
    "Reciprocal",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "SwiGLU",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Div",
    "LeakyRelu",
    "PRelu",
    "Mean",
    "Range",
];

/// Units in the last place for those: two functions within 2 of the true value, and as much again
/// for the products around them.
const TRANSCENDENTAL_ULP: u32 = 8;

/// Operators that sum many products, or apply several roundings in a row.
const ACCUMULATING: &[&str] = &[
    "Adagrad",
    "Adam",
    "AffineGrid",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "BiasGelu",
    "CDist",
    "BlackmanWindow",
    "CausalConvWithState",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "CumProd",
    "CumSum",
    "DFT",
    "DeformConv",
    "Det",
    "DynamicQuantizeMatMul",
    "Einsum",
    "EmbedLayerNormalization",
    "FastGelu",
    "FlexAttention",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "GRU",
    "GatherBlockQuantized",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GridSample",
    "GroupNormalization",
    "GroupQueryAttention",
    "HammingWindow",
    "HannWindow",
    "InstanceNormalization",
    "Inverse",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LinearAttention",
    "LinearClassifier",
    "LinearRegressor",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "MeanVarianceNormalization",
    "MelWeightMatrix",
    "Momentum",
    "MultiHeadAttention",
    "NegativeLogLikelihoodLoss",
    "Normalizer",
    "QAttention",
    "QGemm",
    "QuickGelu",
    "RMSNormalization",
    "RNN",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Resize",
    "RoiAlign",
    "RotaryEmbedding",
    "STFT",
    "SVMClassifier",
    "SVMRegressor",
    "Scaler",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "Softmax",
    "SoftmaxCrossEntropyLoss",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "Upsample",
];

/// The tolerance for one output of a model with these operators.
///
/// Sums are as long as the largest input at most. They are kept in the narrowest float type that
/// occurs: the expected values come from NumPy, which rounds after each step. Models of several
/// nodes (the expanded forms of functions) round at each node.
#[must_use]
pub fn tolerance(
    operators: &BTreeSet<String>,
    nodes: usize,
    inputs: &[Tensor],
    expected: &Tensor,
) -> Tolerance {
    let any = |list: &[&str]| operators.iter().any(|name| list.contains(&name.as_str()));
    if any(ACCUMULATING) || (nodes > 1 && any(TRANSCENDENTAL)) {
        let terms = inputs.iter().map(Tensor::elements).max().unwrap_or(1).max(nodes);
        let types = inputs.iter().chain([expected]).map(Tensor::dtype);
        let accumulator = types.filter(|dtype| dtype.is_float()).min_by_key(|dtype| rank(*dtype));
        return Tolerance::Accumulated {
            terms,
            accumulator: accumulator.unwrap_or(DataType::Fp32),
        };
    }
    if any(TRANSCENDENTAL) { Tolerance::Ulp(TRANSCENDENTAL_ULP) } else { Tolerance::Exact }
}

/// Float types by their precision.
fn rank(dtype: DataType) -> u8 {
    match dtype {
        DataType::Bf16 => 0,
        DataType::Fp16 => 1,
        DataType::Fp32 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operator: &str) -> Tolerance {
        let input = Tensor::vector(vec![0_f32; 100]);
        tolerance(&BTreeSet::from([operator.to_owned()]), 1, std::slice::from_ref(&input), &input)
    }

    #[test]
    fn moving_elements_is_exact_and_sums_grow_with_their_length() {
        assert_eq!(of("Transpose"), Tolerance::Exact);
        assert_eq!(of("Exp"), Tolerance::Ulp(TRANSCENDENTAL_ULP));
        let accumulator = DataType::Fp32;
        assert_eq!(of("MatMul"), Tolerance::Accumulated { terms: 100, accumulator });
    }
}
