//! Operators that have no form in a program, and why.

use galatea_graph::Node;

/// Names of operators and the reason.
const REASONS: &[(&[&str], &str)] = &[
    (
        &[
            "ConcatFromSequence",
            "SequenceAt",
            "SequenceConstruct",
            "SequenceEmpty",
            "SequenceErase",
            "SequenceInsert",
            "SequenceLength",
            "SequenceMap",
            "SplitToSequence",
        ],
        "lists of Core ML have elements of one shape, sequences have not",
    ),
    (
        &["Optional", "OptionalGetElement", "OptionalHasElement"],
        "a program has no value that may be absent",
    ),
    (
        &["StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"],
        "a program computes nothing of texts",
    ),
    (&["MaxRoiPool"], "no operation rounds the edges of regions to elements"),
    (&["Unique"], "no operation finds equal elements"),
    (&["MaxUnpool"], "no operation puts elements back to where a pool found them"),
    (&["CumProd"], "no operation has running products"),
    (&["Det"], "no operation has determinants"),
    (&["DFT", "STFT", "MelWeightMatrix"], "no operation has Fourier transforms"),
    (
        &[
            "Bernoulli",
            "Multinomial",
            "RandomNormal",
            "RandomNormalLike",
            "RandomUniform",
            "RandomUniformLike",
        ],
        "Core ML draws other numbers",
    ),
    (&["ImageDecoder"], "a program is given images that are decoded"),
    (
        &["BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitCast"],
        "no operation looks at bits",
    ),
];

/// Why a node has no form.
pub(super) fn reason(node: &Node) -> &'static str {
    let named = REASONS.iter().find(|(names, _)| names.contains(&node.op_type.as_str()));
    match named {
        Some((_, reason)) if node.domain.is_empty() => reason,
        _ => "no operation of a program says the same",
    }
}
