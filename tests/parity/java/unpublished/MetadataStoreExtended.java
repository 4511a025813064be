package org.apache.pulsar.metadata.api.extended;

import java.util.function.Consumer;
import org.apache.pulsar.metadata.api.MetadataStore;
import org.apache.pulsar.metadata.api.Notification;

/** Unpublished; it is mocked, and the release before lacks this method. */
public interface MetadataStoreExtended extends MetadataStore {
    Runnable registerCancellableListener(Consumer<Notification> listener);
}
