//! Classical machine learning: the domain `ai.onnx.ml`.

mod array_feature_extractor;
mod binarizer;
mod cast_map;
mod category_mapper;
mod dict_vectorizer;
mod feature_vectorizer;
mod forest;
mod imputer;
mod kernel;
mod label_encoder;
mod labels;
mod linear_classifier;
mod linear_regressor;
#[cfg(test)]
mod mutations;
mod node_lists;
mod normalizer;
mod one_hot_encoder;
mod post_transform;
mod rows;
mod scaler;
mod svm_classifier;
mod svm_regressor;
mod tree_ensemble;
mod tree_ensemble_classifier;
mod tree_ensemble_regressor;
mod zip_map;

pub use array_feature_extractor::ArrayFeatureExtractor;
pub use binarizer::Binarizer;
pub use cast_map::CastMap;
pub use category_mapper::CategoryMapper;
pub use dict_vectorizer::DictVectorizer;
pub use feature_vectorizer::FeatureVectorizer;
pub use forest::{
    BranchComparison, BranchLink, CheckedForest, ForestBranch, LeafVote, RowScores, VoteAggregate,
};
pub use imputer::{Imputer, ImputerRule};
pub use kernel::{KernelKind, SvmKernel};
pub use label_encoder::{KeyPositions, LabelEncoder, LabelKey};
pub use labels::{ClassChoice, ClassifierLabels};
pub use linear_classifier::LinearClassifier;
pub use linear_regressor::LinearRegressor;
pub use normalizer::{Normalizer, VectorNorm};
pub use one_hot_encoder::OneHotEncoder;
pub use post_transform::PostTransform;
pub use rows::ScorePrecision;
pub use scaler::Scaler;
pub use svm_classifier::SvmClassifier;
pub use svm_regressor::SvmRegressor;
pub use tree_ensemble::TreeRegression;
pub use tree_ensemble_classifier::TreeEnsembleClassifier;
pub use zip_map::ZipMap;

use crate::operator::{Arity, OpDef};
use crate::traits::OpTraits;

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);

/// A row of the domain.
const fn ml(
    name: &'static str,
    since: i64,
    inputs: Arity,
    outputs: Arity,
    parse: super::AttributeParser,
) -> OpDef {
    OpDef { domain: crate::ML_DOMAIN, name, since, inputs, outputs, parse, traits: OpTraits::NONE }
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    ml("ArrayFeatureExtractor", 1, TWO, ONE, ArrayFeatureExtractor::parse),
    ml("Binarizer", 1, ONE, ONE, Binarizer::parse),
    ml("CastMap", 1, ONE, ONE, CastMap::parse),
    ml("CategoryMapper", 1, ONE, ONE, CategoryMapper::parse),
    ml("DictVectorizer", 1, ONE, ONE, DictVectorizer::parse),
    ml("FeatureVectorizer", 1, Arity::at_least(1), ONE, FeatureVectorizer::parse),
    ml("Imputer", 1, ONE, ONE, Imputer::parse),
    ml("LabelEncoder", 1, ONE, ONE, CategoryMapper::parse_classes),
    ml("LabelEncoder", 2, ONE, ONE, LabelEncoder::parse),
    ml("LinearClassifier", 1, ONE, TWO, LinearClassifier::parse).accumulating(),
    ml("LinearRegressor", 1, ONE, ONE, LinearRegressor::parse).accumulating(),
    ml("Normalizer", 1, ONE, ONE, Normalizer::parse).accumulating(),
    ml("OneHotEncoder", 1, ONE, ONE, OneHotEncoder::parse),
    ml("SVMClassifier", 1, ONE, TWO, SvmClassifier::parse).accumulating(),
    ml("SVMRegressor", 1, ONE, ONE, SvmRegressor::parse).accumulating(),
    ml("Scaler", 1, ONE, ONE, Scaler::parse).accumulating(),
    ml("TreeEnsemble", 5, ONE, ONE, tree_ensemble::parse),
    ml("TreeEnsembleClassifier", 1, ONE, TWO, TreeEnsembleClassifier::parse).accumulating(),
    ml("TreeEnsembleRegressor", 1, ONE, ONE, tree_ensemble_regressor::parse).accumulating(),
    ml("ZipMap", 1, ONE, ONE, ZipMap::parse),
];
