"""Airflow's public REST API, as one user sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import requests

RUN_LIMIT_S: Final = 900
PARKED_S: Final = 3
"""Between `awaiting_input` and the answer: an answer within the same second can meet the scheduler half-way
(apache/airflow#66374)."""


@dataclass(frozen=True)
class Api:
    """Airflow's public API as one user sees it."""

    url: str
    token: str
    limit_s: float = RUN_LIMIT_S
    """How long a run may take."""

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return requests.request(method, f"{self.url}/api/v2{path}", headers=headers, json=body, timeout=60)

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

    def task(self, dag: str, run: str, task: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}")
        return found

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
            lambda: (state := self.get(f"/dags/{dag}/dagRuns/{run}")["state"]) in ("success", "failed") and state,
            self.limit_s,
        )

    def request(self, run: str, dag: str = "pulsar_rebalance") -> dict[str, Any]:
        """The open request for approval of a run, once the task has been parked for a while."""
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/approve"

        def parked() -> bool:
            state = self.get(path)["state"]
            assert state not in ("failed", "upstream_failed", "skipped"), self.tasks(dag, run)
            return state == "awaiting_input"

        wait_for(parked, self.limit_s)
        time.sleep(PARKED_S)
        detail: dict[str, Any] = self.get(f"{path}/-1/hitlDetails")
        return detail

    def answer(self, run: str, option: str, dag: str = "pulsar_rebalance", **form: Any) -> int:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
        return self.call("PATCH", path, {"chosen_options": [option], "params_input": form}).status_code


def logged_in(url: str, name: str, password: str, limit_s: float = RUN_LIMIT_S) -> Api:
    """The API with the login of a user."""
    answer = requests.post(f"{url}/auth/token", json={"username": name, "password": password}, timeout=60)
    answer.raise_for_status()
    return Api(url, answer.json()["access_token"], limit_s)


def wait_for(condition: Callable[[], Any], limit_s: float = RUN_LIMIT_S, every_s: float = 1) -> Any:
    """What a condition returns once it holds."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {limit_s} s"
        time.sleep(every_s)
    return found
