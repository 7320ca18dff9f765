"""`sklearn_iris`: Fisher's irises, and what scikit-learn says of three of them."""

import csv

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score

from .beside import module, record
from .repository import Io

COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]


def build(repository):
    folder = repository / "sklearn_iris"
    iris = load_iris()
    with (folder / "1" / "training.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows([*row, iris.target_names[kind]] for row, kind in zip(iris.data.tolist(), iris.target))
    beside = module(folder / "1" / "classifier.py")
    data, species = beside.training()
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    score = cross_val_score(beside.classifier(), data, species, cv=folds).mean()
    fitted = beside.classifier().fit(data, species)
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in fitted.classes_), encoding="utf-8")
    flowers = np.array([[5.1, 3.5, 1.4, 0.2], [5.9, 3.0, 4.2, 1.5], [6.3, 3.3, 6.0, 2.5]], np.float32)
    probabilities = fitted.predict_proba(flowers)
    record(folder, [(Io("MEASUREMENTS", "FP32", [4]), flowers)],
           [(Io("SPECIES", "BYTES", [1]), fitted.predict(flowers)[:, None].astype(object)),
            (Io("PROBABILITIES", "FP32", [3]), probabilities.astype(np.float32))])
    return {"cross_validated_accuracy": round(float(score), 4), "flowers": len(data)}
