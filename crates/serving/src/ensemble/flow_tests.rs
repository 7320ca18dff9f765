//! Random data flows, run in random order, against a plain recursive evaluation.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::graph::{FlowGraph, FlowStep, GraphFault};
use super::*;

/// A small generator of numbers, so that a failing case is one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

struct Case {
    graph: Arc<FlowGraph>,
    inputs: usize,
    wanted: Vec<usize>,
}

fn case(random: &mut Random, decoupled: usize) -> Case {
    let inputs = 1 + random.below(3);
    // Tensors with the iterations they belong to.
    let mut labels: Vec<usize> = vec![0; inputs];
    let mut steps = Vec::new();
    for number in 0..=random.below(9) {
        let of = labels[random.below(labels.len())];
        let same: Vec<usize> = (0..labels.len()).filter(|&tensor| labels[tensor] == of).collect();
        let mut reads: Vec<usize> =
            (0..=random.below(3)).map(|_| same[random.below(same.len())]).collect();
        reads.sort_unstable();
        reads.dedup();
        let is_decoupled = random.chance(decoupled);
        let outputs: Vec<usize> = (0..=random.below(2)).map(|at| labels.len() + at).collect();
        labels.extend(outputs.iter().map(|_| if is_decoupled { number + 1 } else { of }));
        steps.push(FlowStep { inputs: reads, outputs, decoupled: is_decoupled });
    }
    let of = labels[inputs + random.below(labels.len() - inputs)];
    let outputs: Vec<usize> =
        (inputs..labels.len()).filter(|&tensor| labels[tensor] == of).collect();
    let wanted = outputs.iter().copied().filter(|_| random.chance(60)).collect();
    let graph = FlowGraph::new(labels.len(), (0..inputs).collect(), outputs, steps).unwrap();
    Case { graph: Arc::new(graph), inputs, wanted }
}

/// Result of a step in tests: anything in which all that matters can be told apart.
fn value(step: usize, answer: usize, tensor: usize, inputs: &[String]) -> String {
    format!("{tensor}={step}.{answer}({})", inputs.join(","))
}

/// How often a decoupled step answers, a function of what it is given.
fn answers(inputs: &[String]) -> usize {
    inputs.iter().flat_map(|text| text.bytes()).map(usize::from).sum::<usize>() % 3
}

/// All responses of an iteration, by going through the steps in order.
fn evaluate(case: &Case, label: usize, mut tensors: HashMap<usize, String>) -> Vec<Vec<String>> {
    let graph = &case.graph;
    let mut responses = Vec::new();
    let wanted = if case.wanted.is_empty() { &graph.outputs } else { &case.wanted };
    let needed = graph.needed(wanted);
    for (number, step) in graph.steps.iter().enumerate() {
        if graph.step_labels[number] != label || !needed[number] {
            continue;
        }
        let inputs: Vec<String> = step.inputs.iter().map(|input| tensors[input].clone()).collect();
        let times = if step.decoupled { answers(&inputs) } else { 1 };
        for answer in 0..times {
            let outputs = step.outputs.iter().map(|&t| (t, value(number, answer, t, &inputs)));
            if step.decoupled {
                responses.extend(evaluate(case, number + 1, outputs.collect()));
            } else {
                tensors.extend(outputs);
            }
        }
    }
    if label == graph.output_label {
        responses.push(wanted.iter().map(|tensor| tensors[tensor].clone()).collect());
    }
    responses
}

#[derive(Default)]
struct Chances {
    failure: usize,
    partial: usize,
    silence: usize,
}

struct Outcome {
    responses: Vec<Vec<String>>,
    end: Result<(), FlowFailure<usize>>,
    failed: bool,
}

struct Active {
    run: RunId,
    step: usize,
    inputs: Vec<String>,
    answered: usize,
    quiet: bool,
}

/// Plays the models: any of the running steps answers next.
fn play(case: &Case, random: &mut Random, chances: &Chances) -> Outcome {
    let mut flow: EnsembleFlow<String, usize> = EnsembleFlow::new(&case.graph, &case.wanted);
    let inputs = (0..case.inputs).map(|tensor| (tensor, format!("i{tensor}"))).collect();
    let mut effects = flow.start(inputs);
    let mut active: Vec<Active> = Vec::new();
    let mut outcome = Outcome { responses: Vec::new(), end: Ok(()), failed: false };
    let mut ended = false;
    for _ in 0..100_000 {
        let mut queue = std::collections::VecDeque::from(std::mem::take(&mut effects));
        while let Some(effect) = queue.pop_front() {
            assert!(!ended, "nothing comes after the end");
            match effect {
                FlowEffect::Start { run, step, inputs } => {
                    assert!(!outcome.failed, "no step starts after a failure");
                    assert!(active.iter().all(|other| other.run != run));
                    let inputs = inputs.into_iter().map(|(_, value)| value).collect();
                    active.push(Active { run, step, inputs, answered: 0, quiet: false });
                }
                FlowEffect::Respond(values) => {
                    assert!(!outcome.failed, "no response comes after a failure");
                    outcome.responses.push(values.into_iter().map(|(_, value)| value).collect());
                }
                FlowEffect::End(result) => {
                    (outcome.end, ended) = (result, true);
                }
            }
        }
        if active.is_empty() {
            assert!(ended, "the request hangs");
            return outcome;
        }
        let at = random.below(active.len());
        effects = answer_one(case, random, chances, &mut flow, &mut active, at, &mut outcome);
    }
    panic!("the request does not end");
}

fn answer_one(
    case: &Case,
    random: &mut Random,
    chances: &Chances,
    flow: &mut EnsembleFlow<String, usize>,
    active: &mut Vec<Active>,
    at: usize,
    outcome: &mut Outcome,
) -> Vec<FlowEffect<String, usize>> {
    let one = &mut active[at];
    let run = one.run;
    let number = one.step;
    let step = &case.graph.steps[number];
    let times = if step.decoupled { answers(&one.inputs) } else { 1 };
    if random.chance(chances.failure) {
        let is_final = random.chance(50);
        if is_final {
            active.remove(at);
        } else {
            one.answered += 1;
        }
        outcome.failed = true;
        return flow.fail(run, number, is_final);
    }
    one.quiet |= random.chance(chances.silence);
    if one.answered >= times || one.quiet {
        active.remove(at);
        return flow.answer(run, None, true);
    }
    let answer = one.answered;
    let inputs = one.inputs.clone();
    one.answered += 1;
    let is_final = one.answered == times && random.chance(50);
    if is_final {
        active.remove(at);
    }
    let mut outputs: Vec<(usize, String)> =
        step.outputs.iter().map(|&t| (t, value(number, answer, t, &inputs))).collect();
    outputs.retain(|_| !random.chance(chances.partial));
    flow.answer(run, Some(outputs), is_final)
}

fn sorted(mut responses: Vec<Vec<String>>) -> Vec<Vec<String>> {
    responses.sort();
    responses
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn every_order_of_answers_gives_what_the_steps_compute(seed in 1_u64..) {
        let mut random = Random(seed);
        let case = case(&mut random, 20);
        let expected = evaluate(&case, 0, (0..case.inputs).map(|t| (t, format!("i{t}"))).collect());
        let outcome = play(&case, &mut random, &Chances::default());
        prop_assert_eq!(outcome.end, Ok(()));
        prop_assert_eq!(sorted(outcome.responses), sorted(expected));
    }

    #[test]
    fn failures_end_the_request_once_and_start_nothing_more(seed in 1_u64..) {
        let mut random = Random(seed);
        let case = case(&mut random, 20);
        let outcome = play(&case, &mut random, &Chances { failure: 10, ..Chances::default() });
        match outcome.end {
            Err(FlowFailure::Step(_)) => prop_assert!(outcome.failed),
            Ok(()) => prop_assert!(!outcome.failed),
            Err(FlowFailure::Deadlock) => prop_assert!(false, "every step answers"),
        }
    }

    #[test]
    fn steps_that_give_too_little_leave_nothing_hanging(seed in 1_u64..) {
        let mut random = Random(seed);
        let case = case(&mut random, 20);
        let chances = Chances { failure: 2, partial: 30, silence: 10 };
        let outcome = play(&case, &mut random, &chances);
        let wanted = if case.wanted.is_empty() { &case.graph.outputs } else { &case.wanted };
        for response in &outcome.responses {
            prop_assert!(response.len() <= wanted.len());
        }
        let silent = outcome.responses.is_empty() && case.graph.output_label == 0 && !outcome.failed;
        prop_assert_eq!(outcome.end == Err(FlowFailure::Deadlock), silent);
    }
}

fn step(inputs: &[usize], outputs: &[usize], decoupled: bool) -> FlowStep {
    FlowStep { inputs: inputs.to_vec(), outputs: outputs.to_vec(), decoupled }
}

#[test]
fn faults_of_graphs_are_named() {
    let new = |outputs: &[usize], steps| FlowGraph::new(6, vec![0], outputs.to_vec(), steps);
    let twice = new(&[1], vec![step(&[0], &[1], false), step(&[0], &[1], false)]);
    assert_eq!(twice.err(), Some(GraphFault::WrittenTwice(1)));
    let input = new(&[1], vec![step(&[0], &[0, 1], false)]);
    assert_eq!(input.err(), Some(GraphFault::WrittenTwice(0)));
    let cycle = new(&[1], vec![step(&[0, 2], &[1], false), step(&[1], &[2], false)]);
    assert_eq!(cycle.err(), Some(GraphFault::NeverRuns(0)));
    let mixed = new(&[2], vec![step(&[0], &[1], true), step(&[0, 1], &[2], false)]);
    assert_eq!(mixed.err(), Some(GraphFault::MixedInputs(1)));
    let outputs = new(&[1, 2], vec![step(&[0], &[1], true), step(&[0], &[2], false)]);
    assert_eq!(outputs.err(), Some(GraphFault::MixedOutputs));
    assert_eq!(new(&[3], vec![]).err(), Some(GraphFault::Unwritten(3)));
}

#[test]
fn what_is_missing_does_not_hold_a_step_up_and_unwanted_steps_do_not_run() {
    let steps =
        vec![step(&[0, 1], &[2, 3], false), step(&[3], &[4], false), step(&[0], &[5], false)];
    let graph = Arc::new(FlowGraph::new(6, vec![0, 1], vec![2, 4, 5], steps).unwrap());
    let mut flow: EnsembleFlow<&str, ()> = EnsembleFlow::new(&graph, &[2, 4]);
    let effects = flow.start(vec![(0, "a")]);
    assert_eq!(effects, [FlowEffect::Start { run: 0, step: 0, inputs: vec![(0, "a")] }]);
    // The second output is not given.
    let effects = flow.answer(0, Some(vec![(2, "b")]), true);
    assert_eq!(effects, [FlowEffect::Start { run: 1, step: 1, inputs: vec![] }]);
    let effects = flow.answer(1, Some(vec![]), true);
    assert_eq!(effects, [FlowEffect::Respond(vec![(2, "b")]), FlowEffect::End(Ok(()))]);
}

#[test]
fn a_model_that_gives_no_response_leaves_the_request_without_one() {
    let steps = vec![step(&[0], &[1], false), step(&[0], &[2], false)];
    let graph = Arc::new(FlowGraph::new(3, vec![0], vec![1, 2], steps).unwrap());
    let mut flow: EnsembleFlow<&str, ()> = EnsembleFlow::new(&graph, &[]);
    flow.start(vec![(0, "a")]);
    assert_eq!(flow.answer(0, Some(vec![(1, "b")]), true), []);
    assert_eq!(flow.answer(1, None, true), [FlowEffect::End(Err(FlowFailure::Deadlock))]);
}

#[test]
fn responses_keep_the_order_of_their_iterations() {
    let steps = vec![step(&[0], &[1], true), step(&[1], &[2], false)];
    let graph = Arc::new(FlowGraph::new(3, vec![0], vec![2], steps).unwrap());
    let mut flow: EnsembleFlow<&str, ()> = EnsembleFlow::new(&graph, &[]);
    flow.start(vec![(0, "in")]);
    flow.answer(0, Some(vec![(1, "first")]), false);
    flow.answer(0, Some(vec![(1, "second")]), true);
    assert_eq!(flow.answer(2, Some(vec![(2, "2")]), true), []);
    assert_eq!(
        flow.answer(1, Some(vec![(2, "1")]), true),
        [
            FlowEffect::Respond(vec![(2, "1")]),
            FlowEffect::Respond(vec![(2, "2")]),
            FlowEffect::End(Ok(()))
        ]
    );
}
