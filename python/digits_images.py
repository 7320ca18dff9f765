"""Writes golden/digits/images.npz: scikit-learn's handwritten digits as the sample `digits` was not, and was, trained on.

usage: digits_images.py

`test` are the 450 images that training held out, `labels` their digits, `train` the first 256 of the others, all as whole
pixels from 0 to 16 (UINT8, [images, 8, 8]). Needs scikit-learn.
"""

import pathlib

import numpy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

TARGET = pathlib.Path(__file__).parent.parent / "golden" / "digits" / "images.npz"


def main():
    data = load_digits()
    train, test, _, labels = train_test_split(
        data.images, data.target, test_size=0.25, random_state=0, stratify=data.target
    )
    TARGET.parent.mkdir(exist_ok=True)
    numpy.savez_compressed(
        TARGET,
        test=test.astype(numpy.uint8),
        labels=labels.astype(numpy.uint8),
        train=train[:256].astype(numpy.uint8),
    )


if __name__ == "__main__":
    main()
