"""Airflow's public REST API, as one user sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import requests

from harness.standalone import Airflow

RUN_LIMIT_S: Final = 900
PARKED_S: Final = 3
"""Between `awaiting_input` and the answer: an answer within the same second can meet the scheduler half-way
(apache/airflow#66374)."""


@dataclass(frozen=True)
class Api:
    """Airflow's public API as one user sees it."""

    url: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return requests.request(method, f"{self.url}/api/v2{path}", headers=headers, json=body, timeout=30)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        answer.raise_for_status()
        return answer.json()

    def trigger(self, dag: str, **conf: Any) -> str:
        if dag == "pulsar_rebalance":
            conf.setdefault("offer_undo_h", 0)  # a busy machine's load may drift from what was predicted
        answer = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        assert answer.ok, answer.text
        return str(answer.json()["dag_run_id"])

    def tasks(self, dag: str, run: str) -> dict[str, str | None]:
        return {
            task["task_id"]: task["state"]
            for task in self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        }

    def result(self, dag: str, run: str, task: str) -> Any:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self.get(path)["value"]

    def finished(self, dag: str, run: str) -> str:
        """The state a DAG run ends in."""
        return wait_for(
            lambda: (state := self.get(f"/dags/{dag}/dagRuns/{run}")["state"]) in ("success", "failed") and state
        )

    def request(self, run: str) -> dict[str, Any]:
        """The open request for approval of a run, once the task has been parked for a while."""
        path = f"/dags/pulsar_rebalance/dagRuns/{run}/taskInstances/approve"

        def parked() -> bool:
            state = self.get(path)["state"]
            assert state not in ("failed", "upstream_failed", "skipped"), self.tasks("pulsar_rebalance", run)
            return state == "awaiting_input"

        wait_for(parked)
        time.sleep(PARKED_S)
        detail: dict[str, Any] = self.get(f"{path}/-1/hitlDetails")
        return detail

    def answer(self, run: str, option: str, **form: Any) -> int:
        path = f"/dags/pulsar_rebalance/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
        return self.call("PATCH", path, {"chosen_options": [option], "params_input": form}).status_code


def logged_in(airflow: Airflow, name: str) -> Api:
    """The API with the login of a user."""
    login = {"username": name, "password": airflow.passwords[name]}
    answer = requests.post(f"{airflow.url}/auth/token", json=login, timeout=30)
    answer.raise_for_status()
    return Api(airflow.url, answer.json()["access_token"])


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + RUN_LIMIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {RUN_LIMIT_S} s"
        time.sleep(1)
    return found
