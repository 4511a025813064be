"""What ends a validation before Spark is asked for anything."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

import documents
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root

SNAPSHOT = "20261121T083000Z"
NO_SPARK = cast(SparkSession, None)


def test_a_manifest_that_was_changed_after_normalize_is_not_validated(tmp_path: Path) -> None:
    snapshot = Root(str(tmp_path), "test").snapshot(SNAPSHOT)
    write_file(snapshot.folder("raw") / MANIFEST, documents.manifest().content())
    write_file(snapshot.folder("tables/result") / RESULT, documents.tables_result().content())
    with pytest.raises(StorageError, match=r"not the manifest that was normalized .* instead of 0{64}"):
        validate(NO_SPARK, snapshot)


def test_a_snapshot_that_another_process_validates_is_not_validated_beside_it(tmp_path: Path) -> None:
    snapshot = Root(str(tmp_path), "test").snapshot(SNAPSHOT)
    write_file(snapshot.folder("raw") / MANIFEST, manifest := documents.manifest().content())
    tables = documents.tables_result(manifest_sha256=sha256_hex(manifest))
    write_file(snapshot.folder("tables/result") / RESULT, tables.content())
    with (
        held(snapshot.folder("validation"), SNAPSHOT, "by the other"),
        pytest.raises(Refused, match="are being run by another process"),
    ):
        validate(NO_SPARK, snapshot)
