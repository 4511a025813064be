import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import com.google.common.hash.Hashing;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;

/** Stands in for the broker services around a strategy: what they answer is set case by case. */
final class Services {
    static final PulsarService PULSAR = mocked(PulsarService.class);
    static final NamespaceService NAMESPACES = mocked(NamespaceService.class);
    static final BrokerService BROKER = mocked(BrokerService.class);
    static final NamespaceBundleFactory BUNDLES;

    static ServiceConfiguration configuration = new ServiceConfiguration();
    /** Bundles per namespace; a negative number makes the look-up fail. */
    static Map<String, Integer> bundleCounts = Map.of();
    /** The topics of the bundle that is to be split. */
    static List<String> topics = List.of();

    static {
        MetadataStoreExtended metadata = mocked(MetadataStoreExtended.class);
        when(PULSAR.getLocalMetadataStore()).thenReturn(metadata);
        when(PULSAR.getConfigurationMetadataStore()).thenReturn(metadata);
        when(PULSAR.getConfiguration()).thenAnswer(call -> configuration);
        when(PULSAR.getConfig()).thenAnswer(call -> configuration);
        BUNDLES = new NamespaceBundleFactory(PULSAR, Hashing.crc32());
        when(PULSAR.getNamespaceService()).thenReturn(NAMESPACES);
        when(NAMESPACES.getNamespaceBundleFactory()).thenReturn(BUNDLES);
        when(NAMESPACES.getOwnedTopicListForNamespaceBundle(any()))
                .thenAnswer(call -> CompletableFuture.completedFuture(topics));
        try {
            when(NAMESPACES.getBundleCount(any())).thenAnswer(call -> bundleCount(call.getArgument(0)));
        } catch (Exception declaredByTheMethod) {
            throw new IllegalStateException(declaredByTheMethod);
        }
    }

    private Services() {
    }

    static <T> T mocked(Class<T> type) {
        return mock(type, withSettings().stubOnly());
    }

    private static int bundleCount(NamespaceName namespace) {
        int count = bundleCounts.getOrDefault(namespace.toString(), 0);
        if (count < 0) {
            throw new Uncountable("the bundles of " + namespace + " can't be read");
        }
        return count;
    }

    /** What the namespace service answers where bundles can't be counted. */
    static final class Uncountable extends IllegalStateException {
        private static final long serialVersionUID = 1L;

        Uncountable(String message) {
            super(message);
        }
    }
}
