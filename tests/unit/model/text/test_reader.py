"""A message names the next step in its reader's own words."""

from __future__ import annotations

import re
from dataclasses import asdict

from pulsar_advisor.model.text.reader import IN_A_SHELL, read_by, reader
from pulsar_advisor_airflow.reader import IN_AIRFLOW


def test_somebody_in_a_shell_reads_unless_it_is_said_otherwise() -> None:
    assert reader() is IN_A_SHELL
    with read_by(IN_AIRFLOW):
        assert reader() is IN_AIRFLOW
    assert reader() is IN_A_SHELL


def test_airflow_asks_for_commands_only_where_it_has_nothing_to_press() -> None:
    asked = asdict(IN_AIRFLOW)
    assert "in a shell" in asked.pop("decide_about_balancer")
    assert [words for words in asked.values() if re.search(r"`|--|pulsar-advisor", words)] == []
