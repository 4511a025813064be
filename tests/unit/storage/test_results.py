"""The hash that a seal holds, computed as docs/formats.md says."""

from __future__ import annotations

import json
from hashlib import sha256

from pulsar_advisor.storage.results import result_sha256
from pulsar_advisor.storage.root import Root

SNAPSHOT = "20261121T083000Z"


def test_the_hash_of_tables_is_that_of_their_files_and_of_the_result(root: Root) -> None:
    result = {
        "schema": "pulsar-advisor/tables-result/1",
        "cluster": root.cluster,
        "snapshot": SNAPSHOT,
        "manifest_sha256": "a1" * 32,
        "earlier_snapshot": None,
        "problems": 0,
        "tables": {"brokers": 1, "bundles": 2},
    }
    contents = {"brokers": b"one broker", "bundles": b"two bundles", "checks": b"of validate"}
    for table, content in contents.items():
        folder = root.snapshot(SNAPSHOT).folder(f"tables/{table}")
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_bytes(content)
    file = root.snapshot(SNAPSHOT).result_file("normalize")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(result))
    hashes = {
        "brokers//part.parquet": sha256(contents["brokers"]).hexdigest(),
        "bundles//part.parquet": sha256(contents["bundles"]).hexdigest(),
        "result": sha256(file.read_bytes()).hexdigest(),
    }
    canonical = json.dumps(hashes, separators=(",", ":"), sort_keys=True).encode()
    assert result_sha256(root.snapshot(SNAPSHOT), "normalize") == sha256(canonical).hexdigest()
