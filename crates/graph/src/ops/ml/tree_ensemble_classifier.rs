//! `TreeEnsembleClassifier`: what decision trees vote for.

use galatea_tensor::{DataType, Tensor};

use super::forest::{CheckedForest, RowScores, VoteAggregate};
use super::labels::{ClassChoice, ClassifierLabels, largest};
use super::node_lists::{self, VoteNames};
use super::post_transform::{PostTransform, ScoreComplement};
use super::rows::{FeatureRows, expect_numbers};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::from_floats;

/// ONNX `TreeEnsembleClassifier`. Two classes follow ONNX Runtime, to which the standard leaves
/// them: trees may vote for one of them only, and then the other one gets what is left.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeEnsembleClassifier {
    /// The trees.
    pub forest: CheckedForest,
    /// The classes.
    pub labels: ClassifierLabels,
    /// Constants added to the sums of the classes; empty for nothing.
    pub base_values: Vec<f64>,
    /// The transform of the sums.
    pub post_transform: PostTransform,
    /// True if there are two classes and all votes are for one of them.
    pub one_of_two: bool,
    /// True if no vote is negative, so that sums are shares of 1.
    pub positive: bool,
}

const VOTES: VoteNames = VoteNames {
    targets: "class_ids",
    nodes: "class_nodeids",
    trees: "class_treeids",
    weights: "class_weights",
    weights_tensor: "class_weights_as_tensor",
};

impl TreeEnsembleClassifier {
    /// Reads the attributes and lays out the trees.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let labels =
            ClassifierLabels::parse(attributes, "classlabels_strings", "classlabels_int64s")?;
        let post_transform = PostTransform::parse(attributes)?;
        let base_values = node_lists::doubles(context, "base_values", "base_values_as_tensor")?;
        let base_values = base_values.unwrap_or_default();
        let classes = labels.len();
        let fits = |len| len == 0 || len == classes || (len == 1 && classes == 2);
        if !fits(base_values.len()) {
            let found = base_values.len();
            let text = format!("'base_values' has {found} entries for {classes} classes");
            return Err(OpError::new(text));
        }
        let forest = node_lists::parse(context, VOTES, classes)?;
        let (voted, positive) = forest.summary();
        let one_of_two = classes == 2 && voted.len() == 1;
        Ok(Box::new(Self { forest, labels, base_values, post_transform, one_of_two, positive }))
    }

    /// The class of the largest score among those voted for or with a base value.
    fn of_many(&self, tally: &mut RowScores) -> ClassChoice {
        for (at, base) in self.base_values.iter().enumerate() {
            tally.add(at, *base);
            tally.voted[at] = true;
        }
        let candidates = tally.scores.iter().zip(&tally.voted);
        let candidates =
            candidates.map(|(score, voted)| if *voted { *score } else { f64::NEG_INFINITY });
        let choice = ClassChoice::Class(largest(candidates));
        self.post_transform.apply(&mut tally.scores);
        choice
    }

    /// The label of a row from what all trees have said about it, whose scores are made those of
    /// the result.
    pub fn choose(&self, tally: &mut RowScores) -> ClassChoice {
        match self.labels.len() {
            1 => self.one(tally),
            2 => self.two(tally),
            _ => self.of_many(tally),
        }
    }

    /// Yes or no from the score of the positive class.
    fn of_two(&self, score: f64) -> ClassChoice {
        match (self.one_of_two, self.positive) {
            (true, true) => ClassChoice::Class(usize::from(score > 0.5)),
            (true, false) => ClassChoice::Class(usize::from(score > 0.0)),
            (false, _) => ClassChoice::Positive(score > 0.0),
        }
    }

    /// The choice and both scores of two classes.
    fn two(&self, tally: &mut RowScores) -> ClassChoice {
        let voted = [tally.voted[0], tally.voted[1]];
        match *self.base_values {
            // Votes for both are margins of the second class.
            [_, second] if voted[1] => {
                tally.add(0, second);
                let margin = tally.scores[0];
                tally.scores.copy_from_slice(&[-margin, margin]);
            }
            [first, second] => {
                tally.add(0, first);
                tally.add(1, second);
            }
            [only] => tally.add(0, only),
            _ => {}
        }
        let scores = [tally.scores[0], tally.scores[1]];
        let choice = self.of_two(if voted[1] { scores[1] } else { scores[0] });
        if !voted[1] && self.base_values.len() < 2 {
            let share = self.one_of_two && self.positive;
            let complement = if share { ScoreComplement::ToOne } else { ScoreComplement::Negative };
            tally.scores.copy_from_slice(&self.post_transform.both(scores[0], complement));
            return choice;
        }
        for (at, score) in scores.into_iter().enumerate() {
            tally.scores[at] = if voted[at] { score } else { 0.0 };
        }
        self.post_transform.apply(&mut tally.scores);
        choice
    }

    /// The only class's score.
    fn one(&self, tally: &mut RowScores) -> ClassChoice {
        tally.add(0, self.base_values.first().copied().unwrap_or(0.0));
        let choice = ClassChoice::Positive(tally.scores[0] > 0.0);
        self.post_transform.apply(&mut tally.scores);
        choice
    }
}

impl Operator for TreeEnsembleClassifier {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        width.map_or(Ok(()), |width| self.forest.expect_width(width))?;
        let scores = vec![count.clone(), Dim::Known(self.labels.len())];
        Ok(vec![Fact::new(self.labels.dtype(), vec![count]), Fact::new(DataType::Fp32, scores)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        let mut choices = Vec::new();
        let mut scores = Vec::new();
        self.forest.each(&rows, VoteAggregate::Sum, self.labels.len(), |tally| {
            choices.push(self.choose(tally));
            scores.extend_from_slice(&tally.scores);
        })?;
        let shape = [rows.count, self.labels.len()];
        Ok(vec![self.labels.of(&choices), from_floats(DataType::Fp32, &shape, scores)?])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::node_lists::tests::stumps;
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{ints, run, tensor, text};
    use galatea_tensor::ByteString;

    /// Runs two examples, one for each leaf of every tree.
    fn classify(
        votes: &[&[(i64, f32)]],
        base: &[f32],
        labels: AttributeValue,
        transform: &str,
    ) -> Result<(Tensor, Vec<f32>), String> {
        let mut list = stumps(votes, "class");
        let strings = matches!(labels, AttributeValue::Strings(_));
        let name = if strings { "classlabels_strings" } else { "classlabels_int64s" };
        list.insert(name.to_owned(), labels);
        list.insert("base_values".to_owned(), AttributeValue::Floats(base.to_vec()));
        list.insert("post_transform".to_owned(), text(transform));
        let x = tensor(&[2, 1], &[0.0_f32, 1.0]);
        let mut found = run("ai.onnx.ml:TreeEnsembleClassifier", 1, &list, &[Some(&x)], 2)?;
        let scores = found.remove(1).to_vec::<f32>().unwrap();
        Ok((found.remove(0), scores))
    }

    fn numbers(all: &[i64]) -> Tensor {
        Tensor::vector(all.to_vec())
    }

    #[test]
    fn votes_for_one_of_two_classes_leave_the_rest_to_the_other() {
        let labels = || ints(&[10, 20]);
        let votes: &[&[(i64, f32)]] = &[&[(0, 0.25)], &[(0, 0.75)]];
        let found = classify(votes, &[], labels(), "NONE").unwrap();
        assert_eq!(found, (numbers(&[10, 20]), vec![0.75, 0.25, 0.25, 0.75]));
        let votes: &[&[(i64, f32)]] = &[&[(0, -0.25)], &[(0, 0.25)]];
        let found = classify(votes, &[], labels(), "NONE").unwrap();
        assert_eq!(found, (numbers(&[10, 20]), vec![0.25, -0.25, -0.25, 0.25]));
        let found = classify(votes, &[-1.0], labels(), "LOGISTIC").unwrap();
        assert_eq!(found.0, numbers(&[10, 10]));
        assert!((found.1[1] - 0.222_700_14).abs() < 1e-6 && found.1[0] > 0.7);
    }

    #[test]
    fn votes_for_both_classes_answer_yes_or_no() {
        let votes: &[&[(i64, f32)]] = &[&[(0, 0.5), (1, 0.25)], &[(0, 0.5), (1, -0.5)]];
        let found = classify(votes, &[], ints(&[10, 20]), "NONE").unwrap();
        assert_eq!(found, (numbers(&[1, 0]), vec![0.5, 0.25, 0.5, -0.5]));
        let names = AttributeValue::Strings(vec!["a".into(), "b".into()]);
        let found = classify(votes, &[0.25, 0.5], names, "NONE").unwrap();
        assert_eq!(found.0, Tensor::vector(vec![ByteString::from("b"), "b".into()]));
        assert_eq!(found.1, [-1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn the_largest_of_many_classes_wins() {
        let votes: &[&[(i64, f32)]] = &[&[(0, 0.25), (2, 0.5)], &[(1, -0.5)]];
        let found = classify(votes, &[], ints(&[5, 6, 7]), "NONE").unwrap();
        // Nobody votes for the others in the second row.
        assert_eq!(found, (numbers(&[7, 6]), vec![0.25, 0.0, 0.5, 0.0, -0.5, 0.0]));
        let found = classify(votes, &[0.0, 0.25, 0.5], ints(&[5, 6, 7]), "NONE").unwrap();
        assert_eq!(found, (numbers(&[7, 7]), vec![0.25, 0.25, 1.0, 0.0, -0.25, 0.5]));
        let found = classify(&[&[(0, 0.5)], &[(0, -0.5)]], &[], ints(&[5]), "LOGISTIC").unwrap();
        assert_eq!(found, (numbers(&[1, 0]), vec![0.5, -0.5]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let votes: &[&[(i64, f32)]] = &[&[(0, 0.25)], &[(3, 0.5)]];
        let many = classify(votes, &[], ints(&[5, 6, 7]), "NONE").unwrap_err();
        assert!(many.contains("target 3 of 3"), "{many}");
        let base = classify(&[&[], &[]], &[1.0], ints(&[5, 6, 7]), "NONE").unwrap_err();
        assert!(base.contains("'base_values' has 1"), "{base}");
        let transform = classify(&[&[], &[]], &[], ints(&[5, 6]), "HARDMAX").unwrap_err();
        assert!(transform.contains("HARDMAX"), "{transform}");
        let none = classify(&[&[], &[]], &[], ints(&[]), "NONE").unwrap_err();
        assert!(none.contains("classlabels"), "{none}");
    }
}
