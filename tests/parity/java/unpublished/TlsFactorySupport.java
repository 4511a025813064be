package org.apache.pulsar.broker.tls;

/** Unpublished; only its name is needed, because a method of a mocked class mentions it. */
public class TlsFactorySupport {
}
