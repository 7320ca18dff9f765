"""Cases of pipelines and of the simple models that they hold."""

import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from coremltools.proto import Model_pb2

from neural_network_archive import case, network, rand, weights
from neural_network_models import sigmoid


def model(kind, inputs, outputs, probabilities=""):
    """A model of a kind, and its message; features are names with a shape, or a kind of number."""
    spec = Model_pb2.Model(specificationVersion=4)
    getattr(spec, kind).SetInParent()
    for given, wanted in [(inputs, spec.description.input), (outputs, spec.description.output)]:
        for name, what in given.items():
            feature = wanted.add(name=name)
            if isinstance(what, str):
                getattr(feature.type, what).SetInParent()
            else:
                feature.type.multiArrayType.dataType = 65600
                feature.type.multiArrayType.shape.extend(what)
    if probabilities:
        spec.description.predictedFeatureName = next(iter(outputs))
        spec.description.predictedProbabilitiesName = probabilities
        spec.description.output[1].type.dictionaryType.stringKeyType.SetInParent()
    return spec, getattr(spec, kind)


def pipeline(kind, members, inputs, outputs, probabilities=""):
    spec, message = model(kind, inputs, outputs, probabilities)
    pipe = message if kind == "pipeline" else message.pipeline
    for member in members:
        pipe.models.add().CopyFrom(member)
        pipe.names.append(member.WhichOneof("Type"))
    return spec


def grown(trees, params):
    """Adds trees as nested (feature, threshold, then, other) whose leaves are lists of values."""

    def add(tree, branch, at):
        node = params.nodes.add(treeId=tree, nodeId=at)
        if isinstance(branch, list):
            node.nodeBehavior = 6
            for index, value in enumerate(branch):
                node.evaluationInfo.add(evaluationIndex=index, evaluationValue=value)
            return at + 1
        node.branchFeatureIndex, node.branchFeatureValue = branch[:2]
        node.trueChildNodeId = at + 1
        node.falseChildNodeId = add(tree, branch[2], at + 1)
        return add(tree, branch[3], node.falseChildNodeId)

    for tree, branch in enumerate(trees):
        add(tree, branch, 0)


def summed(trees, x):
    total = 0
    for branch in trees:
        while not isinstance(branch, list):
            branch = branch[2] if x[branch[0]] <= branch[1] else branch[3]
        total = total + np.array(branch)
    return total


def pipelines():
    softmax = lambda v: np.exp(v) / np.exp(v).sum()
    x = rand(3).astype(np.float64)
    scaler, message = model("scaler", {"x": [3]}, {"scaled": [3]})
    message.shiftValue.extend([1, 2, 3])
    message.scaleValue.extend([0.5])
    normalizer, message = model("normalizer", {"scaled": [3]}, {"unit": [3]})
    message.normType = 2
    w, b = weights(2, 3), weights(2)
    net = NeuralNetworkBuilder([("unit", datatypes.Array(3))], [("y", datatypes.Array(2))])
    net.add_inner_product("dense", w, b, 3, 2, True, "unit", "y")
    net.spec.description.metadata.Clear()
    scaled = (x + [1, 2, 3]) * 0.5
    spec = pipeline("pipeline", [scaler, normalizer, net.spec], {"x": [3]}, {"y": [2]})
    case("pipeline", "network", spec, {"x": x}, {"y": scaled / np.linalg.norm(scaled) @ w.T + b})

    joined, message = model("featureVectorizer", {"a": "doubleType", "b": [2]}, {"all": [3]})
    message.inputList.add(inputColumn="a", inputDimensions=1)
    message.inputList.add(inputColumn="b", inputDimensions=2)
    trees = [(0, 0.25, [0.5, 0.25, -1.0], (2, -0.5, [0, 1, 0.5], [2, 0, 0])), (1, 0.0, [0.25, 0, 0.75], [0, 0.5, 0])]
    forest, message = model("treeEnsembleClassifier", {"all": [3]}, {"label": "stringType", "shares": [3]}, "shares")
    message.treeEnsemble.numPredictionDimensions = 3
    message.treeEnsemble.basePredictionValue.extend([0.25, 0, 0.5])
    message.postEvaluationTransform = 1
    message.stringClassLabels.vector.extend(["low", "middle", "high"])
    grown(trees, message.treeEnsemble)
    spec = pipeline(
        "pipelineClassifier", [joined, forest], {"a": "doubleType", "b": [2]}, {"label": "stringType", "shares": [3]}, "shares"
    )
    a, b = np.array([0.75]), np.array([-0.5, 0.5])
    shares = softmax(summed(trees, [0.75, -0.5, 0.5]) + [0.25, 0, 0.5])
    outputs = {"label": np.array(["low", "middle", "high"][shares.argmax()]), "shares": shares.astype(np.float32)}
    case("pipeline", "trees", spec, {"a": a, "b": b}, outputs)

    boosted, message = model("treeEnsembleRegressor", {"x": [3]}, {"y": "doubleType"})
    message.treeEnsemble.numPredictionDimensions = 1
    message.treeEnsemble.basePredictionValue.append(0.5)
    trees = [(0, 0.0, [0.25], [-0.5]), (1, 0.125, [1.5], (2, 0.5, [0.75], [-2.0]))]
    grown(trees, message.treeEnsemble)
    case("pipeline", "regression", boosted, {"x": x}, {"y": (summed(trees, x) + 0.5).astype(np.float64)})

    # Trees and linear models with a number for each column.
    names = ("a", "b", "c")
    apart, message = model("treeEnsembleRegressor", dict.fromkeys(names, "doubleType"), {"y": "doubleType"})
    message.treeEnsemble.CopyFrom(boosted.treeEnsembleRegressor.treeEnsemble)
    columns = {name: np.array([one]) for name, one in zip(names, x)}
    case("pipeline", "trees_of_columns", apart, columns, {"y": (summed(trees, x) + 0.5).astype(np.float64)})
    apart, message = model("glmRegressor", dict.fromkeys(names, "doubleType"), {"y": "doubleType"})
    message.weights.add(value=[0.5, -2.0, 0.25])
    message.offset.append(1.5)
    case("pipeline", "sum_of_columns", apart, columns, {"y": np.array([x @ [0.5, -2.0, 0.25] + 1.5])})

    hot, message = model("oneHotEncoder", {"kind": "int64Type"}, {"hot": [3]})
    message.int64Categories.vector.extend([4, 7, 9])
    line, message = model("glmRegressor", {"hot": [3]}, {"y": "doubleType"})
    row = [0.5, -1.0, 2.0]
    message.weights.add().value.extend(row)
    message.offset.append(0.25)
    message.postEvaluationTransform = 1
    spec = pipeline("pipelineRegressor", [hot, line], {"kind": "int64Type"}, {"y": "doubleType"})
    case("pipeline", "one_hot", spec, {"kind": np.array([7])}, {"y": np.array([sigmoid(-1.0 + 0.25)])})

    filled, message = model("imputer", {"x": [4]}, {"filled": [4]})
    message.imputedDoubleArray.vector.extend([1, 2, 3, 4])
    message.replaceDoubleValue = float("nan")
    chosen, message = model("arrayFeatureExtractor", {"filled": [4]}, {"some": [2]})
    message.extractIndex.extend([3, 1])
    classes, message = model("glmClassifier", {"some": [2]}, {"label": "int64Type", "shares": [3]}, "shares")
    rows, offset = [[0.5, -0.25], [1.0, 0.5]], [0.25, -0.5]
    for row in rows:
        message.weights.add().value.extend(row)
    message.offset.extend(offset)
    message.int64ClassLabels.vector.extend([10, 20, 30])
    spec = pipeline("pipelineClassifier", [filled, chosen, classes], {"x": [4]}, {"label": "int64Type", "shares": [3]}, "shares")
    x = np.array([0.5, np.nan, 0.25, -1.5])
    shares = softmax(np.concatenate([[0], np.array(rows) @ [-1.5, 2] + offset]))
    outputs = {"label": np.array([10, 20, 30][shares.argmax()]), "shares": shares.astype(np.float32)}
    case("pipeline", "imputer", spec, {"x": x}, outputs)

    boxes = np.array([[1, 1, 2, 2], [1.1, 1, 2, 2], [5, 5, 2, 2], [5, 5.2, 2, 2], [9, 1, 1, 1]])
    scores = np.array([[0.9, 0.1], [0.3, 0.8], [0.6, 0.2], [0.7, 0.1], [0.05, 0.1]])
    for by_class, kept in [(False, [0, 3]), (True, [0, 1, 3])]:
        spec, message = model("nonMaximumSuppression", {"confidence": [5, 2], "coordinates": [5, 4]}, {"scores": [], "boxes": []})
        message.pickTop.perClass = by_class
        message.iouThreshold, message.confidenceThreshold = 0.5, 0.2
        message.confidenceInputFeatureName, message.coordinatesInputFeatureName = "confidence", "coordinates"
        message.confidenceOutputFeatureName, message.coordinatesOutputFeatureName = "scores", "boxes"
        outputs = {"scores": scores[kept], "boxes": boxes[kept]}
        case("pipeline", f"suppression_{by_class}", spec, {"confidence": scores, "coordinates": boxes}, outputs)

    mapped, message = model("categoricalMapping", {"word": "stringType"}, {"number": "int64Type"})
    message.stringToInt64Map.map.update({"one": 1, "two": 2})
    message.int64Value = -1
    for word, number in [("two", 2), ("ten", -1)]:
        case("pipeline", f"mapping_{word}", mapped, {"word": np.array([word])}, {"number": np.array([number])})

    vectors, alpha, rho = weights(3, 2), weights(3), 0.25
    x = rand(2).astype(np.float64)
    kernels = {
        "linear": lambda: vectors @ x,
        "rbf": lambda: np.exp(-0.5 * ((vectors - x) ** 2).sum(1)),
        "poly": lambda: (0.5 * vectors @ x + 1.0) ** 3,
        "sigmoid": lambda: np.tanh(0.5 * vectors @ x + 1.0),
    }
    fields = {"linear": {}, "rbf": {"gamma": 0.5}, "poly": {"gamma": 0.5, "c": 1.0, "degree": 3}, "sigmoid": {"gamma": 0.5, "c": 1.0}}
    for name, values in kernels.items():
        spec, message = model("supportVectorRegressor", {"x": [2]}, {"y": "doubleType"})
        kernel = getattr(message.kernel, f"{name}Kernel")
        kernel.SetInParent()
        for field, value in fields[name].items():
            setattr(kernel, field, value)
        for row in vectors:
            if name == "poly":
                vector = message.sparseSupportVectors.vectors.add()
                for at, value in enumerate(row):
                    vector.nodes.add(index=at + 1, value=value)
            else:
                message.denseSupportVectors.vectors.add().values.extend(row)
        message.coefficients.alpha.extend(alpha)
        message.rho = rho
        case("pipeline", f"svm_{name}", spec, {"x": x}, {"y": np.array([alpha @ values() - rho], np.float64)})

    spec, message = model("supportVectorClassifier", {"x": [2]}, {"label": "int64Type", "shares": [2]}, "shares")
    message.kernel.linearKernel.SetInParent()
    for row in vectors:
        message.denseSupportVectors.vectors.add().values.extend(row)
    message.numberOfSupportVectorsPerClass.extend([2, 1])
    message.coefficients.add().alpha.extend(alpha)
    message.rho.append(rho)
    message.probA.append(-1.5)
    message.probB.append(0.25)
    message.int64ClassLabels.vector.extend([3, 8])
    share = 1 / (1 + np.exp(-1.5 * (alpha @ vectors @ x - rho) + 0.25))
    outputs = {"label": np.array([3, 8][int(share < 0.5)]), "shares": np.array([share, 1 - share], np.float32)}
    case("pipeline", "svm_labels", spec, {"x": x}, outputs)
    many_labels()
    hot, message = model("oneHotEncoder", {"kind": "int64Type"}, {})
    message.int64Categories.vector.extend([4, 7, 9])
    message.outputSparse = True
    message.handleUnknown = 1
    found = hot.description.output.add(name="found")
    found.type.dictionaryType.int64KeyType.SetInParent()
    row, message = model("featureVectorizer", {}, {"row": [3]})
    row.description.input.add().CopyFrom(found)
    message.inputList.add(inputColumn="found", inputDimensions=3)
    spec = pipeline("pipeline", [hot, row], {"kind": "int64Type"}, {"row": [3]})
    for kind, values in ((9, [0, 0, 1]), (5, [0, 0, 0])):
        case("pipeline", f"one_hot_dictionary_{kind}", spec, {"kind": np.array([kind])}, {"row": np.array(values, np.float64)})


def many_labels():
    """Support vector machines of four labels: decisions of pairs, votes, and the coupling of probabilities by the
    equations of its minimum (Wu, Lin and Weng 2004)."""
    random = np.random.default_rng(5)
    sizes, labels = [2, 1, 3, 1], [3, 8, 11, 20]
    count, total = len(sizes), sum(sizes)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    vectors, alpha = random.normal(size=(total, 2)), random.normal(size=(count - 1, total))
    rho, a, b = random.normal(size=(3, len(pairs))) * 0.3
    a -= 1.5
    starts = np.cumsum([0] + sizes)
    for number, x in enumerate(random.normal(size=(3, 2))):
        kernel = np.exp(-0.5 * ((vectors - x) ** 2).sum(1))
        votes, r = np.zeros(count), np.zeros((count, count))
        for at, (i, j) in enumerate(pairs):
            of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            decision = alpha[j - 1, of_i] @ kernel[of_i] + alpha[i, of_j] @ kernel[of_j] - rho[at]
            votes[i if decision > 0 else j] += 1
            r[i, j] = 1 / (1 + np.exp(a[at] * decision + b[at]))
            r[j, i] = 1 - r[i, j]
        q = np.diag((r**2).sum(0)) - r * r.T
        border = np.block([[q, np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]])
        shares = np.linalg.solve(border, [0] * count + [1])[:count]
        for with_shares in (True, False):
            outputs = {"label": "int64Type"} | ({"shares": [count]} if with_shares else {})
            named = ["shares"] if with_shares else []
            spec, message = model("supportVectorClassifier", {"x": [2]}, outputs, *named)
            spec.description.predictedFeatureName = "label"
            message.kernel.rbfKernel.gamma = 0.5
            for row in vectors:
                message.denseSupportVectors.vectors.add().values.extend(row)
            message.numberOfSupportVectorsPerClass.extend(sizes)
            for row in alpha:
                message.coefficients.add().alpha.extend(row)
            message.rho.extend(rho)
            if with_shares:
                message.probA.extend(a)
                message.probB.extend(b)
            message.int64ClassLabels.vector.extend(labels)
            best = shares if with_shares else votes
            expected = {"label": np.array(labels[best.argmax()])}
            if with_shares:
                expected["shares"] = shares.astype(np.float32)
            case("pipeline", f"svm_many_{'shares' if with_shares else 'votes'}_{number}", spec, {"x": x}, expected)
