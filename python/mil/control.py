"""Cases of control flow, lists, classifiers and states."""

from __future__ import annotations

import numpy as np
from coremltools.converters.mil import Builder as mb

from .case import Family, f16, f32, i32, words
from .shape import values

KEYS = "the dictionary's values, in the order of the classes"


def branches(family: Family) -> None:
    """`cond`."""

    def scalar(pred):
        return mb.squeeze(x=pred)

    for truth in (True, False):
        name = str(truth).lower()
        given = {"x": family.normal(2, 3), "pred": np.array([truth])}
        family.add(
            f"cond_whose_predicate_is_{name}", ["cond"], given,
            lambda x, pred: mb.cond(
                pred=scalar(pred), _true_fn=lambda: mb.mul(x=x, y=f32(2)),
                _false_fn=lambda: mb.sub(x=x, y=f32(1)),
            ),
            lambda x, pred: x * 2 if pred[0] else x - 1, fold=False,
        )
        family.add(
            f"cond_with_two_results_whose_predicate_is_{name}", ["cond"], given,
            lambda x, pred: mb.cond(
                pred=scalar(pred), _true_fn=lambda: (mb.relu(x=x), mb.reduce_sum(x=x, axes=[1])),
                _false_fn=lambda: (mb.identity(x=x), mb.reduce_max(x=x, axes=[1])),
            ),
            lambda x, pred: (np.maximum(x, 0), x.sum(1)) if pred[0] else (x, x.max(1)), fold=False,
        )
        family.add(
            f"cond_inside_of_cond_whose_predicate_is_{name}", ["cond", "greater"], given,
            lambda x, pred: mb.cond(
                pred=scalar(pred),
                _true_fn=lambda: mb.cond(
                    pred=mb.greater(x=mb.reduce_sum(x=x, axes=[0, 1]), y=f32(0)),
                    _true_fn=lambda: mb.add(x=x, y=f32(1)), _false_fn=lambda: mb.abs(x=x),
                ),
                _false_fn=lambda: mb.square(x=x),
            ),
            lambda x, pred: (x + 1 if x.sum() > 0 else np.abs(x)) if pred[0] else x * x,
            opset=17, fold=False,
        )


def loops(family: Family) -> None:
    """`while_loop`."""
    for count in (0, 1, 5):
        family.add(
            f"while_loop_of_{count}_rounds", ["while_loop"],
            {"x": family.normal(2, 2), "count": np.array([count], i32)},
            lambda x, count: mb.while_loop(
                _cond=lambda i, v: mb.less(x=i, y=mb.squeeze(x=count)),
                _body=lambda i, v: (mb.add(x=i, y=1), mb.add(x=mb.mul(x=v, y=f32(0.5)), y=x)),
                loop_vars=(mb.identity(x=i32(0)), x),
            ),
            lambda x, count: looped(x, int(count[0])), fold=False,
        )
    family.add(
        "while_loop_until_a_value_is_large", ["while_loop"], {"x": np.array([1.5], f32)},
        lambda x: mb.while_loop(
            _cond=lambda v: mb.squeeze(x=mb.less(x=v, y=f32(100))),
            _body=lambda v: mb.mul(x=v, y=f32(3)), loop_vars=(x,),
        ),
        lambda x: np.array([1.5 * 3**4]), fold=False,
    )
    family.add(
        "while_loop_that_swaps_two_values", ["while_loop"],
        {"x": family.normal(2), "y": family.normal(2), "count": np.array([3], i32)},
        lambda x, y, count: mb.while_loop(
            _cond=lambda i, a, b: mb.greater(x=i, y=0),
            _body=lambda i, a, b: (mb.sub(x=i, y=1), mb.identity(x=b), mb.identity(x=a)),
            loop_vars=(mb.squeeze(x=count), x, y),
        ),
        lambda x, y, count: (np.array(0), y, x), opset=17, fold=False,
    )
    family.add(
        "while_loop_inside_of_while_loop", ["while_loop"], {"x": family.normal(3)},
        lambda x: mb.while_loop(
            _cond=lambda i, v: mb.less(x=i, y=2),
            _body=lambda i, v: (mb.add(x=i, y=1), mb.while_loop(
                _cond=lambda j, w: mb.less(x=j, y=3),
                _body=lambda j, w: (mb.add(x=j, y=1), mb.add(x=w, y=x)),
                loop_vars=(mb.identity(x=i32(0)), v),
            )[1]),
            loop_vars=(mb.identity(x=i32(0)), x),
        )[1],
        lambda x: x * 7, opset=17, fold=False,
    )
    family.add(
        "while_loop_that_reads_a_row_each_round", ["while_loop", "gather"],
        {"x": family.normal(4, 3)},
        lambda x: mb.while_loop(
            _cond=lambda i, v: mb.less(x=i, y=4),
            _body=lambda i, v: (mb.add(x=i, y=1), mb.add(x=v, y=mb.gather(x=x, indices=i, axis=0))),
            loop_vars=(mb.identity(x=i32(0)), mb.fill(shape=[3], value=f32(0))),
        )[1],
        lambda x: x.sum(0), opset=17, fold=False,
    )


def looped(x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first loop."""
    value = x
    for _ in range(count):
        value = value * 0.5 + x
    return np.array(count), value


def written(values, dynamic, dtype, length=None):
    """A list to which values are written in order."""
    made = mb.make_list(init_length=len(values) if length is None else length,
                        dynamic_length=dynamic, elem_shape=values[0].shape, dtype=dtype)
    for at, value in enumerate(values):
        made = mb.list_write(ls=made, index=at, value=value)
    return made


def lists(family: Family) -> None:
    """Lists that are written, read, gathered and scattered."""

    for dtype, name in ((f32, "fp32"), (f16, "fp16"), (i32, "int32"), (np.bool_, "bool")):
        for dynamic in (False, True):
            a, b = values(family, dtype, 2, 2), values(family, dtype, 2, 2)
            grows = "that_grows" if dynamic else "of_fixed_length"
            family.add(
                f"list_of_{words(dtype)}_{grows}_written_and_read",
                ["make_list", "list_write", "list_read"], {"a": a, "b": b},
                lambda a, b, d=dynamic, n=name: tuple(
                    mb.list_read(ls=written([a, b], d, n), index=at) for at in (1, 0)
                ),
                lambda a, b: (b, a), opset=16, fold=False,
            )
    family.add(
        "list_gathered", ["make_list", "list_write", "list_gather"],
        {"a": family.normal(3), "b": family.normal(3), "indices": np.array([1, 0, 1], i32)},
        lambda a, b, indices: mb.list_gather(ls=written([a, b], False, "fp32"), indices=indices),
        lambda a, b, indices: np.stack([a, b])[indices], fold=False,
    )
    family.add(
        "list_scattered_and_gathered", ["make_list", "list_scatter", "list_gather"],
        {"x": family.normal(3, 2), "indices": np.array([2, 0, 1], i32)},
        lambda x, indices: mb.list_gather(
            ls=mb.list_scatter(
                ls=mb.make_list(init_length=3, dynamic_length=False, elem_shape=(2,), dtype="fp32"),
                indices=indices, value=x,
            ),
            indices=[0, 1, 2],
        ),
        lambda x, indices: x[np.argsort(indices)], fold=False,
    )


def longer_lists(family: Family) -> None:
    """Lists that grow, their lengths, and lists in loops."""
    family.add(
        "list_that_is_longer_after_writing", ["make_list", "list_write", "list_length"],
        {"a": family.normal(2), "b": family.normal(2)},
        lambda a, b: mb.list_length(ls=written([a, b, a], True, "fp32", 1)),
        lambda a, b: np.array(3), fold=False,
    )
    family.add(
        "list_scattered_beyond_its_length", ["make_list", "list_scatter", "list_length", "list_read"],
        {"x": family.normal(2, 2)},
        lambda x: beyond(mb.make_list(init_length=1, dynamic_length=True, elem_shape=(2,)), x),
        lambda x: (np.array(4), x[1]), fold=False,
    )
    family.add(
        "list_of_fixed_length_knows_its_length", ["make_list", "list_write", "list_length"],
        {"a": family.normal(2)},
        lambda a: mb.list_length(ls=written([a], False, "fp32", 4)), lambda a: np.array(4), fold=False,
    )
    family.add(
        "list_written_in_a_loop", ["make_list", "list_write", "list_gather", "while_loop"],
        {"x": family.normal(4, 2)},
        lambda x: mb.list_gather(
            ls=mb.while_loop(
                _cond=lambda i, ls: mb.less(x=i, y=4),
                _body=lambda i, ls: (
                    mb.add(x=i, y=1),
                    mb.list_write(ls=ls, index=i, value=mb.gather(x=x, indices=i, axis=0)),
                ),
                loop_vars=(mb.identity(x=i32(0)),
                           mb.make_list(init_length=4, dynamic_length=False, elem_shape=(2,))),
            )[1],
            indices=[3, 2, 1, 0],
        ),
        lambda x: x[::-1], fold=False,
    )
    family.add(
        "list_whose_length_is_an_input", ["make_list", "list_write", "list_length"],
        {"a": family.normal(2), "length": np.array([3], i32)},
        lambda a, length: mb.list_length(ls=mb.list_write(
            ls=mb.make_list(init_length=mb.squeeze(x=length), dynamic_length=True, elem_shape=(2,)),
            index=0, value=a,
        )),
        lambda a, length: np.array(3), fold=False,
    )


def beyond(made, x):
    """A list after a scatter to places that it has not got yet."""
    longer = mb.list_scatter(ls=made, indices=[1, 3], value=x)
    return mb.list_length(ls=longer), mb.list_read(ls=longer, index=3)


def states(family: Family) -> None:
    """`read_state` and `coreml_update_state`, which is written as `write_state` and `read_state`."""
    family.add(
        "state_that_sums_what_it_is_given", ["read_state", "write_state"],
        [{"x": family.normal(2, 3, dtype=f16)} for _ in range(3)],
        lambda x, total: mb.coreml_update_state(
            state=total, value=mb.add(x=mb.read_state(input=total), y=x)
        ),
        lambda x, states: summed(states, "total", x), opset=18,
        states={"total": np.zeros((2, 3), f16)},
    )
    family.add(
        "state_that_is_read_before_it_is_written", ["read_state", "write_state"],
        [{"x": family.normal(4, dtype=f16)} for _ in range(3)],
        lambda x, last: delayed(x, last), lambda x, states: swapped(states, "last", x), opset=18,
        states={"last": np.zeros(4, f16)},
    )
    family.add(
        "state_of_which_a_part_is_written", ["read_state", "write_state", "slice_update"],
        [{"x": family.normal(1, 2, dtype=f16), "at": np.array([at], i32)} for at in (0, 2, 1, 0)],
        lambda x, at, cache: row_written(x, at, cache),
        lambda x, at, states: row_kept(states, x, int(at[0])), opset=18,
        states={"cache": np.zeros((3, 2), f16)},
    )
    family.add(
        "two_states_that_do_not_meet", ["read_state", "write_state"],
        [{"x": family.normal(2, dtype=f16)} for _ in range(2)],
        lambda x, a, b: (
            mb.coreml_update_state(state=a, value=mb.sub(x=mb.read_state(input=a), y=x)),
            mb.coreml_update_state(state=b, value=mb.maximum(x=mb.read_state(input=b), y=x)),
        ),
        lambda x, states: two(states, x), opset=18,
        states={"a": np.zeros(2, f16), "b": np.zeros(2, f16)},
    )


def summed(states, name, x):
    """Adds to a state, rounded as the state is."""
    states[name] = (states[name] + x).astype(f16).astype(float)
    return states[name]


def delayed(x, last):
    """What the state held before, while it takes `x`."""
    before = mb.identity(x=mb.read_state(input=last))
    mb.coreml_update_state(state=last, value=x)
    return before


def swapped(states, name, x):
    """The state before, and `x` as the state after."""
    before, states[name] = states[name], x
    return before


def row_written(x, at, cache):
    """Writes one row of a state."""
    begin = mb.concat(values=[at, np.array([0], i32)], axis=0)
    end = mb.concat(values=[mb.add(x=at, y=np.array([1], i32)), np.array([2], i32)], axis=0)
    new = mb.slice_update(x=mb.read_state(input=cache), update=x, begin=begin, end=end)
    return mb.coreml_update_state(state=cache, value=new)


def row_kept(states, x, at):
    """The rows after one was written."""
    states["cache"] = states["cache"].copy()
    states["cache"][at] = x[0]
    return states["cache"]


def two(states, x):
    """A difference and a maximum."""
    states["a"] = (states["a"] - x).astype(f16).astype(float)
    states["b"] = np.maximum(states["b"], x)
    return states["a"], states["b"]


def classifiers(family: Family) -> None:
    """`classify`: the class of the largest probability, and all probabilities."""
    names = ["cat", "dog", "a long name, with ünïcode"]
    for name, classes, shape, opset in (
        ("strings", names, (3,), 15), ("numbers", [7, -1, 40, 3], (1, 4), 16),
        ("strings_of_rank_4", names, (1, 3, 1, 1), 18),
    ):
        family.add(
            f"classify_among_{name}", ["classify", "softmax"], {"x": family.distinct(*shape)},
            lambda x, r=len(shape): mb.softmax(x=x, axis=1 if r > 1 else 0),
            lambda x, c=classes: (c[int(x.argmax())], (np.exp(x) / np.exp(x).sum()).ravel()),
            opset=opset, classes=classes, fold=False, why=KEYS,
        )


def control() -> Family:
    """Control flow, lists, classifiers and states."""
    family = Family("control")
    for part in (branches, loops, lists, longer_lists, classifiers, states):
        part(family)
    return family
