package org.apache.pulsar.client.impl.tls;

/** Unpublished; only its name is needed, because a method of a mocked class mentions it. */
public class ClientTlsFactorySupport {
}
