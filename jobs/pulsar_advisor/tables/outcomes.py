"""The outcomes table: every strategy's answer about every broker and bundle, with both sides of the inequality."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.planning.proposals.proposal import Answers, Proposal
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.columns import Column, Table, required
from pulsar_advisor.tables.parquet import as_parquet
from pulsar_advisor.tables.stored import ARROW, stored_files

OUTCOMES: Final = Table(
    "outcomes",
    "one answer of one strategy about one broker or bundle; a broker may have several about one bundle",
    (),
    (
        required("strategy", "string", "Pulsar's class that answers"),
        required("role", "string", "as what: `shedder`, `load manager`, `placement` or `splitting`"),
        Column("shedder", "string", "shedder of the combination; null: the answer does not depend on it"),
        Column("placement", "string", "placement strategy of it; null: the answer does not depend on it"),
        required("subject", "string", "`broker` or `bundle`"),
        required("object", "string", "broker id or full bundle name"),
        required("about", "string", "for placement: the bundle for which the broker is a candidate, else empty"),
        required("code", "string", "the answer"),
        required("chosen", "boolean", "whether the strategy acts on it"),
        required("left", "double", "left side of the deciding inequality; without a relation NaN, or a figure"),
        required("relation", "string", "`<`, `<=`, `>`, `>=`, `==` or `!=`, as it held; empty: nothing was compared"),
        required("right", "double", "right side of the deciding inequality; without a relation NaN, or a figure"),
        required("sentence", "string", "the answer in words, with both numbers"),
        required("near_tie", "boolean", "whether the inequality was decided by its last digits"),
    ),
)

SCHEMA: Final = pa.schema(
    [pa.field(one.name, ARROW[one.type], metadata={"comment": one.comment}) for one in OUTCOMES.columns]
)
"""Every column may be null in it, as in the files of earlier releases."""


_PLANS: Final = b"plans"
"""Key in a file's metadata: the digests of the plans that were made with its answers."""


def write_outcomes(
    snapshot: Snapshot,
    state: ClusterState,
    shedder: str,
    proposals: Sequence[tuple[str, Proposal | AdvisorError]],
    plans: Collection[str] = (),
) -> None:
    """Write the answers of one shedder and of each placement strategy combined with it, as one Parquet file.

    `plans` are the digests of the plans made with them, by which the result of the same `recommend` is known.

    Answers that don't depend on the placement strategy are written once. Those about splits, which depend on neither,
    are a proposal of their own, to be written with one of the shedders.
    """
    tables = []
    seen: set[int] = set()
    for placement, proposal in proposals:
        if isinstance(proposal, AdvisorError):
            continue
        for answers in proposal.answers:
            if id(answers.outcomes) in seen:
                continue
            seen.add(id(answers.outcomes))
            tables.append(
                outcomes_table(
                    state,
                    answers,
                    shedder=None if answers.role == "splitting" else shedder,
                    placement=placement if answers.role in ("placement", "load manager") else None,
                )
            )
    rows = pa.concat_tables([SCHEMA.empty_table(), *tables])
    content = as_parquet(rows.replace_schema_metadata({_PLANS: " ".join(sorted(plans))}))
    write_file(snapshot.folder("outcomes") / f"{shedder}.parquet", content)


def outcomes_of(snapshot: Snapshot, plans: Mapping[str, Collection[str]]) -> pa.Table:
    """The answers with which plans (digests) were made, by the shedder they are of, in the order of its names.

    Raises `StorageError`, also if a `recommend` with another request has replaced them.
    """
    folder = snapshot.folder("outcomes")
    try:
        there = {file: plans[shedder] for shedder in sorted(plans) if (file := folder / f"{shedder}.parquet").exists()}
        if not there:
            return SCHEMA.empty_table()
        files = stored_files([*there])
        if not files.schema.equals(SCHEMA):
            raise StorageError(f"{next(iter(there))} has different columns from those `recommend` writes")
        answers = pa.concat_tables([SCHEMA.empty_table(), files.to_table().replace_schema_metadata(None)])
        made = [(fragment.physical_schema.metadata or {}).get(_PLANS) for fragment in files.get_fragments()]
    except (OSError, pa.ArrowException, StorageError) as error:
        raise StorageError(
            f"the answers about snapshot {snapshot} are damaged ({plain(str(error))}): remove {folder} and "
            f"{snapshot.result_file('recommend')}, and run `recommend` again"
        ) from error
    for file, listed in zip(there, made, strict=True):
        plans_of_result = {digest.encode() for digest in there[file]}
        if listed is not None and not plans_of_result <= {*listed.split()}:  # None: of an earlier release
            raise StorageError(
                f"{file} and the result are of different runs of `recommend`: one is under way, or was interrupted. "
                "Wait for it, or run `recommend` again"
            )
    return answers


def outcomes_table(state: ClusterState, answers: Answers, *, shedder: str | None, placement: str | None) -> pa.Table:
    """One strategy's answers as rows of the table."""
    outcomes = answers.outcomes
    rows = len(outcomes)
    objects = [state.name_of(outcomes.subject, row) for row in outcomes.index.tolist()]
    vocabulary = outcomes.vocabulary

    def spelt(column: str) -> pa.Array:
        return pa.array([getattr(outcome, column) for outcome in vocabulary]).take(pa.array(outcomes.code))

    return pa.table(
        {
            "strategy": pa.array([answers.strategy] * rows, pa.string()),
            "role": pa.array([answers.role] * rows, pa.string()),
            "shedder": pa.array([shedder] * rows, pa.string()),
            "placement": pa.array([placement] * rows, pa.string()),
            "subject": pa.array([outcomes.subject] * rows, pa.string()),
            "object": pa.array(objects, pa.string()),
            "about": pa.array([answers.about] * rows, pa.string()),
            "code": spelt("code"),
            "chosen": spelt("chosen"),
            "left": pa.array(np.asarray(outcomes.left, dtype=np.float64)),
            "relation": spelt("relation"),
            "right": pa.array(np.asarray(outcomes.right, dtype=np.float64)),
            "sentence": pa.array([outcomes.explain(row) for row in range(rows)], pa.string()),
            "near_tie": pa.array(outcomes.near_tie()),
        },
        schema=SCHEMA,
    )
