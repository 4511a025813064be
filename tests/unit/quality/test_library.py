import sys
from importlib import import_module

import pytest

from pulsar_advisor.quality.library import PostponedModule


def test_a_postponed_module_is_imported_when_something_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    postponed = PostponedModule("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", postponed)

    assert import_module("colorsys") is postponed
    assert postponed.rgb_to_hls(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert import_module("colorsys") is not postponed


def test_great_expectations_comes_without_sparks_machine_learning_which_others_can_import() -> None:
    spark = import_module("great_expectations.compatibility.pyspark")
    assert type(spark.Bucketizer).__name__ == "NotImported"
    assert import_module("pyspark.ml.feature").Bucketizer


def test_a_postponed_module_lacks_what_the_module_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    postponed = PostponedModule("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", postponed)

    with pytest.raises(AttributeError, match="no_such_function"):
        _ = postponed.no_such_function
