"""Cases of sorting and of suppressing boxes."""

from __future__ import annotations

import numpy as np

from .case import Family, f16, f32, i32, words

PADDING = (
    "boxes and scores beyond those selected are 0, indices -1, as in the reference of coremltools' "
    "tests"
)


def distinct(family: Family, dtype: type, *shape: int) -> np.ndarray:
    """Values of any type without ties."""
    x = family.distinct(*shape) * 4
    return (x - x.min() if np.dtype(dtype).kind == "u" else x).astype(dtype)


def sorts(family: Family) -> None:
    """`argsort`."""
    for ascending in (False, True):
        for shape, axis in (((6,), 0), ((2, 4), -1), ((3, 2), 0), ((2, 3, 2), 1),
                            ((1, 2, 1, 2, 3), -1)):
            family.one(
                f"argsort_of_rank_{len(shape)}_along_axis_{axis}_{'up' if ascending else 'down'}"
                .replace("-", "minus_"), "argsort", {"x": family.distinct(*shape)},
                lambda x, a=axis, up=ascending: np.argsort(x if up else -x, a), 15,
                {"axis": axis, "ascending": ascending},
            )
    for dtype, opset in ((f32, 15), (i32, 15), (f16, 16)):
        family.one(
            f"argsort_of_{words(dtype)}_goes_down_along_the_last_axis_unless_told", "argsort",
            {"x": distinct(family, dtype, 2, 4)}, lambda x: np.argsort(-x, -1), opset,
        )


def tops(family: Family) -> None:
    """`topk`, with values and places."""

    def top(x, k=1, axis=-1, ascending=False):
        signed = x.astype(np.float64)
        places = np.argsort(signed if ascending else -signed, axis)
        places = np.take(places, range(x.shape[axis] if k == -1 else k), axis)
        return np.take_along_axis(x, places, axis), places

    for shape, params in (((6,), {"k": 3}), ((2, 4), {"k": 2, "axis": 1, "ascending": True}),
                          ((4, 2), {"k": 3, "axis": 0}), ((2, 3, 2), {"k": 2, "axis": -2}),
                          ((2, 1, 2, 1, 3), {"k": 3, "ascending": True}), ((3, 2), {})):
        family.one(
            f"topk_of_rank_{len(shape)}_with_k_{params.get('k', 1)}", "topk",
            {"x": family.distinct(*shape)}, lambda x, p=params: top(x, **p), 15, params,
        )
    for dtype, opset in ((i32, 15), (f16, 16), (f32, 16), (f32, 17), (np.int8, 17), (np.uint8, 17),
                         (np.int16, 17), (np.uint16, 17)):
        # coremltools negates unsigned values where it folds, which wraps.
        family.one(
            f"topk_of_{words(dtype)}_of_ios{opset}", "topk", {"x": distinct(family, dtype, 2, 5)},
            lambda x: top(x, 2), opset, {"k": 2}, fold=np.dtype(dtype).kind != "u",
        )
    for opset in (16, 17):
        family.one(
            f"topk_of_values_alone_of_ios{opset}", "topk", {"x": family.distinct(2, 5)},
            lambda x: top(x, 2)[0], opset, {"k": 2, "return_indices": False},
        )
        family.one(
            f"topk_without_order_of_ios{opset}_of_one_value", "topk", {"x": family.distinct(2, 5)},
            lambda x: top(x, 1), opset, {"k": 1, "sort": False},
            why="the order of several values would not be known",
        )
    for kind in ("int32", "uint16"):
        family.one(
            f"topk_with_places_as_{kind}", "topk", {"x": family.distinct(3, 3)},
            lambda x: top(x, 2), 17, {"k": 2, "output_indices_dtype": kind},
        )
    for dtype in (np.int8, np.int16):
        family.one(
            f"topk_with_k_in_{words(dtype)}", "topk", {"x": family.distinct(2, 4)},
            lambda x: top(x, 2), 17, {"k": dtype(2)},
        )


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two boxes (x, y, width, height) about their centres."""
    low = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    high = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    shared = np.prod(np.maximum(0, high - low))
    return float(shared / (np.prod(a[2:]) + np.prod(b[2:]) - shared))


def suppressed(boxes, scores, iou_threshold, max_boxes, score_threshold=-np.inf, by_class=False):
    """Boxes in descending order of their best score, without those that overlap a better one."""
    n, _, classes = scores.shape
    out = (np.zeros((n, max_boxes, 4)), np.zeros((n, max_boxes, classes)),
           np.full((n, max_boxes), -1), np.zeros(n, int))
    for batch in range(n):
        best, kinds = scores[batch].max(-1), scores[batch].argmax(-1)
        kept: list[int] = []
        for at in np.argsort(-best):
            rivals = [k for k in kept if not by_class or kinds[k] == kinds[at]]
            far = all(overlap(boxes[batch, at], boxes[batch, k]) <= iou_threshold for k in rivals)
            if best[at] > score_threshold and far:
                kept.append(int(at))
        kept = (kept or [int(best.argmax())])[:max_boxes]
        count = len(kept)
        out[0][batch, :count], out[1][batch, :count] = boxes[batch, kept], scores[batch, kept]
        out[2][batch, :count], out[3][batch] = kept, count
    return out


def boxes(family: Family) -> None:
    """`non_maximum_suppression`, in the layout of iOS15 and in that of iOS17."""
    given = np.array([
        [[2, 2, 2, 2], [2.5, 2, 2, 2], [6, 6, 2, 4], [6, 6.25, 2, 4], [10, 2, 1, 1], [2, 2.5, 2, 3]],
        [[1, 1, 2, 2], [4, 1, 2, 2], [1, 4, 2, 2], [1.5, 1, 2, 2], [4, 1.5, 2, 2], [9, 9, 1, 3]],
    ], f32)
    for classes in (1, 3):
        scores = family.distinct(2, 6, classes) / 4
        for name, params in {
            "": {"iou_threshold": 0.3, "max_boxes": 4},
            "_with_few_places": {"iou_threshold": 0.55, "max_boxes": 2},
            "_for_each_class": {"iou_threshold": 0.3, "max_boxes": 5, "per_class_suppression": True},
            "_without_overlap": {"iou_threshold": 0.05, "max_boxes": 6},
        }.items():
            iou, most = params["iou_threshold"], params["max_boxes"]
            each = params.get("per_class_suppression", False)
            constants = params | {"iou_threshold": f32(iou)}
            for low, which in ((-100.0, ""), (0.5, "_above_a_score")):
                family.one(
                    f"suppression_of_{classes}_classes{name}{which}_of_ios15",
                    "non_maximum_suppression", {"boxes": given, "scores": scores},
                    lambda boxes, scores, i=iou, m=most, e=each, s=low:
                        suppressed(boxes, scores, i, m, s, e),
                    15, constants | {"score_threshold": f32(low)}, why=PADDING,
                )
            family.one(
                f"suppression_of_{classes}_classes{name}_of_ios17", "non_maximum_suppression",
                {"boxes": given.transpose(0, 2, 1), "scores": scores.transpose(0, 2, 1)},
                lambda boxes, scores, i=iou, m=most, e=each: turned(
                    suppressed(boxes.transpose(0, 2, 1), scores.transpose(0, 2, 1), i, m, by_class=e)
                ),
                17, constants, why=PADDING,
            )
    family.one(
        "suppression_in_fp16", "non_maximum_suppression",
        {"boxes": given.astype(f16), "scores": (family.distinct(2, 6, 1) / 4).astype(f16)},
        lambda boxes, scores: suppressed(boxes, scores, 0.3, 3, -100.0), 16,
        {"iou_threshold": f16(0.3), "score_threshold": f16(-100), "max_boxes": 3}, why=PADDING,
    )


def turned(result: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The results of iOS17: boxes last, and no counts."""
    return result[0].transpose(0, 2, 1), result[1].transpose(0, 2, 1), result[2]


def sorting() -> Family:
    """Sorting."""
    family = Family("sorting")
    for part in (sorts, tops, boxes):
        part(family)
    return family
