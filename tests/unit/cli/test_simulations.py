"""How `simulate` ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pulsar_advisor.cli import exit_code, simulations
from pulsar_advisor.documents.simulation import NotSimulated, SimulatedScore
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, Root

SNAPSHOT = "20261121T083000Z"
REFUSED = NotSimulated(shedder="A", placement="B", what_if="", seed=0, error="an input is missing")


@pytest.mark.parametrize(
    ("scores", "code"), [([REFUSED], 3), ([REFUSED, SimulatedScore.__new__(SimulatedScore)], 0)], ids=["none", "some"]
)
def test_where_nothing_could_be_simulated_the_code_is_that_of_unfit_data(
    scores: list[NotSimulated | SimulatedScore], code: int, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    monkeypatch.setattr("pulsar_advisor.stages.simulate.check", lambda *_: None)
    monkeypatch.setattr("pulsar_advisor.stages.simulate.run", lambda *_: SimpleNamespace(scores=scores))
    monkeypatch.setattr(simulations, "spark_soon", lambda *_: None)
    monkeypatch.setattr(simulations, "_show", lambda _: None)
    assert exit_code(["simulate", "--root", root.url, "--cluster", root.cluster]) == code
