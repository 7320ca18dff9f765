//! Metrics that models in Python make themselves, and those about their workers.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

use std::sync::Arc;

use galatea_serving::backend::python::PythonBackend;
use galatea_serving::core::UnloadDependents;
use galatea_serving::custom_metrics::{FamilySnapshot, MetricKind, MetricLabels, MetricValue};
use galatea_serving::{Core, ServingError};

use crate::python::{
    ONE_IN_ONE_OUT, PythonModels, answer, ints, python, request, send, until, write_model,
};

const HEAD: &str = "import os\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\
    def answers(requests):\n    \
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([1], np.int32))]) for r in requests]\n\n";
/// A core with the models `(name, class)`; `None` without a Python.
fn serve(models: &[(&str, &str)]) -> Option<PythonModels> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    let config = format!("backend: \"python\" {ONE_IN_ONE_OUT}");
    for (name, class) in models {
        write_model(folder.path(), name, &config, &format!("{HEAD}{class}"));
    }
    let settings = [("python-executable", python)];
    Some(PythonModels::start(folder, vec![Arc::new(PythonBackend::default())], &settings))
}

/// Asks a model with `value` and waits for the answer.
fn ask(core: &Core, model: &str, value: i32) -> Result<(), ServingError> {
    answer(&send(core, request(model, &[("IN", &ints(&[value]))]))).result.map(drop)
}

fn family(core: &Core, name: &str) -> Option<FamilySnapshot> {
    core.custom_metrics().into_iter().find(|family| family.name == name)
}

fn labels(pairs: &[(&str, &str)]) -> MetricLabels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const COUNTS: &str = "class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily(name='asked', description='Requests', kind=pb_utils.MetricFamily.COUNTER)
        self.asked = family.Metric(labels={'of': 'all'})
        self.own = family.Metric(labels={'of': args['model_name']})
        self.last = pb_utils.MetricFamily('last', 'Last value', pb_utils.MetricFamily.GAUGE).Metric()
        sizes = pb_utils.MetricFamily(name='sizes', description='Values', kind=pb_utils.MetricFamily.HISTOGRAM)
        self.sizes = sizes.Metric(labels={}, buckets=[1, 2.5, float('inf')])

    def execute(self, requests):
        for request in requests:
            value = int(pb_utils.get_input_tensor_by_name(request, 'IN').as_numpy()[0])
            before = self.own.value()
            self.asked.increment(1)
            self.own.increment(np.float32(0.5))
            assert self.own.value() == before + 0.5
            self.last.set(value)
            self.last.increment(-0.25)
            self.sizes.observe(value)
        return answers(requests)
";

#[test]
fn models_count_together_and_their_families_go_with_the_last_of_them() {
    let Some(served) = serve(&[("a", COUNTS), ("b", COUNTS)]) else { return };
    let core = &served.core;
    for (model, value) in [("a", 1), ("b", 2), ("b", 3)] {
        ask(core, model, value).unwrap();
    }
    let asked = family(core, "asked").expect("a family");
    assert_eq!((asked.kind, asked.help.as_str()), (MetricKind::Counter, "Requests"));
    let found: Vec<_> = asked.metrics.into_iter().map(|one| (one.labels, one.value)).collect();
    let expected = [("a", 0.5), ("all", 3.0), ("b", 1.0)];
    let expected =
        expected.map(|(of, number)| (labels(&[("of", of)]), MetricValue::Number(number)));
    assert_eq!(found, expected);
    assert_eq!(family(core, "last").unwrap().metrics[0].value, MetricValue::Number(2.75));
    let sizes = &family(core, "sizes").unwrap().metrics[0];
    assert_eq!(sizes.bounds, [1.0, 2.5]);
    let expected = MetricValue::Distribution { counts: vec![1, 1], count: 3, sum: 6.0 };
    assert_eq!(sizes.value, expected);
    core.unload_model("b", UnloadDependents::Keep).unwrap();
    until("the end of b's metric", || {
        (family(core, "asked").unwrap().metrics.len() == 2).then_some(())
    });
    core.unload_model("a", UnloadDependents::Keep).unwrap();
    until("the end of the families", || core.custom_metrics().is_empty().then_some(()));
}

#[test]
fn a_family_that_is_made_again_keeps_its_first_description() {
    let class = "
class TritonPythonModel:
    def initialize(self, args):
        kind = pb_utils.MetricFamily.COUNTER
        self.families = [pb_utils.MetricFamily(name, text, kind) for name, text in (('o', 'first'), (b'o', b'second'))]
        self.metrics = [family.Metric(labels={b'shop': b'x'}) for family in self.families]

    def execute(self, requests):
        for metric in self.metrics:
            metric.increment(2)
        assert self.metrics[0].value() == 4
        return answers(requests)
";
    let Some(served) = serve(&[("again", class)]) else { return };
    ask(&served.core, "again", 1).unwrap();
}

#[test]
fn wrong_uses_raise_what_says_why() {
    let class = "CHECKS = [
    (lambda: pb_utils.MetricFamily('1a', '', 0), \"'1a' is no name of a metric\"),
    (lambda: pb_utils.MetricFamily('nv_inference_count', '', 0), 'that the server keeps for its own'),
    (lambda: pb_utils.MetricFamily('f', '', 3), '3 is no kind of a MetricFamily'),
    (lambda: pb_utils.MetricFamily(7, '', 0), 'are texts'),
    (lambda: pb_utils.Metric(), 'is made by the function Metric'),
    (lambda: COUNTER.Metric({'a': 1}), 'dict of str to str'),
    (lambda: COUNTER.Metric({'__a': 'b'}), \"'__a' is no name of a label\"),
    (lambda: COUNTER.Metric({}, [1]), 'takes no buckets'),
    (lambda: HISTOGRAM.Metric({}), 'needs buckets'),
    (lambda: HISTOGRAM.Metric({}, [2, 1]), 'increase strictly'),
    (lambda: HISTOGRAM.Metric({}, 'ab'), 'list of numbers'),
    (lambda: pb_utils.MetricFamily('c', 'counts', 1), 'has kind counter, not gauge'),
    (lambda: COUNTER.Metric({}).increment(-1), 'counters never get less'),
    (lambda: COUNTER.Metric({}).set(1), \"does not support 'set'\"),
    (lambda: COUNTER.Metric({}).observe(1), \"does not support 'observe'\"),
    (lambda: COUNTER.Metric({}).increment('x'), \"'x' found, a number expected\"),
    (lambda: HISTOGRAM.Metric({}, [1]).value(), \"does not support 'value'\"),
]


class TritonPythonModel:
    def initialize(self, args):
        global COUNTER, HISTOGRAM
        COUNTER = pb_utils.MetricFamily('c', 'counts', pb_utils.MetricFamily.COUNTER)
        HISTOGRAM = pb_utils.MetricFamily('h', '', pb_utils.MetricFamily.HISTOGRAM)

    def execute(self, requests):
        for wrong, expected in CHECKS:
            try:
                wrong()
            except pb_utils.TritonModelException as error:
                assert expected in str(error), (expected, str(error))
            else:
                raise AssertionError(expected)
        return answers(requests)
";
    let Some(served) = serve(&[("wrong", class)]) else { return };
    ask(&served.core, "wrong", 1).unwrap();
    // The metrics that were made on the way have no object any more.
    until("the end of the metrics", || served.core.custom_metrics().is_empty().then_some(()));
}

#[test]
fn restarts_of_workers_are_counted_and_what_a_worker_had_goes_with_it() {
    let class = "class TritonPythonModel:
    def initialize(self, args):
        self.count = pb_utils.MetricFamily('count', '', pb_utils.MetricFamily.COUNTER).Metric()

    def execute(self, requests):
        for request in requests:
            if pb_utils.get_input_tensor_by_name(request, 'IN').as_numpy()[0] < 0:
                os._exit(3)
        self.count.increment(1)
        return answers(requests)
";
    let Some(served) = serve(&[("ends", class)]) else { return };
    let core = &served.core;
    let restarts = || family(core, "python_worker_restarts_total");
    ask(core, "ends", 1).unwrap();
    assert_eq!(restarts(), None);
    for times in [1.0, 2.0] {
        ask(core, "ends", -1).unwrap_err();
        ask(core, "ends", 1).unwrap();
        until("the count", || {
            restarts().filter(|family| family.metrics[0].value == MetricValue::Number(times))
        });
        assert_eq!(family(core, "count").unwrap().metrics[0].value, MetricValue::Number(1.0));
    }
    let expected = labels(&[("model", "ends"), ("version", "1")]);
    assert_eq!(restarts().unwrap().metrics[0].labels, expected);
    core.unload_model("ends", UnloadDependents::Keep).unwrap();
    until("the end of the count", || restarts().is_none().then_some(()));
}
