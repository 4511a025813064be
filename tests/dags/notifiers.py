"""A notifier as an installation would configure it, which notes its messages."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.sdk import BaseNotifier


class Noting(BaseNotifier):
    template_fields = ("text",)
    messages: ClassVar[list[str]] = []

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        self.messages.append(self.text)


def noting() -> Noting:
    return Noting("{{ ti.xcom_pull()['cluster'] }}: {{ ti.xcom_pull()['sentence'] }}")


def noting_the_guard() -> Noting:
    return Noting("{{ task_instance.task_id }}: {{ exception }}")


def noting_calls() -> Noting:
    return Noting("{{ call.event }} {{ call.cluster }} {{ call.sentence }} {{ call.link }}")


class Failing(BaseNotifier):
    def notify(self, context: Any) -> None:
        raise ConnectionError("nothing answers")


def failing() -> Failing:
    return Failing()
