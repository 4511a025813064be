"""What can go wrong with a live cluster, each with a self-explanatory message."""

from __future__ import annotations


class HarnessError(Exception):
    """The harness can't do what was asked of it."""


class LiveClusterUnavailable(HarnessError):
    """This machine can't run a live cluster now (no Java, no Maven, no artifact repository). Says what is missing."""


class ClusterDidNotStart(HarnessError):
    """A process of the cluster ended or wasn't ready in time. Says which, with the end of its log."""


class LoadDidNotStart(HarnessError):
    """The load generator ended or wasn't connected in time. Says what it printed."""


class NoFigures(HarnessError):
    """The brokers did not show the load in time."""


class NoSkew(HarnessError):
    """The brokers' CPU did not get as unequal as the load should make it."""
