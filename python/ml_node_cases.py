"""Cases of one node each for the operators of ai.onnx.ml; contrib_node_cases.py writes them.

Trees are random and shallow: what is compared is how ONNX Runtime reads attributes that the standard
leaves open, such as what two classes mean and which scores are transformed.
"""

import itertools

import numpy as np

DOMAIN = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
WORDS = ["calm", "breeze", "gale", "storm"]
RANDOM = np.random.default_rng(11)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def halves(*shape):
    """Numbers that often are equal to each other and to thresholds."""
    return (RANDOM.integers(-3, 4, shape) / 2).astype(np.float32)


def labels(count, words, integers="classlabels_int64s"):
    return {"classlabels_strings": WORDS[:count]} if words else {integers: [10 * at + 3 for at in range(count)]}


def forest(targets, prefix, trees=3, depth=3, features=4, modes=("BRANCH_LEQ",), positive=False, missing=False, votes=None):
    """The attributes of complete trees; every leaf votes for one target or, with `votes`, for these."""
    lists = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                                   "missing_value_tracks_true")}
    cast = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for node in range(2 ** (depth + 1) - 1):
            branch = node < 2**depth - 1
            row = {"treeids": tree, "nodeids": node, "featureids": int(RANDOM.integers(features)) if branch else 0,
                   "values": float(halves()) if branch else 0.0, "modes": str(RANDOM.choice(modes)) if branch else "LEAF",
                   "truenodeids": 2 * node + 1 if branch else 0, "falsenodeids": 2 * node + 2 if branch else 0,
                   "missing_value_tracks_true": int(RANDOM.integers(2))}
            for name, value in row.items():
                lists[name].append(value)
            for target in ([] if branch else votes or [int(RANDOM.integers(targets))]):
                weight = float(RANDOM.random() if positive else floats())
                for name, value in {"treeids": tree, "nodeids": node, "ids": target, "weights": weight}.items():
                    cast[name].append(value)
    if not missing:
        del lists["missing_value_tracks_true"]
    return {f"nodes_{name}": value for name, value in lists.items()} | {f"{prefix}_{name}": value for name, value in cast.items()}


def with_gaps(rows):
    return np.where(RANDOM.random(rows.shape) < 0.2, np.float32(np.nan), rows)


def classifiers(case):
    name, x = "TreeEnsembleClassifier", halves(9, 4)
    for transform, positive, words in itertools.product(TRANSFORMS, [False, True], [False, True]):
        title = f"{transform.lower()}_{'positive' if positive else 'signed'}_{'words' if words else 'numbers'}"
        if not words:
            few = forest(1, "class", positive=positive)
            case(f"ml_trees_one_{title}", name, [x], 2, **few, **labels(1, words), post_transform=transform)
        for voted in [[0], [1], [0, 1]]:
            if transform == "PROBIT" and voted == [0]:
                continue
            two = forest(2, "class", positive=positive, votes=voted)
            of = "".join(map(str, voted))
            case(f"ml_trees_two_{of}_{title}", name, [x], 2, **two, **labels(2, words), post_transform=transform)
        many = forest(4, "class", positive=positive)
        case(f"ml_trees_many_{title}", name, [x], 2, **many, **labels(4, words), post_transform=transform)
    for transform, count, bases in [(t, *p) for t in TRANSFORMS for p in [(1, 1), (2, 1), (2, 2), (4, 4)]]:
        for words, voted in [(False, [0]), (True, [0]), (False, [1]), (True, list(range(count)))]:
            if (count == 1 and (words or voted == [1])) or (transform == "PROBIT" and (count, bases, voted) == (2, 1, [0])):
                continue
            made = forest(count, "class", votes=voted)
            title = f"{transform.lower()}_{count}_{bases}_{'words' if words else 'numbers'}_{'_'.join(map(str, voted))}"
            case(f"ml_trees_base_{title}", name, [x], 2, **made, **labels(count, words), post_transform=transform,
                 base_values=floats(bases).tolist())
    for mode in MODES:
        made = forest(3, "class", modes=[mode], missing=True)
        case(f"ml_trees_{mode.lower()}", name, [with_gaps(x)], 2, **made, **labels(3, False))
    mixed = forest(3, "class", modes=MODES, missing=True)
    case("ml_trees_mixed", name, [with_gaps(x)], 2, **mixed, **labels(3, False))
    for kind in [np.float64, np.int64, np.int32]:
        case(f"ml_trees_{np.dtype(kind).name}", name, [x.astype(kind)], 2, **forest(3, "class"), **labels(3, True))


def regressors(case):
    name, x = "TreeEnsembleRegressor", halves(9, 4)
    for aggregate, targets, transform in itertools.product(["SUM", "AVERAGE", "MIN", "MAX"], [1, 3], TRANSFORMS):
        made = forest(targets, "target", trees=4) | {"n_targets": targets, "aggregate_function": aggregate}
        title = f"ml_forest_{aggregate.lower()}_{targets}_{transform.lower()}"
        case(title, name, [x], **made, post_transform=transform)
        made |= forest(targets, "target", trees=4, votes=range(targets))
        case(f"{title}_base", name, [x], **made, post_transform=transform, base_values=floats(targets).tolist())
    case("ml_forest_mixed", name, [with_gaps(x)], **forest(1, "target", modes=MODES, missing=True), n_targets=1)
    case("ml_forest_all", name, [x], **forest(3, "target", votes=[0, 1, 2]), n_targets=3)
    case("ml_forest_large", name, [floats(200, 20)], **forest(1, "target", trees=20, depth=6, features=20), n_targets=1)
    case("ml_forest_double", name, [x.astype(np.float64)], **forest(1, "target"), n_targets=1)


def linear(case):
    x = floats(6, 3)
    for transform, words in itertools.product(TRANSFORMS, [False, True]):
        title = f"{transform.lower()}_{'words' if words else 'numbers'}"
        for classes, sums in [(2, 1), (2, 2), (4, 4)][transform == "PROBIT":]:
            case(f"ml_linear_{classes}_{sums}_{title}", "LinearClassifier", [x], 2, coefficients=floats(3 * sums).tolist(),
                 intercepts=floats(sums).tolist(), post_transform=transform, **labels(classes, words, "classlabels_ints"))
    for transform, targets in itertools.product(TRANSFORMS, [1, 3]):
        case(f"ml_linear_regressor_{targets}_{transform.lower()}", "LinearRegressor", [x], coefficients=floats(3 * targets).tolist(),
             intercepts=floats(targets).tolist(), targets=targets, post_transform=transform)


def machines(case):
    x = floats(6, 3)
    for kind, transform in itertools.product(["LINEAR", "POLY", "RBF", "SIGMOID"], TRANSFORMS):
        kernel = {"kernel_type": kind, "kernel_params": [0.4, 0.3, 2.0], "post_transform": transform}
        title = f"{kind.lower()}_{transform.lower()}"
        for classes, words in [(2, False), (3, True)]:
            pairs = classes * (classes - 1) // 2
            made = {"vectors_per_class": [2] * classes, "support_vectors": floats(6 * classes).tolist(),
                    "coefficients": floats(2 * classes * (classes - 1)).tolist(), "rho": floats(pairs).tolist()}
            made |= labels(classes, words, "classlabels_ints") | kernel
            if (transform, classes) != ("PROBIT", 2):
                case(f"ml_svc_{classes}_{title}", "SVMClassifier", [x], 2, **made)
            case(f"ml_svc_{classes}_{title}_probability", "SVMClassifier", [x], 2, **made,
                 prob_a=(-np.abs(floats(pairs))).tolist(), prob_b=floats(pairs).tolist())
        case(f"ml_svr_{title}", "SVMRegressor", [x], **kernel, n_supports=4, support_vectors=floats(12).tolist(),
             coefficients=floats(4).tolist(), rho=floats(1).tolist())
        case(f"ml_svr_{title}_one_class", "SVMRegressor", [x], **kernel, n_supports=4, support_vectors=floats(12).tolist(),
             coefficients=floats(4).tolist(), rho=floats(1).tolist(), one_class=1)
    plain = {"kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 0.0], "support_vectors": [0.0]}
    for transform, classes in itertools.product(TRANSFORMS, [2, 3]):
        case(f"ml_svc_sums_{classes}_{transform.lower()}", "SVMClassifier", [x], 2, coefficients=floats(3 * classes).tolist(),
             rho=floats(1).tolist(), **plain, post_transform=transform, **labels(classes, False, "classlabels_ints"))
    case("ml_svr_sums", "SVMRegressor", [x], coefficients=floats(3).tolist(), rho=floats(1).tolist(), **plain)


def encoders(case):
    x, words = halves(3, 2), np.array([["calm", "gale"], ["storm", "?"]], dtype=object)
    whole = RANDOM.integers(0, 4, (3, 2))
    for norm in ["MAX", "L1", "L2"]:
        case(f"ml_normalizer_{norm.lower()}", "Normalizer", [x + np.float32(0.1)], norm=norm)
    case("ml_scaler", "Scaler", [x], offset=[0.5, -1.0], scale=[2.0, 0.25])
    case("ml_scaler_integers", "Scaler", [whole], offset=[0.5], scale=[2.0])
    case("ml_imputer", "Imputer", [with_gaps(x)], imputed_value_floats=[7.0, 8.0], replaced_value_float=float("nan"))
    case("ml_imputer_one", "Imputer", [x], imputed_value_floats=[7.0], replaced_value_float=0.5)
    case("ml_imputer_integers", "Imputer", [whole], imputed_value_int64s=[-7, -8], replaced_value_int64=1)
    case("ml_one_hot_words", "OneHotEncoder", [words], cats_strings=WORDS, zeros=1)
    case("ml_one_hot_integers", "OneHotEncoder", [whole], cats_int64s=[3, 1], zeros=1)
    case("ml_one_hot_floats", "OneHotEncoder", [np.abs(x)], cats_int64s=[1, 0], zeros=1)
    case("ml_features", "FeatureVectorizer", [x, floats(3, 1), floats(3, 3)], inputdimensions=[2, 1, 3])
    case("ml_features_narrow", "FeatureVectorizer", [x, floats(3, 3)], inputdimensions=[3, 2])
    case("ml_extractor", "ArrayFeatureExtractor", [words, np.array([1, 1, 0])])
    case("ml_binarizer", "Binarizer", [x], threshold=0.5)
    case("ml_categories", "CategoryMapper", [words], cats_strings=WORDS, cats_int64s=[4, 3, 2, 1], default_int64=9)
    case("ml_categories_back", "CategoryMapper", [whole], cats_strings=WORDS, cats_int64s=[4, 3, 2, 1], default_string="?")
    case("ml_labels_1", "LabelEncoder", [words], version=1, classes_strings=WORDS, default_int64=9)
    case("ml_labels_1_back", "LabelEncoder", [whole], version=1, classes_strings=WORDS[:2])
    for given, keys in [("strings", WORDS), ("int64s", [0, 1, 2, 5]), ("floats", [0.5, 1.0, float("nan"), 0.0])]:
        for wanted, values in [("strings", ["a", "b", "c", "d"]), ("int64s", [4, 3, 2, 1]), ("floats", [0.1, 0.2, 0.3, 0.4])]:
            data = {"strings": words, "int64s": whole, "floats": with_gaps(x)}[given]
            if (given, wanted) != ("int64s", "int64s"):
                # A NaN is a key from version 4 on.
                case(f"ml_labels_{given}_{wanted}", "LabelEncoder", [data], version=4 if given == "floats" else 3, **{f"keys_{given}": keys, f"values_{wanted}": values})


GROUPS = [classifiers, regressors, linear, machines, encoders]
