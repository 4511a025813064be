from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import SETTING_KEYS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.splitting.registry import (
    SPLIT_ALGORITHMS,
    SPLIT_DECIDERS,
    algorithm_in_force,
    split_algorithm,
    split_decider,
)


def settings(release: str = "4.0.8", default: str = "topic_count_equally_divide"):
    return resolve_settings(release, runtime={"defaultNamespaceBundleSplitAlgorithm": default}).values


@pytest.mark.parametrize("strategy", [*SPLIT_ALGORITHMS, *SPLIT_DECIDERS], ids=lambda strategy: strategy.name)
def test_every_entry_loads_and_reads_settings_that_exist(strategy):
    assert set(strategy.setting_keys) <= SETTING_KEYS


def test_an_unknown_algorithm_is_answered_with_the_nearest_one():
    with pytest.raises(UsageError, match="nearest is 'range_equally_divide'"):
        split_algorithm("range_equaly")


@pytest.mark.parametrize("load_manager", ["modular", "simple", "extensible"])
def test_every_load_manager_has_a_decider(load_manager):
    assert callable(split_decider(load_manager).decide)


def test_an_automatic_split_gets_the_default():
    assert algorithm_in_force(settings()).name == "topic_count_equally_divide"


def test_an_unknown_default_falls_back_to_halving_the_range():
    assert algorithm_in_force(settings(default="nonsense")).name == "range_equally_divide"


def test_an_algorithm_that_the_release_does_not_have_is_unknown_to_it():
    assert algorithm_in_force(settings("2.11.0", "flow_or_qps_equally_divide")).name == "range_equally_divide"
