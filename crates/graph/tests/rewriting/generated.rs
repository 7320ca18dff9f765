//! Rewritten graphs equal unrewritten ones, over graphs made at random from the operators that the
//! rules look for.

use galatea_graph::evaluate;
use proptest::prelude::*;

use super::*;

/// How the next node is made: which operator, and of which values so far.
type Step = (u8, prop::sample::Index, prop::sample::Index);

/// A graph over `x: [batch, 4, 4]`, where every value has this shape or that of `x` transposed, so
/// that any two can meet.
fn build(steps: &[Step], outputs: &[prop::sample::Index]) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(4)]);
    let square = b.constant(noise(&[4, 4], 1));
    let vector = b.constant(noise(&[4], 2));
    let numbers = [0.5, 1.0, 2.0, 1e-5].map(|value| b.number(value));
    let mut values = vec![x];
    for (kind, first, second) in steps {
        let (a, c) = (*first.get(&values), *second.get(&values));
        let number = *second.get(&numbers);
        let made = match kind % 20 {
            0 => b.op("Add", &[a, c], &[]),
            1 => b.op("Sub", &[a, c], &[]),
            2 => b.op("Mul", &[a, c], &[]),
            3 => b.op("Mul", &[a, number], &[]),
            4 => b.op("Add", &[number, a], &[]),
            5 => b.op("MatMul", &[a, square], &[]),
            6 => b.op("Add", &[a, vector], &[]),
            7 => b.op("Relu", &[a], &[]),
            8 => b.op("Sigmoid", &[a], &[]),
            9 => b.op("Tanh", &[a], &[]),
            10 => b.op("Erf", &[a], &[]),
            11 => b.op("Transpose", &[a], &[("perm", ints(&[0, 2, 1]))]),
            12 => b.op("Identity", &[a], &[]),
            13 => b.op("Softmax", &[a], &[("axis", AttributeValue::Int(-1))]),
            14 => b.op("MatMul", &[a, c], &[]),
            15 => b.op("Mul", &[vector, a], &[]),
            16 => rms(&mut b, a, vector),
            17 => through_shape(&mut b, a),
            18 => flat_product(&mut b, a, square),
            _ => b.op("Clip", &[a, numbers[3], numbers[1]], &[]),
        };
        values.push(made);
    }
    let last = values[values.len() - 1];
    let chosen: Vec<ValueId> = outputs.iter().map(|index| *index.get(&values)).collect();
    for id in chosen {
        if id != x && !b.graph.outputs.contains(&id) && id != last {
            b.graph.outputs.push(id);
        }
    }
    b.finish(last)
}

fn rms(b: &mut Builder, x: ValueId, scale: ValueId) -> ValueId {
    let epsilon = b.number(1e-5);
    let square = b.op("Mul", &[x, x], &[]);
    let mean = b.op("ReduceMean", &[square], &[("axes", ints(&[2]))]);
    let sum = b.op("Add", &[mean, epsilon], &[]);
    let root = b.op("Sqrt", &[sum], &[]);
    let normal = b.op("Div", &[x, root], &[]);
    b.op("Mul", &[normal, scale], &[])
}

/// A reshape to the shape that the value has.
fn through_shape(b: &mut Builder, x: ValueId) -> ValueId {
    let shape = b.op("Shape", &[x], &[]);
    b.op("Reshape", &[x, shape], &[])
}

fn flat_product(b: &mut Builder, x: ValueId, weights: ValueId) -> ValueId {
    let target = b.constant(Tensor::vector(vec![-1_i64, 4]));
    let flat = b.op("Reshape", &[x, target], &[]);
    let product = b.op("MatMul", &[flat, weights], &[]);
    let shape = b.op("Shape", &[x], &[]);
    b.op("Reshape", &[product, shape], &[])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_level_computes_the_same(
        steps in prop::collection::vec(
            (any::<u8>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..24),
        outputs in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        batch in 0_usize..3,
    ) {
        let graph = build(&steps, &outputs);
        let x = noise(&[batch, 4, 4], 7);
        let expected = evaluate::run(&graph, std::slice::from_ref(&x)).unwrap();
        for level in RewriteLevel::ALL {
            let mut rewritten = graph.clone();
            optimise(&mut rewritten, level).unwrap();
            rewritten.sort().unwrap();
            let found = evaluate::run(&rewritten, std::slice::from_ref(&x)).unwrap();
            prop_assert!(rewritten.nodes.len() <= graph.nodes.len());
            for (found, expected) in found.iter().zip(&expected) {
                close(found, expected)?;
            }
        }
    }
}

/// Long chains of products grow, so the distance is measured against the largest element.
fn close(found: &Tensor, expected: &Tensor) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.shape(), expected.shape());
    let (found, expected) = (found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    let largest = expected.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
    for (a, b) in found.iter().zip(&expected) {
        let alike = a == b
            || (a.is_nan() && b.is_nan())
            || !largest.is_finite()
            || (a - b).abs() <= 1e-3 * largest;
        prop_assert!(alike, "{a} instead of {b}, the largest is {largest}");
    }
    Ok(())
}
