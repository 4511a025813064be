"""Great Expectations as `gx`, without modules that only unused expectations need: they take a third of its import."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

_POSTPONED: Final = ("altair", "scipy.stats")
_LEFT_OUT: Final = "pyspark.ml.feature"
"""Spark's machine learning, for histograms; Great Expectations works without it."""


class PostponedModule(ModuleType):
    """A placeholder for a module until something uses it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


for _name in _POSTPONED:
    sys.modules.setdefault(_name, PostponedModule(_name))

_is_hidden = sys.modules.setdefault(_LEFT_OUT, None) is None  # type: ignore[arg-type]  # an import of it fails

import great_expectations as gx  # noqa: E402, TID253

if _is_hidden:
    del sys.modules[_LEFT_OUT]

__all__ = ["gx"]
