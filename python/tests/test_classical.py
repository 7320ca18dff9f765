"""scikit-learn's models, as skl2onnx writes them, in `galatea run` and in ONNX Runtime.

Labels must be the same, scores nearly so: both sum a few hundred numbers at most, of which ONNX
Runtime keeps some sums in float32 (2^-24 of the largest partial sum a step).
"""

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.http
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import datasets, ensemble, linear_model, naive_bayes, neighbors, neural_network, preprocessing, svm, tree
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from server import run_to_end

LIMIT = 1e-5
SEED = 0
WORDS = np.array(["calm", "breeze", "gale"])
OPSET = {"": 17, "ai.onnx.ml": 3}


def classes(count, words):
    rows, labels = datasets.make_classification(400, 10, n_informative=6, n_classes=count, random_state=SEED)
    return rows.astype(np.float32), WORDS[labels] if words else labels


def numbers(targets=1):
    rows, values = datasets.make_regression(400, 10, n_targets=targets, noise=3.0, random_state=SEED)
    return rows.astype(np.float32), (values / 100).astype(np.float32)


def without_some(rows):
    gaps = np.random.default_rng(SEED).random(rows.shape) < 0.1
    return np.where(gaps, np.float32(np.nan), rows)


CLASSIFIERS = {
    "logistic": lambda: linear_model.LogisticRegression(),
    "ridge": lambda: linear_model.RidgeClassifier(),
    "sgd": lambda: linear_model.SGDClassifier(loss="log_loss", random_state=SEED),
    "linear_svc": lambda: svm.LinearSVC(random_state=SEED),
    "svc_rbf": lambda: svm.SVC(kernel="rbf", probability=True, random_state=SEED),
    "svc_poly": lambda: svm.SVC(kernel="poly", degree=3, coef0=0.5),
    "svc_sigmoid": lambda: svm.SVC(kernel="sigmoid"),
    "svc_linear": lambda: svm.SVC(kernel="linear", decision_function_shape="ovo"),
    "nu_svc": lambda: svm.NuSVC(probability=True, random_state=SEED),
    "tree": lambda: tree.DecisionTreeClassifier(max_depth=6, random_state=SEED),
    "forest": lambda: ensemble.RandomForestClassifier(30, max_depth=8, random_state=SEED),
    "extra_trees": lambda: ensemble.ExtraTreesClassifier(30, max_depth=8, random_state=SEED),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=30, random_state=SEED),
    "hist_boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=30, random_state=SEED),
    "ada_boost": lambda: ensemble.AdaBoostClassifier(n_estimators=20, random_state=SEED),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=5, random_state=SEED),
    "naive_bayes": lambda: naive_bayes.GaussianNB(),
    "neighbours": lambda: neighbors.KNeighborsClassifier(5),
    "perceptron": lambda: neural_network.MLPClassifier((16,), max_iter=50, random_state=SEED),
}
REGRESSORS = {
    "linear": lambda: linear_model.LinearRegression(),
    "lasso": lambda: linear_model.Lasso(alpha=0.01),
    "svr": lambda: svm.SVR(kernel="rbf"),
    "svr_poly": lambda: svm.SVR(kernel="poly", degree=2),
    "linear_svr": lambda: svm.LinearSVR(random_state=SEED),
    "tree": lambda: tree.DecisionTreeRegressor(max_depth=6, random_state=SEED),
    "forest": lambda: ensemble.RandomForestRegressor(30, max_depth=8, random_state=SEED),
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=30, random_state=SEED),
    "hist_boosting": lambda: ensemble.HistGradientBoostingRegressor(max_iter=30, random_state=SEED),
    "neighbours": lambda: neighbors.KNeighborsRegressor(5),
}
MANY_TARGETS = ["linear", "tree", "forest"]
NO_SCORES = ["linear_svc"]
TAKES_GAPS = ["hist_boosting"]


@pytest.fixture(autouse=True)
def flags_are_numbers(monkeypatch):
    """skl2onnx 1.20 gives booleans to onnx, which refuses them from 1.20 on."""
    make = onnx.helper.make_attribute

    def make_attribute(key, value, *rest, **options):
        flags = isinstance(value, list) and any(isinstance(one, (bool, np.bool_)) for one in value)
        return make(key, [int(one) for one in value] if flags else value, *rest, **options)

    monkeypatch.setattr(onnx.helper, "make_attribute", make_attribute)


def compare(program, folder, model, inputs):
    """Runs a model in both, at every provider and with rewriting or not."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = session.run(names, inputs)
    np.savez(folder / "in.npz", **inputs)
    for options in (["--provider", "cpu"], ["--provider", "reference", "--level", "O0"]):
        status, log = run_to_end(program, "run", path, "--inputs", folder / "in.npz", "--outputs", folder / "out", *options,
                                 timeout=120)
        assert status == 0, log
        with np.load(folder / "out0.npz") as found:
            for name, expected in zip(names, wanted):
                same(name, found[name], expected)


def same(name, found, expected):
    assert found.shape == expected.shape, name
    if expected.dtype.kind == "f":
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        assert float(np.abs(found - expected).max(initial=0.0)) <= LIMIT * scale, name
    else:
        assert (found.astype(str) == expected.astype(str)).all(), name


@pytest.mark.parametrize("count, words", [(2, True), (3, False)], ids=["two-words", "three-numbers"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_equals_onnx_runtime(program, tmp_path, name, count, words):
    rows, labels = classes(count, words)
    if name in TAKES_GAPS:
        rows = without_some(rows)
    model = CLASSIFIERS[name]().fit(rows, labels)
    options = None if name in NO_SCORES else {"zipmap": False}
    compare(program, tmp_path, to_onnx(model, rows[:1], options=options, target_opset=OPSET), {"X": rows[:100]})


@pytest.mark.parametrize("name, targets", [(name, 1) for name in REGRESSORS] + [(name, 2) for name in MANY_TARGETS])
def test_a_regressor_equals_onnx_runtime(program, tmp_path, name, targets):
    rows, values = numbers(targets)
    if name in TAKES_GAPS:
        rows = without_some(rows)
    model = REGRESSORS[name]().fit(rows, values)
    compare(program, tmp_path, to_onnx(model, rows[:1], target_opset=OPSET), {"X": rows[:100]})


SCALERS = {
    "standard": lambda: preprocessing.StandardScaler(),
    "min_max": lambda: preprocessing.MinMaxScaler(),
    "robust": lambda: preprocessing.RobustScaler(),
    "normalise": lambda: preprocessing.Normalizer("l1"),
    "binarise": lambda: preprocessing.Binarizer(threshold=0.2),
    "polynomial": lambda: preprocessing.PolynomialFeatures(2),
    "bins": lambda: preprocessing.KBinsDiscretizer(4, encode="onehot-dense", subsample=None),
    "power": lambda: preprocessing.PowerTransformer(),
}


@pytest.mark.parametrize("name", SCALERS)
def test_a_pipeline_that_scales_equals_onnx_runtime(program, tmp_path, name):
    rows, labels = classes(3, words=True)
    model = make_pipeline(SCALERS[name](), linear_model.LogisticRegression(max_iter=500)).fit(rows, labels)
    compare(program, tmp_path, to_onnx(model, rows[:1], options={"zipmap": False}, target_opset=OPSET), {"X": rows[:100]})


def test_missing_numbers_are_imputed(program, tmp_path):
    rows, labels = classes(2, words=False)
    rows = without_some(rows)
    model = make_pipeline(SimpleImputer(strategy="median"), preprocessing.StandardScaler(),
                          ensemble.RandomForestClassifier(10, random_state=SEED)).fit(rows, labels)
    compare(program, tmp_path, to_onnx(model, rows[:1], options={"zipmap": False}, target_opset=OPSET), {"X": rows[:100]})


@pytest.mark.parametrize("last", ["logistic", "boosting"])
def test_columns_of_words_and_numbers_are_encoded(program, tmp_path, last):
    random = np.random.default_rng(SEED)
    size = 300
    columns = {"wind": random.normal(size=(size, 2)).astype(np.float32),
               "place": random.choice(["hill", "coast", "plain"], (size, 2)).astype(object),
               "month": random.integers(1, 13, (size, 1))}
    table = np.concatenate([columns["wind"].astype(object), columns["place"], columns["month"].astype(object)], axis=1)
    labels = WORDS[np.clip(columns["wind"][:, 0].round().astype(int) + (columns["place"][:, 0] == "coast"), 0, 2)]
    transform = ColumnTransformer([
        ("wind", make_pipeline(SimpleImputer(), preprocessing.StandardScaler()), [0, 1]),
        ("place", preprocessing.OneHotEncoder(handle_unknown="ignore"), [2, 3]),
        ("month", preprocessing.OneHotEncoder(handle_unknown="ignore"), [4]),
    ], sparse_threshold=0)
    model = make_pipeline(transform, CLASSIFIERS[last]()).fit(table, labels)
    types = [("wind", FloatTensorType([None, 2])), ("place", StringTensorType([None, 2])), ("month", Int64TensorType([None, 1]))]
    made = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset=OPSET)
    inputs = {"wind": columns["wind"], "place": columns["place"].astype(str), "month": columns["month"].astype(np.int64)}
    inputs["place"][0] = "tundra"
    compare(program, tmp_path, made, inputs)


def test_ordinals_and_labels_are_encoded(program, tmp_path):
    words = np.array([["b", "x"], ["a", "y"], ["c", "x"]], dtype=object)
    model = preprocessing.OrdinalEncoder().fit(words)
    made = to_onnx(model, initial_types=[("X", StringTensorType([None, 2]))], target_opset=OPSET)
    compare(program, tmp_path, made, {"X": words.astype(str)})
    model = preprocessing.LabelEncoder().fit(WORDS)
    made = to_onnx(model, initial_types=[("X", StringTensorType([None]))], target_opset=OPSET)
    compare(program, tmp_path, made, {"X": WORDS})


def test_outliers_are_told(program, tmp_path):
    rows, _ = numbers()
    for model in (svm.OneClassSVM(gamma=0.1), ensemble.IsolationForest(n_estimators=10, random_state=SEED)):
        made = to_onnx(model.fit(rows), rows[:1], target_opset=OPSET)
        compare(program, tmp_path, made, {"X": rows[:50]})


def test_a_classifier_is_served(start, tmp_path):
    rows, labels = classes(3, words=True)
    model = CLASSIFIERS["forest"]().fit(rows, labels)
    folder = tmp_path / "repository" / "weather" / "1"
    folder.mkdir(parents=True)
    made = to_onnx(model, rows[:1], options={"zipmap": False}, target_opset=OPSET)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    server = start("--model-repository", tmp_path / "repository")
    with tritonclient.http.InferenceServerClient(server.http) as client:
        given = tritonclient.http.InferInput("X", [4, 10], "FP32")
        given.set_data_from_numpy(rows[:4])
        found = client.infer("weather", [given])
    assert [word.decode() for word in found.as_numpy("label").ravel()] == list(model.predict(rows[:4]))
    same("probabilities", found.as_numpy("probabilities"), model.predict_proba(rows[:4]).astype(np.float32))


def test_scores_that_a_model_gives_as_maps_are_served_as_a_tensor(start, tmp_path):
    rows, labels = classes(3, words=True)
    model = linear_model.LogisticRegression().fit(rows, labels)
    made = to_onnx(model, rows[:1], target_opset=OPSET)
    folder = tmp_path / "repository" / "maps" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    server = start("--model-repository", tmp_path / "repository")
    with tritonclient.http.InferenceServerClient(server.http) as client:
        given = tritonclient.http.InferInput("X", [4, 10], "FP32")
        given.set_data_from_numpy(rows[:4])
        found = client.infer("maps", [given])
    assert [word.decode() for word in found.as_numpy("output_label").ravel()] == list(model.predict(rows[:4]))
    scores = found.as_numpy("output_probability")
    same("output_probability", scores, model.predict_proba(rows[:4]).astype(np.float32))
