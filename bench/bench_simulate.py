"""Time of simulations: `bench_simulate.py [BROKERS BUNDLES [CYCLES [SHEDDER]]]`, a line per shedder.

The seeded cluster and the settings of `bench_engine`, under which every shedder acts. A figure is the processor time of
one simulation with one placement strategy, in one thread, scores included; the unloads are those of all cycles.
"""

from __future__ import annotations

import sys
import time

from bench_engine import RESOLVED, cluster

from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.simulation.scores import cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import simulate
from results import RESULTS, record, today

FILE = RESULTS / "simulations.tsv"


def main(brokers: int = 100, bundles: int = 10_000, cycles: int = 10, only: str = "") -> None:
    """Print the table; with `only`, of this shedder with the first placement strategy."""
    situation = Situation.of_fit(cluster(brokers, bundles), RESOLVED)
    placements = PLACEMENTS[:1] if only else PLACEMENTS
    print(f"{brokers:,} brokers × {bundles:,} bundles, {cycles} cycles: CPU s (unloads)")
    total_s = 0.0
    for entry in SHEDDERS:
        if only not in ("", entry.name):
            continue
        figures = []
        for placement in placements:
            start_s = time.process_time()
            simulation = simulate(entry.name, placement.name, situation, cycles=cycles)
            score = simulation_score(simulation, cycle_scores(simulation))
            took_s = time.process_time() - start_s
            total_s += took_s
            figures.append((took_s, score.unloads))
        cells = [f"{took_s:.2f} ({unloads:,})" for took_s, unloads in figures]
        print(f"{entry.name:<24}{''.join(f'{cell:>16}' for cell in cells)}")
        times, unloads = zip(*figures, strict=True)
        row = {"least s": f"{min(times):.2f}", "most s": f"{max(times):.2f}", "measured": today()}
        work = f"{brokers:,} × {bundles:,}, {cycles} cycles: {entry.name}"
        record(FILE, [{"simulation": work, **row, "unloads": f"{min(unloads):,} to {max(unloads):,}"}])
    print(f"{'all':<24}{total_s:>10.1f}")


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:4]]
    main(*numbers, *sys.argv[4:5])
