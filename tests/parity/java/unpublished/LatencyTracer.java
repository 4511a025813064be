package org.apache.pulsar.common.util;

/** Unpublished; only its name is needed, because a method of a mocked class mentions it. */
public class LatencyTracer {
    public static class Snapshot {
    }

    public static class TracePoint {
    }
}
