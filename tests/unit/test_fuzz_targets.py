"""Each target of `python -m fuzz` reads genuine documents, and neither dies nor lies on a few broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fuzz.__main__ import main
from fuzz.broken import Fault, fault_free
from fuzz.targets import TARGETS, Target

REFUSED_AS_THEY_ARE = {"policies", "ledger URL"}
"""Among whose genuine documents are some that are refused: an error answer, a password in a URL."""


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_genuine_documents_and_has_no_fault_in_a_few_broken_ones(name: str) -> None:
    target = TARGETS[name]
    assert target.seeds
    if name not in REFUSED_AS_THEY_ARE:
        for seed in target.seeds:
            target.decode(seed)
    settings(max_examples=5, suppress_health_check=list(HealthCheck))(fault_free(name))()


def test_a_decoder_that_dies_of_a_document_is_a_fault_whose_document_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TARGETS, "bad", Target((b"{}",), lambda body: 1 / 0))
    with pytest.raises(Fault):
        fault_free("bad")()
    assert main(["--seconds", "1", "--only", "bad"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert (tmp_path / "build" / "fuzz" / "bad").exists()


def test_a_run_without_faults_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "0.5", "--only", "bundle range"]) == 0
    assert "0 of 1 decoders failed" in capsys.readouterr().out
