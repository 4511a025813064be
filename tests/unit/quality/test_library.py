import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest


@pytest.fixture
def library() -> ModuleType:
    """Imported only here: Great Expectations comes with it, for seconds, also in processes that run other tests."""
    return import_module("pulsar_advisor.quality.library")


def test_a_postponed_module_is_imported_when_something_uses_it(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    postponed = library.PostponedModule("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", postponed)

    assert import_module("colorsys") is postponed
    assert postponed.rgb_to_hls(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert import_module("colorsys") is not postponed


@pytest.mark.slow
def test_great_expectations_comes_without_sparks_machine_learning_which_others_can_import() -> None:
    program = (
        "import pulsar_advisor.quality.library\n"
        "from great_expectations.compatibility.pyspark import Bucketizer\n"
        "from pyspark.ml.feature import Bucketizer as OfSpark\n"
        "print(type(Bucketizer).__name__, OfSpark.__name__)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["NotImported", "Bucketizer"]


def test_a_postponed_module_lacks_what_the_module_lacks(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    postponed = library.PostponedModule("colorsys")
    monkeypatch.setitem(sys.modules, "colorsys", postponed)

    with pytest.raises(AttributeError, match="no_such_function"):
        _ = postponed.no_such_function
