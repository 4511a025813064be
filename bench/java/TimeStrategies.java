import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.loadbalance.impl.OverloadShedder;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.mockito.Mockito;
import org.objenesis.ObjenesisStd;

/**
 * Times the strategies of the release on the class path, one thread, state in memory, nothing mocked on the way.
 *
 * <p>Reads a cluster in the vector format from a file and prints a line of JSON per strategy: the least time of a decision
 * after a warm-up, what the thread allocated for one, and how many bundles it chose.
 */
public final class TimeStrategies {
    private static final double NANOSECONDS_PER_MS = 1e6;
    private static final double BYTES_PER_MIB = 1024.0 * 1024.0;
    private static final long PHASE_NS = 3_000_000_000L;
    private static final int LEAST_RUNS = 2;
    private static final int MOST_RUNS = 200;

    private TimeStrategies() {
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode cluster = Json.MAPPER.readTree(new File(arguments[0]));
        ServiceConfiguration configuration = Json.configuration(cluster.get("config"));
        LoadData load = ModularCases.loadData(cluster);
        time("preparation", () -> filledAgain(load));
        time("OverloadShedder", () -> chosen(new OverloadShedder(), load, configuration));
        time("ThresholdShedder", () -> chosen(new ThresholdShedder(), load, configuration));
        time("UniformLoadShedder", () -> chosen(new UniformLoadShedder(), load, configuration));
        time("AvgShedder", () -> chosen(new AvgShedder(), load, configuration));
        PulsarService pulsar = pulsar(configuration, cluster.get("bundlesPerNamespace").asInt());
        time("BundleSplitterTask", () -> new BundleSplitterTask().findBundlesToSplit(load, pulsar).size());
        LoadManagerContext context = context(configuration, cluster.get("extensible"));
        time("TransferShedder", () -> new TransferShedder(new UnloadCounter())
                .findBundlesForUnloading(context, new HashMap<>(), new HashMap<>()).size());
    }

    private static int chosen(LoadSheddingStrategy shedder, LoadData load, ServiceConfiguration configuration) {
        return shedder.findBundlesForUnloading(load, configuration).size();
    }

    /** Fills maps like the leader's from objects that exist. */
    private static int filledAgain(LoadData load) {
        LoadData again = new LoadData();
        for (Map.Entry<String, BrokerData> entry : load.getBrokerData().entrySet()) {
            again.getBrokerData().put(entry.getKey(), entry.getValue());
        }
        for (Map.Entry<String, BundleData> entry : load.getBundleData().entrySet()) {
            again.getBundleData().put(entry.getKey(), entry.getValue());
        }
        return again.getBundleData().size();
    }

    private static void time(String strategy, Callable<Integer> decision) throws Exception {
        repeat(decision, 1);
        Measured measured = repeat(decision, LEAST_RUNS);
        System.out.println(Json.object().put("strategy", strategy).put("ms", measured.leastNs / NANOSECONDS_PER_MS)
                .put("mib", measured.allocatedBytes / BYTES_PER_MIB).put("chosen", measured.chosen));
    }

    /** The least time of many runs; what the last one allocated and chose. */
    private static Measured repeat(Callable<Integer> decision, int leastRuns) throws Exception {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        Measured measured = new Measured();
        long phase = System.nanoTime();
        for (int run = 0; run < MOST_RUNS && (run < leastRuns || System.nanoTime() - phase < PHASE_NS); run++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            long start = System.nanoTime();
            measured.chosen = decision.call();
            measured.leastNs = Math.min(measured.leastNs, System.nanoTime() - start);
            measured.allocatedBytes = threads.getCurrentThreadAllocatedBytes() - before;
        }
        return measured;
    }

    private static final class Measured {
        private long leastNs = Long.MAX_VALUE;
        private long allocatedBytes;
        private int chosen;
    }

    /** A broker's services without their constructors: only what the splitter task asks. */
    private static PulsarService pulsar(ServiceConfiguration configuration, int bundlesPerNamespace) {
        CountingNamespaces namespaces = new ObjenesisStd().newInstance(CountingNamespaces.class);
        namespaces.count = bundlesPerNamespace;
        HollowPulsar pulsar = new ObjenesisStd().newInstance(HollowPulsar.class);
        pulsar.configuration = configuration;
        pulsar.namespaces = namespaces;
        return pulsar;
    }

    static final class CountingNamespaces extends NamespaceService {
        private int count;

        CountingNamespaces() {
            super(null);
        }

        @Override
        public int getBundleCount(NamespaceName namespace) {
            return count;
        }
    }

    static final class HollowPulsar extends PulsarService {
        private ServiceConfiguration configuration;
        private NamespaceService namespaces;

        HollowPulsar() {
            super(null);
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return configuration;
        }

        @Override
        public NamespaceService getNamespaceService() {
            return namespaces;
        }
    }

    private static LoadManagerContext context(ServiceConfiguration configuration, JsonNode cluster) throws Exception {
        Store<BrokerLoadData> loads = new Store<>();
        Store<TopBundlesLoadData> tops = new Store<>();
        Map<String, BrokerLookupData> available = new HashMap<>();
        long now = System.currentTimeMillis();
        for (Map.Entry<String, JsonNode> entry : Json.entries(cluster).entrySet()) {
            BrokerLoadData data = new BrokerLoadData();
            Fields.set(data, "weightedMaxEMA", entry.getValue().get("load"));
            Fields.set(data, "msgThroughputIn", entry.getValue().get("throughput"));
            Fields.set(data, "msgThroughputEMA", entry.getValue().get("throughputEma"));
            Fields.put(data, "updatedAt", now);
            loads.table.put(entry.getKey(), data);
            TopBundlesLoadData top = new TopBundlesLoadData();
            entry.getValue().get("top").forEach(bundle -> top.getTopBundlesLoadData().add(
                    new TopBundlesLoadData.BundleLoadData(
                            bundle.get("bundle").asText(), ModularCases.stats(bundle))));
            tops.table.put(entry.getKey(), top);
            available.put(entry.getKey(), null);
        }
        BrokerRegistry registry = Mockito.mock(BrokerRegistry.class, Mockito.withSettings().stubOnly());
        Mockito.when(registry.getAvailableBrokerLookupDataAsync())
                .thenReturn(CompletableFuture.completedFuture(available));
        return new LoadManagerContext() {
            @Override
            public ServiceConfiguration brokerConfiguration() {
                return configuration;
            }

            @Override
            public LoadDataStore<BrokerLoadData> brokerLoadDataStore() {
                return loads;
            }

            @Override
            public LoadDataStore<TopBundlesLoadData> topBundleLoadDataStore() {
                return tops;
            }

            @Override
            public BrokerRegistry brokerRegistry() {
                return registry;
            }
        };
    }

    /** A store over a plain hash map that nobody writes to. */
    private static final class Store<T> implements LoadDataStore<T> {
        private final Map<String, T> table = new HashMap<>();

        @Override
        public Optional<T> get(String key) {
            return Optional.ofNullable(table.get(key));
        }

        @Override
        public Set<Map.Entry<String, T>> entrySet() {
            return table.entrySet();
        }

        @Override
        public int size() {
            return table.size();
        }

        @Override
        public void forEach(java.util.function.BiConsumer<String, T> action) {
            table.forEach(action);
        }

        @Override
        public CompletableFuture<Void> pushAsync(String key, T loadData) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<Void> removeAsync(String key) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void closeTableView() {
        }

        @Override
        public void start() {
        }

        @Override
        public void init() {
        }

        @Override
        public void startTableView() {
        }

        @Override
        public void startProducer() {
        }

        @Override
        public void close() {
        }
    }
}
