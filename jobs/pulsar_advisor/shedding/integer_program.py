"""Which columns to choose at the least cost, so that every row's sum stays within its bounds: solved by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from highspy import Highs, HighsLp, HighsModelStatus, HighsStatus, HighsVarType, MatrixFormat, SolutionStatus

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Integers

_OPTIONS: Final = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0}


@dataclass(frozen=True, eq=False)
class Rows:
    """Constraints: `least` <= the sum of a row's entries in chosen columns <= `most`."""

    entries: Sequence[tuple[Floats, Integers, Integers]]
    """Values, the row and the column of each; no place twice."""
    least: Integers | float
    most: Floats | Integers
    """One for each row."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver found."""

    feasible: bool
    """False: proven that no choice keeps within the bounds."""
    bound: float
    """Proven: no choice costs less. Not finite if nothing is proven."""
    chosen: Booleans | None
    """The cheapest choice found; None if none was."""


def cheapest(costs: Floats, constraints: Sequence[Rows], nodes: int) -> Answer:
    """The cheapest choice of columns. `nodes`: of the branch-and-bound tree, after which the search stops.

    With numbers that the solver can't compute with, nothing is found and nothing proven.
    """
    solver = Highs()  # type: ignore[no-untyped-call]
    for option, value in _OPTIONS.items():
        solver.setOptionValue(option, value)
    solver.setOptionValue("mip_max_nodes", nodes)
    if HighsStatus.kError in (solver.passModel(_program(costs, constraints)), solver.run()):
        return Answer(feasible=True, bound=-np.inf, chosen=None)
    found = solver.getInfo()
    has_choice = found.primal_solution_status == SolutionStatus.kSolutionStatusFeasible
    return Answer(
        feasible=solver.getModelStatus() != HighsModelStatus.kInfeasible,
        bound=found.mip_dual_bound,
        chosen=np.rint(solver.getSolution().col_value).astype(np.bool_) if has_choice else None,
    )


def _program(costs: Floats, constraints: Sequence[Rows]) -> HighsLp:
    heights = [len(rows.most) for rows in constraints]
    below = np.cumsum([0, *heights]).tolist()
    entries = (
        (values, row + first, column)
        for rows, first in zip(constraints, below[:-1], strict=True)
        for values, row, column in rows.entries
    )
    values, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    by_row = np.lexsort((column, row))
    program = HighsLp()
    program.num_col_, program.num_row_ = len(costs), below[-1]
    program.col_cost_, program.col_lower_, program.col_upper_ = costs, np.zeros_like(costs), np.ones_like(costs)
    program.integrality_ = [HighsVarType.kInteger] * len(costs)
    program.row_lower_ = np.concatenate([np.broadcast_to(rows.least, rows.most.shape) for rows in constraints])
    program.row_upper_ = np.concatenate([rows.most for rows in constraints])
    matrix = program.a_matrix_
    matrix.format_, matrix.num_col_, matrix.num_row_ = MatrixFormat.kRowwise, program.num_col_, program.num_row_
    matrix.start_ = np.searchsorted(row[by_row], np.arange(program.num_row_ + 1))
    matrix.index_, matrix.value_ = column[by_row], values[by_row]
    return program
