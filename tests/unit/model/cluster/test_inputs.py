"""The inputs that strategies name are columns that exist."""

import pytest

from pulsar_advisor.model.cluster.inputs import INPUTS, Input
from pulsar_advisor.tables.schemas import TABLES


@pytest.mark.parametrize("name", INPUTS)
def test_every_column_of_an_input_is_in_the_tables(name: Input) -> None:
    known = {f"{table.name}.{column.name}" for table in TABLES for column in table.columns}
    assert set(INPUTS[name].columns) <= known
