"""The page over all clusters: the worst on top, every name escaped, nothing loaded from elsewhere."""

from typing import Any

from pulsar_advisor.reporting.fleet import FleetRow, render_fleet, worst_first
from unit.reporting.reading import read


def row(cluster: str, now: float | None = 0.5, **more: Any) -> FleetRow:
    fields: dict[str, Any] = {
        "days": 3,
        "imported": 0,
        "snapshots": 288,
        "fit": 288,
        "brokers": 3,
        "bundles": 64,
        "busiest": (0.25, None, now),
        "day": "2026-11-21",
        "excess": 0.125,
        "slope": "+0.10 points/day",
        "moves": "3: 3 by hand",
        "changed_settings": 1,
        "restarts": 2,
        "verdict": "Nothing to do.",
        "report": None,
    }
    return FleetRow(cluster=cluster, now=now, **(fields | more))


def test_unknown_clusters_come_first_then_those_with_the_busiest_broker() -> None:
    rows = [row("calm", 0.25), row("busy", 0.75), row("mute", None), row("even", 0.25)]
    assert [one.cluster for one in worst_first(rows)] == ["mute", "busy", "calm", "even"]


def test_what_others_wrote_is_text() -> None:
    page = render_fleet([row("prod", verdict="<script>alert(1)</script>", problem="<b>")], 28)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_day_without_a_fit_snapshot_leaves_a_gap() -> None:
    assert render_fleet([row("prod", busiest=(0.25, 0.5, None, 0.75))], 28).count("M") >= 2
    assert 'aria-label="from 25.0% to 75.0%"' in render_fleet([row("prod", busiest=(0.25, None, 0.75))], 28)


def test_on_a_telephone_which_has_no_heads_of_columns_every_cell_but_the_first_has_a_label() -> None:
    _, *cells = [attributes for tag, attributes in read(render_fleet([row("calm")], 28)).elements if tag == "td"]
    assert all(attributes.get("data-label") for attributes in cells)


def test_how_many_days_are_imported_is_said() -> None:
    assert "imported" not in render_fleet([row("prod")], 28)
    assert "; 2 of 3\N{NO-BREAK SPACE}days imported" in render_fleet([row("prod", imported=2)], 28)


def test_a_day_alone_is_a_dot() -> None:
    page = render_fleet([row("prod", busiest=(0.25,))], 28)
    assert 'd="M3.0 19.5h0"' in page
    assert 'aria-label="25.0%"' in page


def test_a_cluster_without_a_day_is_listed() -> None:
    page = render_fleet([row("new", None, days=0, busiest=(), excess=None)], 28)
    assert "no folded day" in page


def test_an_empty_root_says_what_to_do() -> None:
    assert "pulsar-advisor capture" in render_fleet([], 28)


def test_one_day_and_one_snapshot_are_singular() -> None:
    text = read(render_fleet([row("calm", snapshots=1, fit=1)], 1)).text.replace("\u00a0", " ")
    assert "1 Pulsar cluster, the last 1 folded day of each" in text
    assert "1 of 1 snapshot fit" in text


def test_a_figure_that_is_not_of_today_has_its_date() -> None:
    assert "50.0%2026-11-21" in read(render_fleet([row("calm")], 28)).text.replace(" ", "")
    assert "now" not in read(render_fleet([row("calm")], 28)).text.split("ranges")[1]
