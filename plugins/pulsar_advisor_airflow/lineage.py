"""What each stage reads and writes, as OpenLineage datasets for Airflow's OpenLineage provider, if installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pulsar_advisor.storage.root import Root


class _Folders(NamedTuple):
    """The folders of the root that a stage reads and writes."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


_FOLDERS: Final[Mapping[str, _Folders]] = {
    "capture": _Folders((), ("raw",)),
    "normalize": _Folders(("raw",), ("tables",)),
    "validate": _Folders(("raw", "tables"), ("validation",)),
    "snapshot": _Folders(("raw",), ("tables", "validation")),
    "recommend": _Folders(("tables", "validation"), ("outcomes", "plans")),
    "roll": _Folders(("tables", "validation"), ("outcomes", "plans")),
    "turn": _Folders(("raw",), ("tables", "validation", "outcomes", "plans")),
    "simulate": _Folders(("tables", "validation"), ("simulations",)),
}
"""By stage. A dataset is a folder of a cluster: the job's name has the stage, the DAG run the snapshot."""


def lineage(stage: str, root: Root) -> Any:
    """The `OperatorLineage` that the provider asks for."""
    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    def datasets(folders: tuple[str, ...]) -> list[Any]:
        return [Dataset(*_name(root, folder)) for folder in folders]

    read, written = _FOLDERS[stage]
    return OperatorLineage(inputs=datasets(read), outputs=datasets(written))


def _name(root: Root, folder: str) -> tuple[str, str]:
    """Namespace and name of a file, or of an object in its bucket, by OpenLineage's naming of datasets."""
    place = urlsplit(str(root.location / folder / f"cluster={root.cluster}"))
    if not place.scheme or place.scheme == "file":
        return "file", place.path
    return f"{place.scheme}://{place.netloc}", place.path.lstrip("/")
