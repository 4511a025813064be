"""The folder of plans: plan files, written once and read with their digest checked, and `recommend`'s result file."""

from __future__ import annotations

from typing import Final

from upath import UPath

from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plan import Plan, dump_plan, load_plan
from pulsar_advisor.storage.files import read_file, write_file
from pulsar_advisor.storage.root import Root

PLANS: Final = "plans"
RECOMMENDATION: Final = "recommendation.json"
RECOMMENDATION_SCHEMA: Final = "pulsar-advisor/recommendation/1"


def write_plan(root: Root, plan: Plan) -> str:
    """Write a plan beside the others of its snapshot; its file name, which holds its digest.

    A plan that is already there is left as it is. Raises `StorageError` where another content stands under its name.
    """
    path = root.folder(PLANS, plan.snapshot) / plan.file_name
    content = dump_plan(plan)
    if path.exists():
        if read_file(path, "recommend") != content:
            raise StorageError(f"{path} holds something else than the plan of that digest: it was changed; remove it")
        return plan.file_name
    write_file(path, content)
    return plan.file_name


def read_plan(path: str) -> Plan:
    """The plan in a file (path or URL). Raises `UsageError`, `StorageError` or, for a changed plan, `Refused`."""
    return load_plan(read_file(UPath(path), "recommend"))
