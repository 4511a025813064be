"""What came of a plan on live brokers with unequal machines lies in the range that is predicted for it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from decisions.recording import read_recording
from decisions.usage import HEAD, inside_ratio, replayed_usage

RECORDED = Path(__file__).parents[1] / "data" / "usage"
"""One bundle moved from 4 cores to 8, and five from slower ones, beside a machine whose CPU hardly follows messages."""

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["unequal-machines-4.0.8-modular", pytest.param("unequal-machines-drain-4.0.8-modular", marks=pytest.mark.full)],
)
def test_the_usage_after_a_plan_is_in_the_range_that_is_predicted(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    (figures,) = replayed_usage(read_recording(RECORDED / f"{name}.json.zst"), spark, tmp_path)
    print("\n".join(("", HEAD, *(figure.row() for figure in figures))))
    assert len(figures) == 4
    assert inside_ratio(figures) == 1
