"""Cases of operators on images."""

from __future__ import annotations

import numpy as np

from .case import Family, f16, f32, i32, words
from .sampling import (
    check_crops, check_grids, check_samples, cropped, nearest, resized, sampled, transformed,
)

MODES = ("DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS")
TESTED = "coremltools' tests expect such values of Core ML in"
FLOOR = f"{TESTED} the mode DEFAULT: the value at or before a point"
WHOLE = "how other modes round a point is not documented, so all points are whole"


def upsampled(family: Family) -> None:
    """`upsample_nearest_neighbor` and `upsample_bilinear`, by whole and by fractional factors."""
    for name, shape, h, w in (
        ("whole_factors", (1, 2, 2, 3), i32(2), i32(3)), ("factors_of_one", (1, 1, 2, 2), i32(1), i32(2)),
        ("fractional_factors", (1, 1, 4, 2), f32(1.5), f32(2.5)),
        ("factors_below_one", (1, 2, 4, 6), f32(0.5), f32(0.5)), ("factors_of_rank_3", (2, 2, 2), i32(2), i32(1)),
        ("factors_of_rank_5", (1, 2, 1, 2, 2), i32(1), i32(2)),
    ):
        to = (int(shape[-2] * h), int(shape[-1] * w))
        params = {"scale_factor_height": h, "scale_factor_width": w}
        family.one(f"upsample_nearest_by_{name}", "upsample_nearest_neighbor",
                   {"x": family.normal(*shape)}, lambda x, to=to: nearest(x, to), 15, params)
        for aligned in (True, False):
            mode = "STRICT_ALIGN_CORNERS" if aligned else "UNALIGN_CORNERS"
            family.one(
                f"upsample_bilinear_by_{name}_with_corners_{'aligned' if aligned else 'apart'}",
                "upsample_bilinear", {"x": family.normal(*shape)},
                lambda x, to=to, m=mode: resized(x, to, m), 15, params | {"align_corners": aligned},
            )
    params = {"scale_factor_height": i32(2), "scale_factor_width": i32(3)}
    for name, more, mode in (
        ("corners_aligned_unless_told", {}, "STRICT_ALIGN_CORNERS"),
        ("centres_unless_told", {"align_corners": False}, "UNALIGN_CORNERS"),
        ("centres", {"align_corners": False, "half_pixel_centers": True}, "UNALIGN_CORNERS"),
        ("edges", {"align_corners": False, "half_pixel_centers": False}, "DEFAULT"),
        ("corners", {"align_corners": True, "half_pixel_centers": False}, "STRICT_ALIGN_CORNERS"),
    ):
        family.one(f"upsample_bilinear_of_ios16_by_{name}", "upsample_bilinear",
                   {"x": family.normal(1, 1, 2, 3)}, lambda x, m=mode: resized(x, (4, 9), m), 16,
                   params | more)
    x = family.normal(1, 1, 2, 2, dtype=f16)
    family.one("upsample_nearest_in_fp16", "upsample_nearest_neighbor", {"x": x},
               lambda x: nearest(x, (4, 6)), 16, params)
    family.one("upsample_bilinear_in_fp16", "upsample_bilinear", {"x": x},
               lambda x: resized(x, (4, 6), "STRICT_ALIGN_CORNERS"), 16, params)
    for operator in ("upsample_nearest_neighbor", "upsample_bilinear"):
        family.one(f"{operator}_of_unknown_axes", operator, {"x": family.normal(1, 1, 3, 2)},
                   (lambda x: nearest(x, (6, 6))) if "nearest" in operator
                   else (lambda x: resized(x, (6, 6), "STRICT_ALIGN_CORNERS")), 15, params,
                   flexible={"x": {2: "h", 3: "w"}})


def sized(family: Family) -> None:
    """`resize_bilinear` and `resize_nearest_neighbor`."""
    for mode in MODES:
        for shape, to in (((1, 1, 3, 4), (5, 7)), ((1, 2, 5, 4), (3, 2)), ((1, 1, 4), (1, 6))):
            family.one(
                f"resize_bilinear_{mode.lower()}_of_rank_{len(shape)}_to_{to[0]}_by_{to[1]}",
                "resize_bilinear", {"x": family.normal(*shape)},
                lambda x, to=to, m=mode: resized(x, to, m), 15,
                {"target_size_height": to[0], "target_size_width": to[1], "sampling_mode": mode},
            )
    family.one("resize_bilinear_is_default_unless_told", "resize_bilinear",
               {"x": family.normal(1, 1, 2, 3, dtype=f16)}, lambda x: resized(x, (4, 4), "DEFAULT"), 16,
               {"target_size_height": 4, "target_size_width": 4})
    for shape, to, dtype, opset in (((1, 1, 2, 3), (4, 7), f32, 15), ((1, 2, 5, 4), (2, 3), f32, 15),
                                    ((2, 2, 2), (3, 1), f32, 15), ((1, 2, 1, 2, 3), (3, 4), f32, 15),
                                    ((1, 1, 3, 2), (5, 5), f16, 16)):
        family.one(
            f"resize_nearest_of_rank_{len(shape)}_to_{to[0]}_by_{to[1]}_in_{words(dtype)}",
            "resize_nearest_neighbor", {"x": family.normal(*shape, dtype=dtype)},
            lambda x, to=to: nearest(x, to), opset,
            {"target_size_height": to[0], "target_size_width": to[1]}, why=FLOOR,
        )


def freely_sized(family: Family) -> None:
    """`resize` of iOS17."""
    for mode in MODES:
        family.one(
            f"resize_linear_{mode.lower()}", "resize", {"x": family.normal(1, 1, 3, 4)},
            lambda x, m=mode: resized(x, (5, 3), m), 17,
            {"shape": [5, 3], "resized_dims": np.uint32(2), "interpolation_mode": "LINEAR",
             "sampling_mode": mode},
        )
    for mode, start, lengths, points in (
        ("STRICT_ALIGN_CORNERS", 5, 3, [0, 2, 4]), ("ALIGN_CORNERS", 7, 3, [0, 3, 6]),
        ("OFFSET_CORNERS", 7, 3, [1, 3, 5]), ("UNALIGN_CORNERS", 9, 3, [1, 4, 7]),
    ):
        family.one(
            f"resize_nearest_{mode.lower()}", "resize", {"x": family.normal(1, 2, start)},
            lambda x, p=points: x[..., p], 17,
            {"shape": [lengths], "resized_dims": np.uint32(1),
             "interpolation_mode": "NEAREST_NEIGHBOR", "sampling_mode": mode}, why=WHOLE,
        )
    for name, shape, to, dims, result in (
        ("of_rank_5", (1, 2, 1, 2, 3), [1, 1, 3, 2], 2, (3, 2)),
        ("of_one_axis", (1, 2, 3, 4), [9, 6], 1, (3, 6)),
        ("of_three_axes", (1, 2, 2, 3), [3, 4, 2], 3, (3, 4, 2)),
        ("that_keeps_an_axis", (1, 2, 3, 4), [1, 0, 7], 2, (3, 7)),
    ):
        for mode in ("LINEAR", "NEAREST_NEIGHBOR"):
            family.one(
                f"resize_{mode.lower()}_{name}", "resize", {"x": family.normal(*shape)},
                (lambda x, r=result: resized(x, r, "DEFAULT")) if mode == "LINEAR"
                else (lambda x, r=result: nearest(x, r)), 17,
                {"shape": to, "resized_dims": np.uint32(dims), "interpolation_mode": mode},
            )
    for dtype in (i32, np.int16, np.uint16):
        family.one(
            f"resize_to_a_shape_of_{words(dtype)}_that_is_an_input", "resize",
            {"x": family.normal(1, 2, 3), "shape": np.array([1, 4, 5], dtype)},
            lambda x, shape: resized(x, tuple(shape[-2:]), "DEFAULT"), 17,
            {"resized_dims": np.uint32(2)},
        )
    family.one("resize_nearest_of_int32", "resize", {"x": family.ints(-9, 9, 1, 2, 3)},
               lambda x: nearest(x, (4, 5)), 17,
               {"shape": [4, 5], "resized_dims": np.uint32(2),
                "interpolation_mode": "NEAREST_NEIGHBOR"})
    family.one("resize_in_fp16", "resize", {"x": family.normal(1, 2, 3, dtype=f16)},
               lambda x: resized(x, (3, 5), "DEFAULT"), 17,
               {"shape": [3, 5], "resized_dims": np.uint32(2)})


BOXES = np.array([[0.5, 0.25, 2.5, 3.0], [1, 0, 3, 2]], f32)
COORDINATES = ("CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST",
               "CENTER_SIZE_WIDTH_FIRST")


def written(boxes: np.ndarray, coordinates: str) -> np.ndarray:
    """Boxes of corners, height first, in another convention."""
    if coordinates.startswith("CENTER"):
        boxes = np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)
    return boxes[:, [1, 0, 3, 2]] if coordinates.endswith("WIDTH_FIRST") else boxes


def crops(family: Family) -> None:
    """`crop_resize` in the forms of iOS15, iOS16 and iOS17."""
    none = np.zeros(2, int)
    size = {"target_height": 2, "target_width": 3}
    why = f"{TESTED} the mode ALIGN_CORNERS; other modes are taken to sample [start, end] as " \
          "resize_bilinear samples [0, length - 1]"
    for mode in MODES:
        family.one(
            f"crop_resize_{mode.lower()}_of_ios15", "crop_resize",
            {"x": family.normal(1, 2, 4, 4), "roi": BOXES.reshape(2, 1, 4, 1, 1)},
            lambda x, roi, m=mode: cropped(x, roi.reshape(2, 4), none, 2, 3, mode=m)[:, None], 15,
            size | {"sampling_mode": mode}, why=why,
        )
        family.one(
            f"crop_resize_{mode.lower()}_of_ios17", "crop_resize",
            {"x": family.normal(2, 1, 4, 4), "boxes": BOXES, "box_indices": np.array([1, 0], i32)},
            lambda x, boxes, box_indices, m=mode: cropped(x, boxes, box_indices, 2, 3, mode=m), 17,
            size | {"sampling_mode": mode}, why=why,
        )
    for coordinates in COORDINATES:
        boxes = written(BOXES, coordinates)
        family.one(
            f"crop_resize_by_{coordinates.lower()}_of_ios15", "crop_resize",
            {"x": family.normal(1, 1, 4, 4), "roi": boxes.reshape(2, 1, 4, 1, 1)},
            lambda x, roi, c=coordinates:
                cropped(x, roi.reshape(2, 4), none, 2, 3, mode="ALIGN_CORNERS", coordinates=c)[:, None],
            15, size | {"box_coordinate_mode": coordinates, "sampling_mode": "ALIGN_CORNERS"},
        )
        family.one(
            f"crop_resize_by_{coordinates.lower()}_of_ios17", "crop_resize",
            {"x": family.normal(2, 1, 4, 4), "boxes": boxes},
            lambda x, boxes, c=coordinates:
                cropped(x, boxes, [0, 1], 2, 3, mode="ALIGN_CORNERS", coordinates=c), 17,
            size | {"box_coordinate_mode": coordinates, "sampling_mode": "ALIGN_CORNERS"},
        )


def more_crops(family: Family) -> None:
    """`crop_resize` of several images, beyond the image, and of other types."""
    none = np.zeros(2, int)
    aligned = {"target_height": 2, "target_width": 3, "sampling_mode": "ALIGN_CORNERS"}
    family.one(
        "crop_resize_of_every_image_by_every_box", "crop_resize",
        {"x": family.normal(2, 2, 4, 4), "roi": BOXES.reshape(2, 1, 4, 1, 1)},
        lambda x, roi: np.stack([
            cropped(x, roi.reshape(2, 4), np.full(2, image), 2, 3, mode="ALIGN_CORNERS")
            for image in (0, 1)], 1), 15, aligned,
    )
    indexed = np.concatenate([np.zeros((2, 1), f32), BOXES], 1)
    family.one(
        "crop_resize_by_boxes_with_an_image", "crop_resize",
        {"x": family.normal(1, 2, 4, 4), "roi": indexed.reshape(2, 1, 5, 1, 1)},
        lambda x, roi: cropped(x, roi.reshape(2, 5)[:, 1:], none, 2, 3, mode="ALIGN_CORNERS")[:, None],
        15, aligned,
    )
    family.one(
        "crop_resize_to_one_point", "crop_resize",
        {"x": family.normal(1, 2, 4, 4), "roi": BOXES.reshape(2, 1, 4, 1, 1)},
        lambda x, roi: cropped(x, roi.reshape(2, 4), none, 1, 1, mode="ALIGN_CORNERS")[:, None], 15,
        {"sampling_mode": "ALIGN_CORNERS"},
    )
    half = {"normalized_coordinates": True, "spatial_scale": f32(0.5)}
    for opset in (15, 16):
        family.one(
            f"crop_resize_by_scaled_shares_of_ios{opset}", "crop_resize",
            {"x": family.normal(1, 1, 5, 4),
             "roi": np.array([0.25, 0.5, 1.5, 1.75], f32).reshape(1, 1, 4, 1, 1)},
            lambda x, roi: cropped(x, roi.reshape(1, 4), [0], 2, 3, normalized=True, scale=0.5,
                                   mode="ALIGN_CORNERS")[:, None], opset, aligned | half,
        )
    beyond = np.array([[-0.5, 0.5, 2, 4], [1, -1, 4.5, 2.5]], f32)
    family.one(
        "crop_resize_beyond_the_image_of_ios16", "crop_resize",
        {"x": family.normal(1, 1, 4, 4), "roi": beyond.reshape(2, 1, 4, 1, 1)},
        lambda x, roi: cropped(x, roi.reshape(2, 4), none, 3, 3, mode="ALIGN_CORNERS", pad=7.5)[:, None],
        16, {"target_height": 3, "target_width": 3, "sampling_mode": "ALIGN_CORNERS",
             "pad_value": f32(7.5)},
    )
    for dtype, of, place in ((f32, f16, i32), (f16, f16, np.uint16), (f32, np.uint16, i32)):
        boxes = BOXES if of != np.uint16 else np.array([[0, 1, 3, 2], [1, 0, 3, 3]])
        pad = {"pad_value": dtype(-1)}
        family.one(
            f"crop_resize_of_{words(dtype)}_by_boxes_in_{words(of)}_of_images_in_{words(place)}",
            "crop_resize", {"x": family.normal(2, 1, 4, 4, dtype=dtype), "boxes": boxes.astype(of),
                            "box_indices": np.array([0, 1], place)},
            lambda x, boxes, box_indices: cropped(x, boxes, box_indices, 2, 3, mode="ALIGN_CORNERS"),
            17, aligned | pad,
        )
    family.one(
        "crop_resize_beyond_the_image_by_shares_of_ios17", "crop_resize",
        {"x": family.normal(1, 1, 4, 4), "boxes": np.array([[-0.25, 0.25, 0.75, 1.5]], f32)},
        lambda x, boxes: cropped(x, boxes, [0], 3, 3, normalized=True, mode="ALIGN_CORNERS", pad=2),
        17, {"target_height": 3, "target_width": 3, "sampling_mode": "ALIGN_CORNERS",
             "normalized_coordinates": True, "pad_value": f32(2)},
    )


def samples(family: Family) -> None:
    """`resample` in all modes."""
    ranges = {"unnormalized": (-1.8, 3.8), "normalized_minus_one_to_one": (-1.6, 1.6),
              "normalized_zero_to_one": (-0.4, 1.4)}
    for sampling in ("bilinear", "nearest"):
        for padding in ("constant", "border", "reflection", "symmetric"):
            for mode, (low, high) in ranges.items():
                for aligned in (True, False) if mode != "unnormalized" else (False,):
                    params = {"sampling_mode": sampling, "padding_mode": padding,
                              "padding_value": f32(1.5), "coordinates_mode": mode,
                              "align_corners": aligned}
                    points = (family.rng.uniform(low, high, (1, 2, 3, 2)) * 32).round() / 32 + 0.0041
                    family.one(
                        f"resample_{sampling}_{padding}_{mode}_corners_"
                        f"{'aligned' if aligned else 'apart'}", "resample",
                        {"x": family.normal(1, 1, 3, 4), "coordinates": points.astype(f32)},
                        lambda x, coordinates, p=params: sampled(x, coordinates, **p), 15, params,
                    )


def other_samples(family: Family) -> None:
    """`resample` at points of other types, and `affine`."""
    whole = {"sampling_mode": "nearest", "padding_mode": "border", "padding_value": f32(0),
             "coordinates_mode": "unnormalized", "align_corners": False}
    for dtype, opset in ((i32, 15), (i32, 16), (np.int8, 17), (np.uint8, 17), (np.int16, 17),
                         (np.uint16, 17), (f16, 16), (f16, 17), (f32, 17)):
        family.one(
            f"resample_at_points_in_{words(dtype)}_of_ios{opset}", "resample",
            {"x": family.normal(2, 2, 2, 3), "coordinates": family.ints(0, 4, 2, 2, 1, 2, dtype=dtype)},
            lambda x, coordinates: sampled(x, coordinates, **whole), opset, whole,
        )
    family.one(
        "resample_in_fp16", "resample",
        {"x": family.normal(1, 2, 3, 3, dtype=f16),
         "coordinates": family.uniform(-1, 1, 1, 2, 2, 2, dtype=f16)},
        lambda x, coordinates: sampled(x, coordinates, sampling_mode="bilinear",
                                       padding_mode="constant", padding_value=0.0,
                                       coordinates_mode="normalized_minus_one_to_one",
                                       align_corners=True), 16,
        {"sampling_mode": "bilinear", "padding_mode": "constant", "padding_value": f16(0),
         "coordinates_mode": "normalized_minus_one_to_one", "align_corners": True},
    )
    params = {"sampling_mode": "bilinear", "padding_mode": "constant",
              "coordinates_mode": "normalized_minus_one_to_one", "align_corners": True}
    for name, matrices, to, dtype, opset in (
        ("of_one_matrix", 1, (3, 4), f32, 15), ("of_a_matrix_for_each_image", 2, (2, 5), f32, 15),
        ("in_fp16", 1, (3, 3), f16, 16),
    ):
        matrix = family.uniform(-0.75, 0.75, matrices, 6, dtype=dtype)
        family.one(
            f"affine_{name}", "affine",
            {"x": family.normal(2, 2, 3, 4, dtype=dtype), "transform_matrix": matrix},
            lambda x, transform_matrix, to=to: transformed(x, transform_matrix, *to), opset,
            params | {"output_height": to[0], "output_width": to[1], "padding_value": dtype(0)},
        )


def image() -> Family:
    """Operators on images."""
    check_grids()
    check_crops()
    check_samples()
    family = Family("image")
    for part in (upsampled, sized, freely_sized, crops, more_crops, samples, other_samples):
        part(family)
    return family
