"""What brokers exported of topics becomes the load of bundles: one owner at a time, and its figures only."""

import numpy as np
import pytest

from pulsar_advisor.history.columns import MOVED
from pulsar_advisor.history.scraped import FIGURES, Exporter, Places, Scraped

NONE = float("nan")


def scraped(*series: tuple[Exporter, list[float]], figure: str = "msg_in") -> Scraped:
    one = Scraped(3)
    one.add(
        FIGURES.index(figure), 0, places(*(exporter for exporter, _ in series)), np.array([row for _, row in series])
    )
    return one


def places(*exporters: Exporter) -> Places:
    return Places(exporters, range(len(exporters)), [1] * len(exporters))


def column(one: Scraped, name: str, bundle: int = 0) -> list[float | None]:
    values = one.load([bundle])[name].to_pylist()
    return [None if value is None or np.isnan(value) else value for value in values]


def owners(one: Scraped, bundle: int = 0) -> list[str | None]:
    return list(one.load([bundle])["owner"].to_pylist())


def test_topics_of_a_bundle_are_added_up() -> None:
    one = scraped((Exporter(0, "1", "b"), [1, 2, NONE]), (Exporter(0, "1", "a"), [10, NONE, NONE]))
    assert column(one, "msg_in") == [11, 2, None]
    assert owners(one) == ["1", "1", None]


def test_a_topic_scraped_twice_counts_once() -> None:
    one = scraped((Exporter(0, "1", "a"), [5, 5, NONE]), (Exporter(0, "1", "a"), [NONE, 6, 7]))
    assert column(one, "msg_in") == [5, 6, 7]


def test_the_owner_is_who_exports_most_topics_and_only_its_figures_count() -> None:
    one = scraped(
        (Exporter(0, "1", "a"), [1, 1, NONE]),
        (Exporter(0, "1", "b"), [1, NONE, NONE]),
        (Exporter(0, "2", "b"), [NONE, 7, 7]),
        (Exporter(0, "2", "a"), [NONE, 8, 8]),
    )
    assert owners(one) == ["1", "2", "2"]
    assert column(one, "msg_in") == [2, 15, 15]
    assert column(one, "flags") == [0, MOVED, 0]


def test_of_two_with_as_many_the_owner_is_who_still_has_them_next() -> None:
    one = scraped((Exporter(0, "1", "a"), [1, 1, NONE]), (Exporter(0, "2", "a"), [NONE, 9, 9]))
    assert owners(one) == ["1", "2", "2"]


def test_figures_of_an_unknown_broker_are_the_bundles_all_the_same() -> None:
    one = scraped((Exporter(0, "", "a"), [1, 1, 1]), (Exporter(0, "", "b"), [2, 2, 2]))
    assert (owners(one), column(one, "msg_in")) == ([None] * 3, [3, 3, 3])


def test_a_bundle_without_series_has_no_owner_and_no_figures() -> None:
    assert owners(scraped(), 4) == [None] * 3
    assert column(scraped(), "msg_in", 4) == [None] * 3


def test_moments_that_are_asked_for_apart_come_together() -> None:
    one = Scraped(3)
    for first, rates in ((0, [1.0, 2.0]), (2, [3.0])):
        one.add(0, first, places(Exporter(0, "1", "a")), np.array([rates]))
    assert column(one, "msg_in") == [1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_series_changes_no_byte(seed: int) -> None:
    random = np.random.default_rng(seed)
    series = [
        (Exporter(number % 3, str(number % 2), f"topic-{number}"), list(random.lognormal(3, 1, 3)))
        for number in range(40)
    ]
    shuffled = [series[place] for place in random.permutation(len(series))]
    tables = [scraped(*rows).load(range(3)) for rows in (series, shuffled)]
    assert str(tables[0].to_pylist()) == str(tables[1].to_pylist())
