"""Cases of whole small models, through the passes that conversion runs unless told otherwise, which
also make their computation FP16."""

from __future__ import annotations

import numpy as np
from coremltools.converters.mil import Builder as mb

from .activation import gelu, sigmoid, softmax
from .case import Family, f32, i32
from .conv import convolved
from .normalization import batch_norm, layer_norm
from .pool import pooled
from .recurrent import lstm, weights


def perceptron(family: Family) -> None:
    """Layers, norms and activations."""
    w = [family.normal(16, 8, scale=0.3), family.normal(16, scale=0.3), family.normal(4, 16, scale=0.3)]
    g, b = family.normal(8), family.normal(8)

    def build(x):
        x = mb.layer_norm(x=x, axes=[-1], gamma=g, beta=b)
        x = mb.gelu(x=mb.linear(x=x, weight=w[0], bias=w[1]), mode="TANH_APPROXIMATION")
        return mb.softmax(x=mb.linear(x=x, weight=w[2]), axis=-1)

    def expect(x):
        x = gelu(layer_norm(x, [-1], g, b) @ w[0].T.astype(float) + w[1], "tanh")
        return softmax(x @ w[2].T.astype(float), -1)

    for opset in (15, 16, 17, 18):
        family.add(
            f"perceptron_of_ios{opset}", ["layer_norm", "linear", "gelu", "softmax"],
            {"x": family.normal(3, 8)}, build, expect, opset=opset, default_passes=True, fold=False,
        )


def convolutions(family: Family) -> None:
    """Convolutions, of which conversion fuses the norms, and pooling."""
    w = [family.normal(4, 2, 3, 3, scale=0.3), family.normal(4, 1, 3, 3, scale=0.3),
         family.normal(3, 4, scale=0.5)]
    mean, variance = family.normal(4, scale=0.3), family.uniform(0.5, 1.5, 4)
    gamma, beta = family.uniform(0.5, 1.5, 4), family.normal(4, scale=0.3)

    def build(x):
        x = mb.conv(x=x, weight=w[0], pad_type="custom", pad=[1, 1, 1, 1])
        x = mb.batch_norm(x=x, mean=mean, variance=variance, gamma=gamma, beta=beta)
        x = mb.max_pool(x=mb.relu(x=x), kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
        x = mb.conv(x=x, weight=w[1], groups=4, pad_type="same")
        x = mb.mul(x=x, y=mb.sigmoid(x=x))
        return mb.linear(x=mb.reduce_mean(x=x, axes=[2, 3]), weight=w[2])

    def expect(x):
        x = convolved(x, w[0], pad_type="custom", pad=[1, 1, 1, 1])
        x = np.maximum(batch_norm(x, mean, variance, gamma, beta), 0)
        x = pooled("max", x, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
        x = convolved(x, w[1], groups=4, pad_type="same")
        return (x * sigmoid(x)).mean((2, 3)) @ w[2].T.astype(float)

    for opset in (15, 18):
        family.add(
            f"convolutions_of_ios{opset}", ["conv", "relu", "max_pool", "silu", "reduce_mean", "linear"],
            {"x": family.normal(1, 2, 8, 8)}, build, expect, opset=opset, default_passes=True,
            fold=False, oracle="torch",
        )


def attention(family: Family) -> None:
    """A block of attention over sequences of any length."""
    w = [family.normal(8, 8, scale=0.35) for _ in range(4)]

    def heads(x, weight):
        x = mb.reshape(x=mb.linear(x=x, weight=weight), shape=[1, -1, 2, 4])
        return mb.transpose(x=x, perm=[0, 2, 1, 3])

    def build(x, fused):
        q, k, v = (heads(x, weight) for weight in w[:3])
        if fused:
            mixed = mb.scaled_dot_product_attention(query=q, key=k, value=v)
        else:
            scores = mb.matmul(x=mb.mul(x=q, y=f32(0.5)), y=k, transpose_y=True)
            mixed = mb.matmul(x=mb.softmax(x=scores, axis=-1), y=v)
        mixed = mb.reshape(x=mb.transpose(x=mixed, perm=[0, 2, 1, 3]), shape=[1, -1, 8])
        return mb.add(x=x, y=mb.linear(x=mixed, weight=w[3]))

    def expect(x):
        q, k, v = (
            (x @ weight.T.astype(float)).reshape(1, -1, 2, 4).transpose(0, 2, 1, 3)
            for weight in w[:3]
        )
        mixed = softmax(q @ k.transpose(0, 1, 3, 2) / 2, -1) @ v
        return x + mixed.transpose(0, 2, 1, 3).reshape(1, -1, 8) @ w[3].T.astype(float)

    for opset, fused in ((16, False), (17, False), (18, True)):
        for flexible in ({}, {"x": {1: "n"}}):
            which = "_of_any_length" if flexible else ""
            family.add(
                f"attention{which}_of_ios{opset}",
                ["linear", "reshape", "scaled_dot_product_attention" if fused else "matmul"],
                {"x": family.normal(1, 5, 8)}, lambda x, fused=fused: build(x, fused), expect,
                opset=opset, default_passes=True, fold=False, flexible=flexible,
            )


def others(family: Family) -> None:
    """A table, a recurrent layer and a choice by comparison."""
    table = family.normal(10, 4)
    cell, last = weights(family, 4, size=(4, 3)), family.normal(2, 3)
    zeros = np.zeros((2, 3), f32)

    def build(ids):
        x = mb.transpose(x=mb.gather(x=table, indices=ids, axis=0), perm=[1, 0, 2])
        _, h, _ = mb.lstm(x=x, initial_h=zeros, initial_c=zeros, **cell)
        scores = mb.linear(x=h, weight=last)
        return scores, mb.reduce_argmax(x=scores, axis=-1)

    def expect(ids):
        x = table[ids].astype(float).transpose(1, 0, 2)
        scores = lstm(x, zeros, zeros, **cell)[1] @ last.T.astype(float)
        return scores, scores.argmax(-1)

    for opset in (15, 17):
        family.add(
            f"table_and_recurrent_layer_of_ios{opset}", ["gather", "lstm", "reduce_argmax"],
            {"ids": np.array([[1, 9, 0, 4], [3, 3, 7, 2]], i32)}, build, expect, opset=opset,
            default_passes=True, fold=False,
        )
    family.add(
        "choice_by_comparison", ["greater", "select"],
        {"x": family.normal(2, 4), "y": family.normal(4)},
        lambda x, y: mb.select(
            cond=mb.greater(x=x, y=y), a=mb.exp(x=x), b=mb.clip(x=y, alpha=f32(-1), beta=f32(1))
        ),
        lambda x, y: np.where(x > y, np.exp(x), np.clip(y, -1, 1)), opset=17, default_passes=True,
        fold=False,
    )


def programs() -> Family:
    """Whole models."""
    family = Family("programs")
    for part in (perceptron, convolutions, attention, others):
        part(family)
    return family
