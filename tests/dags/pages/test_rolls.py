"""The page of a roll, and the orders of whoever restarts its brokers or steers it."""

from __future__ import annotations

import re

import pytest

from dags.pages.conftest import LogIn, page_of_roll, token_in
from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import plan_pause_requested
from pulsar_advisor.execution.ledger.rolls import give_up, runs_of_roll
from pulsar_advisor.execution.roll.conduct import Roll
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.pages.access import _signer
from unit.execution.actors import ALICE
from unit.execution.doubles import B1, B2, make_plan, unload_step
from unit.execution.roll.doubles import RestartedCluster, drained, go_on_after

pytestmark = pytest.mark.airflow


@pytest.fixture
def roll(root: Root, ledger: Ledger) -> Roll:
    return drained(ledger, "prod-eu")


def test_the_page_says_where_a_roll_is_and_what_is_left(server: LogIn, roll: Roll) -> None:
    answer = server("vic").get(page_of_roll(roll))
    assert "Rolling restart: 0 of 3 brokers restarted" in answer.text
    assert f"<code>{B1}</code> is drained: clients use nothing on it" in answer.text
    assert "edit the DAG <code>pulsar_rolling_restart__prod-eu</code> confirms here" in answer.text
    assert "then press" not in answer.text
    assert re.search(
        "2\u00a0moves so far; 4\u00a0moves .about 4 s at the approved pace. and 3\u00a0restarts left", answer.text
    )
    assert "<button" not in answer.text
    assert answer.headers["refresh"] == "10"
    of_plan = server("vic").get(page_of_roll(roll).replace("/rolls/", "/plans/")).text
    assert "it is a rolling restart: trigger pulsar_rolling_restart__prod-eu with its digest" in of_plan
    of_cluster = server("vic").get("/pulsar-advisor/clusters/prod-eu").text
    assert page_of_roll(roll) in of_cluster


def test_whoever_restarted_the_broker_says_so_with_a_button(server: LogIn, roll: Roll) -> None:
    client = server("olive")
    page = client.get(page_of_roll(roll)).text
    assert "Restart it, then press <i>Confirm restart</i>" in page
    sent = client.post(f"{page_of_roll(roll)}/restarted", data={"token": token_in(page), "broker": B1, "as": "alice"})
    assert (sent.status_code, sent.headers["location"]) == (303, page_of_roll(roll))
    announced = roll.look().recorded.announced
    assert announced is not None
    assert (announced.name, announced.source) == ("olive", "airflow")
    assert "olive confirmed the restart" in client.get(page_of_roll(roll)).text


def test_a_program_says_so_with_its_login_and_no_form(server: LogIn, roll: Roll) -> None:
    assert server("olive").post(f"{page_of_roll(roll)}/restarted", data={"broker": B1}).status_code == 303
    assert roll.look().recorded.announced is not None


def test_a_header_without_a_login_is_no_programs(server: LogIn, roll: Roll) -> None:
    browser = server("")
    browser.cookies.set("_token", server("olive").headers["Authorization"].removeprefix("Bearer "))
    sent = browser.post(f"{page_of_roll(roll)}/restarted", data={"broker": B1}, headers={"Authorization": "Bearer "})
    assert (sent.status_code, roll.look().recorded.announced) == (403, None)


def test_a_program_that_names_no_broker_is_answered_what_is_missing(server: LogIn, roll: Roll) -> None:
    answer = server("olive").post(f"{page_of_roll(roll)}/restarted", data={"brokr": B1})
    assert "missing or can&#39;t be used: broker." in answer.text


@pytest.mark.parametrize("order", ["restarted", "pause", "go-on", "end"])
def test_another_sites_form_with_a_browsers_session_steers_nothing(server: LogIn, roll: Roll, order: str) -> None:
    client = server("olive")
    client.cookies.set("_token", client.headers.pop("Authorization").removeprefix("Bearer "))
    assert client.get(page_of_roll(roll)).status_code == 200
    assert client.post(f"{page_of_roll(roll)}/{order}", data={"broker": B1}).status_code == 403
    seen = roll.look().recorded
    assert (seen.announced, seen.pause, seen.ended) == (None, None, None)


@pytest.mark.parametrize("order", ["pause", "go-on", "end"])
def test_a_program_without_the_form_reports_restarts_and_steers_nothing(server: LogIn, roll: Roll, order: str) -> None:
    assert server("olive").post(f"{page_of_roll(roll)}/{order}").status_code == 403
    assert (roll.look().recorded.pause, roll.look().recorded.ended) == (None, None)


@pytest.mark.parametrize(("broker", "status"), [(B2, 409), ("broker-9", 404), ("", 422)])
def test_a_broker_whose_turn_it_is_not_was_not_restarted_for_the_roll(
    server: LogIn, roll: Roll, broker: str, status: int
) -> None:
    assert server("olive").post(f"{page_of_roll(roll)}/restarted", data={"broker": broker}).status_code == status
    assert roll.look().recorded.announced is None


def test_a_paused_roll_goes_on_and_one_that_was_ended_is_over(server: LogIn, roll: Roll) -> None:
    client = server("olive")

    def press(order: str) -> int:
        token = token_in(client.get(page_of_roll(roll)).text)
        return client.post(f"{page_of_roll(roll)}/{order}", data={"token": token}).status_code

    assert press("pause") == 303
    assert roll.look().recorded.pause == "paused by olive (airflow)"
    assert "It is paused by olive (airflow), until somebody presses <i>Go on</i>" in client.get(page_of_roll(roll)).text
    assert press("go-on") == 303
    assert roll.look().recorded.pause is None
    assert press("end") == 303
    page = client.get(page_of_roll(roll)).text
    assert "It is over: ended by olive (airflow)." in page
    assert "<button" not in page
    of_plan = client.get(page_of_roll(roll).replace("/rolls/", "/plans/")).text
    assert "It can't be proposed again: it is a roll that is over, ended by olive (airflow)" in of_plan


def test_the_end_of_a_roll_is_asked_about_once_more(server: LogIn, roll: Roll) -> None:
    client, asking = server("olive"), f"{page_of_roll(roll)}/end"
    assert re.search(rf"<form[^>]*{asking}", client.get(page_of_roll(roll)).text) is None
    asked = client.get(asking)
    assert "refresh" not in asked.headers
    assert roll.look().recorded.ended is None
    assert client.post(asking, data={"token": token_in(asked.text)}).headers["location"] == page_of_roll(roll)
    assert roll.look().recorded.ended == "ended by olive (airflow)"


def test_a_turn_that_stopped_is_named_with_what_to_do(server: LogIn, roll: Roll) -> None:
    assert isinstance(roll.cluster, RestartedCluster)
    roll.cluster.restart(B1)
    roll.cluster.replies, roll.cluster.fails = [Reply(500, "no")] * 3, True
    go_on_after(roll, B1)
    page = server("vic").get(page_of_roll(roll)).text
    assert (
        f"<code>{B2}</code> is drained in part. The log of the task roll says why; clear the task to continue" in page
    )
    turn = roll.look().turn
    assert turn is not None
    of_turn = server("olive").get(f"/pulsar-advisor/clusters/prod-eu/plans/{turn.plan}").text
    assert f"be proposed again: it is a turn of the roll {roll.digest}" in of_turn


def test_a_roll_that_was_given_up_asks_nobody_for_a_restart(server: LogIn, ledger: Ledger, roll: Roll) -> None:
    give_up(ledger, roll.digest)
    page = server("olive").get(page_of_roll(roll)).text
    assert "Its task has ended: clear the task <code>roll</code> to continue" in page
    assert "Confirm restart" not in page


def test_a_turn_is_steered_on_the_rolls_page_alone(server: LogIn, ledger: Ledger, roll: Roll) -> None:
    [run] = runs_of_roll(ledger, roll.digest)
    client, path = server("olive"), f"/pulsar-advisor/clusters/prod-eu/runs/{run.id}"
    user, _ = _signer().loads(token_in(client.get(page_of_roll(roll)).text))
    assert 'method="post"' not in client.get(path).text
    for order in ("pause", "go-on", "stop"):
        refused = client.post(f"{path}/{order}", data={"token": _signer().dumps([user, path])})
        assert refused.status_code == 409
        assert f"is a turn of the roll {roll.digest}" in refused.text


def test_whoever_names_a_turn_or_another_plan_in_place_of_its_roll_is_not_taken_at_their_word(
    server: LogIn, ledger: Ledger, roll: Roll
) -> None:
    assert isinstance(roll.cluster, RestartedCluster)
    roll.cluster.restart(B1)
    go_on_after(roll, B1)
    turn = roll.look().turn
    assert turn is not None
    drain = make_plan([unload_step()], cluster="prod-eu")
    propose(ledger, drain, ALICE)
    client, of_cluster = server("olive"), page_of_roll(roll).rpartition("/")[0]
    user, _ = _signer().loads(token_in(client.get(page_of_roll(roll)).text))
    for digest, said in (
        (turn.plan, f"{turn.plan} is a turn of the roll {roll.digest}: name the roll"),
        (
            digest_of(drain),
            f"{digest_of(drain)} is not a roll ({drain.title}): pulsar_rebalance, triggered with its digest",
        ),
    ):
        form = {"token": _signer().dumps([user, f"{of_cluster}/{digest}"])}
        for answer in (client.get(f"{of_cluster}/{digest}"), client.post(f"{of_cluster}/{digest}/pause", data=form)):
            assert (answer.status_code, said in answer.text) == (409, True)
    assert plan_pause_requested(ledger, str(turn.plan)) is None


@pytest.mark.parametrize("path", ["clusters/prod-us/rolls/{}", "clusters/prod-eu/rolls/sha256:0"])
def test_a_roll_of_another_cluster_is_not_found(server: LogIn, roll: Roll, path: str) -> None:
    assert server("admin").get(f"/pulsar-advisor/{path.format(roll.digest)}").status_code == 404
