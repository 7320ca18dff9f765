"""Metrics that a model makes itself, which stand on the server's page beside its own.

The numbers lie in the server, so that instances and models count together; what is here knows them by number.
"""

import enum
import os

import galatea_calls
from galatea_tensors import TritonModelException, as_text

_KINDS = ("counter", "gauge", "histogram")


class MetricKind(enum.IntEnum):
    """Kinds of families."""

    COUNTER, GAUGE, HISTOGRAM = range(3)


class _Held:
    """Something that the server holds for as long as there is an object for it here."""

    def _hold(self, number):
        self._process = os.getpid()
        self._number = number

    def __del__(self):
        # Nothing was made where the constructor raised; a fork has only a copy.
        try:
            if self._process == os.getpid():
                galatea_calls.calls().send_soon(galatea_calls.RELEASE, self._number)
        except Exception:
            pass


class Metric(_Held):
    """A metric, made by `MetricFamily.Metric`."""

    def __init__(self, *arguments, **named):
        raise TritonModelException("a Metric is made by the function Metric of a MetricFamily")

    def increment(self, value):
        """Adds to a counter or a gauge."""
        self._use("increment", value)

    def set(self, value):
        """Sets a gauge."""
        self._use("set", value)

    def observe(self, value):
        """Counts a value in a histogram."""
        self._use("observe", value)

    def value(self):
        """The number of a counter or a gauge."""
        return float(galatea_calls.call("metric_use", metric=self._number, how="value"))

    def _use(self, how, value):
        galatea_calls.call("metric_use", metric=self._number, how=how, value=_number(value))


class MetricFamily(_Held):
    """A family of metrics; the same one as all that were made with this name."""

    COUNTER, GAUGE, HISTOGRAM = MetricKind

    def __init__(self, name, description, kind):
        name, description = as_text(name), as_text(description)
        if name is None or description is None:
            raise TritonModelException("the name and the description of a MetricFamily are texts")
        if isinstance(kind, bool) or kind not in (0, 1, 2):
            raise TritonModelException(f"{kind!r} is no kind of a MetricFamily: COUNTER, GAUGE or HISTOGRAM")
        self._hold(galatea_calls.call("metric_family", name=name, description=description, kind=_KINDS[kind]))

    def Metric(self, labels=None, buckets=None):
        """The metric with these labels; `buckets` are the upper bounds of a histogram's."""
        labels = {} if labels is None else labels
        labels = {as_text(name): as_text(text) for name, text in labels.items()} if isinstance(labels, dict) else None
        if labels is None or None in labels or None in labels.values():
            raise TritonModelException("the labels of a Metric are a dict of str to str")
        fields = {"family": self._number, "labels": labels}
        if buckets is not None:
            if isinstance(buckets, (str, bytes)) or not hasattr(buckets, "__iter__"):
                raise TritonModelException("the buckets of a Metric are a list of numbers")
            fields["buckets"] = [_number(bound) for bound in buckets]
        metric = object.__new__(Metric)
        metric._hold(galatea_calls.call("metric", **fields))
        return metric


def _number(value):
    try:
        return repr(float(value))
    except (TypeError, ValueError, OverflowError):
        raise TritonModelException(f"{value!r} found, a number expected") from None
