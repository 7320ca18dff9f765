//! Operators of domain `com.microsoft` that exporters and optimisers write.

mod aliases;
mod attention;
mod bifurcation_detector;
mod c_dist;
mod crop_and_resize;
mod decoder_masked_attention;
mod diffusion;
mod dynamic_quantize_lstm;
mod dynamic_time_warping;
mod embed_layer_normalization;
mod engram_gate;
mod fused_product;
mod gated_add;
mod gated_delta_net;
mod gated_rms_norm;
mod gather_block_quantized;
mod gather_packed;
mod gelu;
mod group_query_attention;
mod hyper_connection;
mod integer_product;
mod inverse;
mod joined_rows;
mod key_mask;
mod m_rotary_embedding;
mod mat_mul_bnb4;
mod mat_mul_fp_q4;
mod mat_mul_n_bits;
mod moe;
mod moe_group_router;
mod multi_head_attention;
mod murmur_hash3;
mod n_gram_hash_mapping;
mod n_gram_repeat_block;
mod q_attention;
mod q_embed_layer_normalization;
mod q_gemm;
mod q_linear;
mod q_moe;
mod rotary_embedding;
mod scaled_silu;
mod search;
mod skip_normalization;
mod sparse_attention;
mod sparse_to_dense_mat_mul;
mod tokenizer;
mod unfold_tensor;
mod unique;
mod varlen_causal_conv;
mod word_conv_embedding;

pub use aliases::{ExpandDims, OptionalStepRange};
pub use attention::ContribAttention;
pub use bifurcation_detector::BifurcationDetector;
pub use c_dist::CDist;
pub use crop_and_resize::CropAndResize;
pub use decoder_masked_attention::DecoderMaskedAttention;
pub use diffusion::{BiasSplitGelu, ContribGroupNorm};
pub use dynamic_quantize_lstm::DynamicQuantizeLstm;
pub use dynamic_time_warping::DynamicTimeWarping;
pub use embed_layer_normalization::EmbedLayerNormalization;
pub use engram_gate::EngramGate;
pub use fused_product::{FusedGemm, OperandTransposition, TurnedMatMul};
pub use gated_add::GatedAdd;
pub use gated_delta_net::{DecayGate, GatedDeltaNet};
pub use gated_rms_norm::{GatedRmsNorm, LinearAttentionGate};
pub use gather_block_quantized::GatherBlockQuantized;
pub use gather_packed::{GatherPacked, PackedFormat};
pub use gelu::BiasActivation;
pub use group_query_attention::GroupQueryAttention;
pub use hyper_connection::{BranchwiseRmsNorm, ResidualLayout, StreamPostMix, StreamPreMix};
pub use integer_product::{DynamicQuantizeMatMul, MatMulIntegerToFloat};
pub use inverse::Inverse;
pub use m_rotary_embedding::MultiRotaryEmbedding;
pub use mat_mul_bnb4::MatMulBnb4;
pub use mat_mul_fp_q4::MatMulFpQ4;
pub use mat_mul_n_bits::MatMulNBits;
pub use moe::{ExpertActivation, ExpertRouting, MixtureOfExperts};
pub use moe_group_router::ExpertGroups;
pub use multi_head_attention::MultiHeadAttention;
pub use murmur_hash3::MurmurHash3;
pub use n_gram_hash_mapping::{NGramHashMapping, TextLayout};
pub use n_gram_repeat_block::NGramRepeatBlock;
pub use q_attention::QAttention;
pub use q_embed_layer_normalization::QEmbedLayerNormalization;
pub use q_gemm::QGemm;
pub use q_linear::QLinear;
pub use q_moe::{QuantizedExperts, WeightCodes};
pub use rotary_embedding::ContribRotaryEmbedding;
pub use scaled_silu::ScaledSilu;
pub use search::{BeamSearch, TokenChoice, TokenSearch, TopShare};
pub use skip_normalization::SkipNormalization;
pub use sparse_attention::SparseAttention;
pub use sparse_to_dense_mat_mul::SparseToDenseMatMul;
pub use tokenizer::{LongestPattern, TokenizerRule, WordTokenizer};
pub use unfold_tensor::UnfoldTensor;
pub use unique::ContribUnique;
pub use varlen_causal_conv::VarlenCausalConv;
pub use word_conv_embedding::WordConvEmbedding;

use crate::operator::{Arity, OpDef};
use crate::ops::AttributeParser;
use crate::ops::convolution::{ActivatedConv, Conv, ConvTransposeWithDynamicPads, QLinearConv};
use crate::ops::math::{BinaryKind, Variadic, VariadicKind};
use crate::ops::matrix::MatMulInteger16;
use crate::ops::normalize::RmsNormalization;
use crate::ops::pooling::{MaxPool, MaxPoolWithMask};
use crate::ops::quantize::{DequantizeLinear, QuantizeLinear};
use crate::ops::recurrent::AttentionLstm;
use crate::ops::shape::{Identity, Trilu};
use crate::traits::OpTraits;

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);

const fn row(name: &'static str, inputs: Arity, outputs: Arity, parse: AttributeParser) -> OpDef {
    OpDef {
        domain: "com.microsoft",
        name,
        since: 1,
        inputs,
        outputs,
        parse,
        traits: OpTraits::NONE,
    }
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    row("Tokenizer", ONE, ONE, WordTokenizer::parse),
    row("BiasGelu", TWO, ONE, BiasActivation::gelu).elementwise().accumulating(),
    row("FastGelu", Arity::between(1, 2), ONE, BiasActivation::fast_gelu)
        .elementwise()
        .accumulating(),
    row("Gelu", ONE, ONE, BiasActivation::gelu).elementwise_of_first().transcendental(),
    row("QuickGelu", ONE, ONE, BiasActivation::quick_gelu).elementwise_of_first().accumulating(),
    row(
        "SkipLayerNormalization",
        Arity::between(3, 5),
        Arity::between(1, 4),
        SkipNormalization::parse,
    )
    .accumulating(),
    row(
        "SkipSimplifiedLayerNormalization",
        Arity::between(3, 4),
        Arity::between(1, 4),
        SkipNormalization::parse_simplified,
    )
    .accumulating(),
    // Exporters also write this one in ONNX's own domain, which it never became part of.
    row("SimplifiedLayerNormalization", TWO, ONE, RmsNormalization::parse).accumulating(),
    OpDef::onnx("SimplifiedLayerNormalization", 1, TWO, ONE, RmsNormalization::parse)
        .accumulating(),
    row(
        "EmbedLayerNormalization",
        Arity::between(7, 9),
        Arity::between(1, 3),
        EmbedLayerNormalization::parse,
    )
    .accumulating(),
    row("Attention", Arity::between(2, 7), Arity::between(1, 2), ContribAttention::parse)
        .accumulating(),
    row(
        "MultiHeadAttention",
        Arity::between(1, 8),
        Arity::between(1, 3),
        MultiHeadAttention::parse,
    )
    .accumulating(),
    row(
        "GroupQueryAttention",
        Arity::between(7, 16),
        Arity::between(1, 3),
        GroupQueryAttention::parse,
    )
    .accumulating(),
    row("RotaryEmbedding", Arity::exactly(4), ONE, ContribRotaryEmbedding::parse).accumulating(),
    row("MRotaryEmbedding", Arity::exactly(4), ONE, MultiRotaryEmbedding::parse).accumulating(),
    row("MoEGroupRouter", TWO, Arity::between(1, 3), ExpertGroups::parse).accumulating(),
    row("FusedMatMul", TWO, ONE, TurnedMatMul::parse).accumulating(),
    row("TransposeMatMul", TWO, ONE, TurnedMatMul::parse),
    row("FusedGemm", Arity::between(2, 3), ONE, FusedGemm::parse).accumulating(),
    row("FusedConv", Arity::between(2, 4), ONE, ActivatedConv::parse_channels_first).accumulating(),
    row("NhwcConv", Arity::between(2, 3), ONE, Conv::parse_channels_last),
    row("NhwcFusedConv", Arity::between(2, 4), ONE, ActivatedConv::parse_channels_last),
    row("Inverse", ONE, ONE, |_| Ok(Box::new(Inverse))).accumulating(),
    row("Trilu", Arity::between(1, 2), ONE, Trilu::parse),
    row("MatMulNBits", Arity::between(3, 6), ONE, MatMulNBits::parse).accumulating(),
    row("MatMulIntegerToFloat", Arity::between(4, 7), ONE, |_| Ok(Box::new(MatMulIntegerToFloat)))
        .accumulating(),
    row("DynamicQuantizeMatMul", Arity::between(3, 5), ONE, |_| {
        Ok(Box::new(DynamicQuantizeMatMul))
    })
    .accumulating(),
    row("GatherBlockQuantized", Arity::between(3, 4), ONE, GatherBlockQuantized::parse)
        .accumulating(),
    row("QuantizeLinear", Arity::between(2, 3), ONE, |context| {
        // The newest version of ONNX covers all types of this domain's.
        context.opset = 21;
        QuantizeLinear::parse(context)
    }),
    row("DequantizeLinear", Arity::between(2, 3), ONE, |context| {
        context.opset = 21;
        DequantizeLinear::parse(context)
    }),
    row("QAttention", Arity::between(5, 9), Arity::between(1, 2), QAttention::parse).accumulating(),
    row("QGemm", Arity::between(6, 9), ONE, QGemm::parse).accumulating(),
    row(
        "DynamicQuantizeLSTM",
        Arity::exactly(12),
        Arity::between(0, 3),
        DynamicQuantizeLstm::parse,
    ),
    row(
        "QEmbedLayerNormalization",
        Arity::exactly(18),
        Arity::exactly(2),
        QEmbedLayerNormalization::parse,
    )
    .accumulating(),
    row("MatMulBnb4", Arity::exactly(3), ONE, MatMulBnb4::parse).accumulating(),
    row("MatMulInteger16", TWO, ONE, |_| Ok(Box::new(MatMulInteger16))),
    row("MoE", Arity::between(5, 8), ONE, MixtureOfExperts::parse).accumulating(),
    row("QMoE", Arity::between(6, 21), ONE, QuantizedExperts::parse).accumulating(),
    row("MatMulFpQ4", Arity::exactly(3), ONE, MatMulFpQ4::parse).accumulating(),
    row("SparseToDenseMatMul", TWO, ONE, SparseToDenseMatMul::parse).accumulating(),
    row("SparseAttention", Arity::between(9, 11), Arity::exactly(3), SparseAttention::parse)
        .accumulating(),
    row(
        "DecoderMaskedMultiHeadAttention",
        Arity::between(1, 11),
        Arity::between(1, 4),
        DecoderMaskedAttention::parse,
    )
    .accumulating(),
    row("BeamSearch", Arity::between(5, 12), Arity::between(1, 3), BeamSearch::parse),
    row("GreedySearch", Arity::between(2, 7), ONE, TokenSearch::greedy),
    row("Sampling", Arity::between(2, 9), Arity::between(1, 2), TokenSearch::sampling),
    row("NGramRepeatBlock", TWO, ONE, NGramRepeatBlock::parse),
    row(
        "BifurcationDetector",
        Arity::between(3, 4),
        Arity::between(1, 2),
        BifurcationDetector::parse,
    ),
    row("GatedRMSNorm", Arity::exactly(3), ONE, GatedRmsNorm::parse).accumulating(),
    row(
        "LinearAttentionGate",
        Arity::between(3, 4),
        Arity::between(1, 2),
        LinearAttentionGate::parse,
    )
    .accumulating(),
    row("BranchwiseRMSNorm", Arity::between(1, 2), ONE, BranchwiseRmsNorm::parse).accumulating(),
    row("HyperConnectionPreMix", TWO, ONE, StreamPreMix::parse).accumulating(),
    row("HyperConnectionPostMix", Arity::between(3, 4), ONE, StreamPostMix::parse).accumulating(),
    row("EngramGate", Arity::between(5, 6), Arity::between(1, 2), EngramGate::parse).accumulating(),
    row(
        "NGramHashMapping",
        Arity::between(3, 7),
        Arity::between(1, 2),
        NGramHashMapping::parse_rows,
    ),
    row(
        "VarlenNGramHashMapping",
        Arity::between(4, 9),
        Arity::between(1, 3),
        NGramHashMapping::parse_joined,
    ),
    row("MurmurHash3", ONE, ONE, MurmurHash3::parse),
    row("UnfoldTensor", ONE, ONE, UnfoldTensor::parse),
    row("DynamicTimeWarping", ONE, ONE, |_| Ok(Box::new(DynamicTimeWarping))),
    row("CropAndResize", Arity::exactly(4), ONE, CropAndResize::parse).accumulating(),
    row("WordConvEmbedding", Arity::exactly(4), ONE, WordConvEmbedding::parse).accumulating(),
    row("MaxpoolWithMask", TWO, ONE, MaxPoolWithMask::parse),
    row(
        "ConvTransposeWithDynamicPads",
        Arity::between(2, 4),
        ONE,
        ConvTransposeWithDynamicPads::parse,
    )
    .accumulating(),
    row("GatedAdd", Arity::between(3, 4), ONE, |_| Ok(Box::new(GatedAdd))),
    row("ScaledSiLU", Arity::between(1, 2), ONE, ScaledSilu::parse).accumulating(),
    row("SampleOp", ONE, ONE, |_| Ok(Box::new(Identity))),
    row("Unique", ONE, Arity::exactly(3), |_| Ok(Box::new(ContribUnique))),
    row("CDist", TWO, ONE, CDist::parse).accumulating(),
    row("BiasAdd", Arity::exactly(3), ONE, |_| Variadic::boxed_over_first(VariadicKind::Sum))
        .elementwise(),
    row("BiasSplitGelu", TWO, ONE, |_| Ok(Box::new(BiasSplitGelu))),
    row("GroupNorm", Arity::exactly(3), ONE, ContribGroupNorm::parse),
    row("ExpandDims", TWO, ONE, |_| Ok(Box::new(ExpandDims))),
    row("Range", Arity::between(2, 3), ONE, |_| Ok(Box::new(OptionalStepRange))).transcendental(),
    row("GridSample", TWO, ONE, aliases::grid_sample).accumulating(),
    row("GatherND", TWO, ONE, aliases::gather_nd),
    row("Pad", Arity::between(2, 3), ONE, aliases::pad),
    row("CausalConvWithState", Arity::between(2, 4), Arity::between(1, 2), aliases::causal_conv)
        .accumulating(),
    row("LinearAttention", Arity::between(3, 6), Arity::between(1, 2), aliases::linear_attention)
        .accumulating(),
    row(
        "VarlenCausalConvWithState",
        Arity::between(5, 8),
        Arity::between(2, 3),
        VarlenCausalConv::parse,
    )
    .accumulating(),
    row("GatedDeltaNet", Arity::between(1, 11), Arity::between(1, 3), GatedDeltaNet::parse)
        .accumulating(),
    row("GatherPacked", TWO, ONE, GatherPacked::parse).accumulating(),
    row("AttnLSTM", Arity::between(12, 14), Arity::between(0, 3), AttentionLstm::parse)
        .accumulating(),
    row("NhwcMaxPool", ONE, ONE, MaxPool::parse_channels_last),
    row("QLinearConv", Arity::between(8, 9), ONE, QLinearConv::parse_layout),
    row("QLinearAdd", Arity::between(7, 8), ONE, |_| QLinear::binary(BinaryKind::Add)),
    row("QLinearMul", Arity::between(7, 8), ONE, |_| QLinear::binary(BinaryKind::Mul)),
    row("QLinearAveragePool", Arity::between(4, 5), ONE, QLinear::average_pool),
    row("QLinearGlobalAveragePool", Arity::exactly(5), ONE, QLinear::global_average_pool),
    row("QLinearLeakyRelu", Arity::between(4, 5), ONE, QLinear::leaky_relu),
    row("QLinearSigmoid", Arity::between(4, 5), ONE, QLinear::sigmoid),
    row("QLinearSoftmax", Arity::exactly(5), ONE, QLinear::softmax),
    row("QLinearReduceMean", Arity::between(4, 5), ONE, QLinear::reduce_mean),
    row("QLinearWhere", Arity::exactly(9), ONE, QLinear::select),
    row("QLinearConcat", Arity::at_least(5), ONE, QLinear::concat),
];
