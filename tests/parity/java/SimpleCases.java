import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.ArgumentMatchers.nullable;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.cache.CacheBuilder;
import com.google.common.cache.CacheLoader;
import com.google.common.cache.LoadingCache;
import com.google.common.collect.Multimap;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.cache.BundlesQuotas;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.ResourceUnit;
import org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.policies.data.ResourceQuota;
import org.apache.pulsar.metadata.api.MetadataCache;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.policies.data.loadbalancer.LoadReport;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUnitRanking;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;

/** Cases of the Simple manager, one class that ranks, places, sheds and splits. */
final class SimpleCases {
    static final Map<String, ReplayCases.Replay> REPLAYS = Map.of(
            "SimpleLoadManagerImpl.doLoadRanking", SimpleCases::rank,
            "SimpleLoadManagerImpl.getLeastLoaded", SimpleCases::place,
            "SimpleLoadManagerImpl.doLoadShedding", SimpleCases::shed,
            "SimpleLoadManagerImpl.doNamespaceBundleSplit", SimpleCases::split);

    private static final List<String> BY_ONE_BROKER = List.of("leastLoadedServer", "leastMsgPerSecond");
    private static final String NO_BROKER = "no-broker.invalid";
    private static final long SETTLED_MS = TimeUnit.DAYS.toMillis(1);
    private static final ObjectMapper WIRE =
            new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

    @SuppressWarnings("unchecked")
    private static final LockManager<LoadReport> REPORTS = Services.mocked(LockManager.class);
    @SuppressWarnings("unchecked")
    private static final MetadataCache<Map<String, String>> OVERRIDES = Services.mocked(MetadataCache.class);
    private static final BundlesQuotas QUOTAS = Services.mocked(BundlesQuotas.class);
    private static final SimpleResourceAllocationPolicies POLICIES =
            Services.mocked(SimpleResourceAllocationPolicies.class);

    private static Map<String, LoadReport> reports = Map.of();
    private static ResourceQuota defaultQuota;
    private static Map<String, ResourceQuota> quotas = new HashMap<>();
    /** Bundles that were unloaded or split over the admin interface, in that order. */
    private static final List<String> SENT = new ArrayList<>();

    static {
        Namespaces namespaces = Services.mocked(Namespaces.class);
        PulsarAdmin admin = Services.mocked(PulsarAdmin.class);
        when(admin.namespaces()).thenReturn(namespaces);
        when(Services.PULSAR.getBrokerService()).thenReturn(Services.BROKER);
        when(Services.PULSAR.getAdvertisedAddress()).thenReturn(NO_BROKER);
        when(Services.BROKER.getBundlesQuotas()).thenReturn(QUOTAS);
        when(QUOTAS.getDefaultResourceQuota()).thenAnswer(call -> done(defaultQuota));
        when(QUOTAS.getResourceQuota(anyString())).thenAnswer(call ->
                done(quotas.getOrDefault(call.<String>getArgument(0), defaultQuota)));
        when(QUOTAS.setDefaultResourceQuota(any())).thenAnswer(call -> {
            defaultQuota = call.getArgument(0);
            return done(null);
        });
        when(QUOTAS.setResourceQuota(anyString(), any())).thenAnswer(call -> {
            quotas.put(call.getArgument(0), call.getArgument(1));
            return done(null);
        });
        when(REPORTS.listLocks(any())).thenAnswer(call -> done(new ArrayList<>(reports.keySet())));
        when(REPORTS.readLock(any())).thenAnswer(call -> done(Optional.of(reports.get(
                call.<String>getArgument(0).substring(LoadManager.LOADBALANCE_BROKERS_ROOT.length() + 1)))));
        when(OVERRIDES.get(any())).thenAnswer(call -> done(Optional.empty()));
        when(OVERRIDES.readModifyUpdateOrCreate(any(), any())).thenAnswer(call -> done(Map.of()));
        when(POLICIES.isSharedBroker(any())).thenReturn(true);
        try {
            when(Services.PULSAR.getAdminClient()).thenReturn(admin);
            doAnswer(call -> SENT.add(call.getArgument(0) + "/" + call.getArgument(1)))
                    .when(namespaces).unloadNamespaceBundle(anyString(), anyString());
            doAnswer(call -> SENT.add(call.getArgument(0) + "/" + call.getArgument(1)))
                    .when(namespaces).splitNamespaceBundle(anyString(), anyString(), anyBoolean(), nullable(String.class));
        } catch (Exception declaredByTheMethods) {
            throw new IllegalStateException(declaredByTheMethods);
        }
    }

    private SimpleCases() {
    }

    private static <T> CompletableFuture<T> done(T value) {
        return CompletableFuture.completedFuture(value);
    }

    private static SimpleLoadManagerImpl manager() throws Exception {
        SimpleLoadManagerImpl manager = new SimpleLoadManagerImpl();
        LoadingCache<String, Long> recentlyUnloaded = CacheBuilder.newBuilder().build(CacheLoader.from(() -> 0L));
        Fields.put(manager, "pulsar", Services.PULSAR);
        Fields.put(manager, "policies", POLICIES);
        Fields.put(manager, "loadReports", REPORTS);
        Fields.put(manager, "dynamicConfigurationCache", OVERRIDES);
        Fields.put(manager, "unloadedHotNamespaceCache", recentlyUnloaded);
        defaultQuota = Fields.get(QUOTAS, "INITIAL_QUOTA");
        quotas = new HashMap<>();
        Fields.put(manager, "realtimeAvgResourceQuota", defaultQuota);
        return manager;
    }

    /** Gives the manager the reports of a case until quotas no longer change: once, written down, and a day later. */
    private static void settle(SimpleLoadManagerImpl manager, JsonNode moment) throws Exception {
        Services.configuration = Json.configuration(moment.path("config"));
        reports = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> broker : Json.entries(moment.path("brokers")).entrySet()) {
            reports.put(broker.getKey(), report(broker.getKey(), broker.getValue()));
        }
        Method updateRanking = SimpleLoadManagerImpl.class.getDeclaredMethod("updateRanking");
        updateRanking.setAccessible(true);
        for (int update = 0; update < 2; update++) {
            long last = Fields.get(manager, "lastResourceQuotaUpdateTimestamp");
            reports.values().forEach(report -> report.setTimestamp(last + SETTLED_MS));
            updateRanking.invoke(manager);
            manager.writeResourceQuotasToZooKeeper();
        }
    }

    /** A broker's report as the leader reads it back. */
    private static LoadReport report(String broker, JsonNode record) throws Exception {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(ModularCases.resource(record, "cpu"));
        usage.setMemory(ModularCases.resource(record, "memory"));
        usage.setDirectMemory(ModularCases.resource(record, "directMemory"));
        usage.setBandwidthIn(ModularCases.resource(record, "bandwidthIn"));
        usage.setBandwidthOut(ModularCases.resource(record, "bandwidthOut"));
        Map<String, NamespaceBundleStats> stats = new ConcurrentHashMap<>();
        Json.entries(record.path("lastStats")).forEach((bundle, one) -> stats.put(bundle, ModularCases.stats(one)));
        LoadReport written = new LoadReport("http://" + broker, null, null, null);
        written.setName(broker);
        written.setSystemResourceUsage(usage);
        written.setBundleStats(stats);
        return WIRE.readValue(WIRE.writeValueAsBytes(written), LoadReport.class);
    }

    private static List<JsonNode> rank(ObjectNode theCase) throws Exception {
        SimpleLoadManagerImpl manager = manager();
        settle(manager, theCase);
        ObjectNode answer = Json.object();
        answer.put("cpuFactor", Fields.<Double>get(manager, "realtimeCpuLoadFactor"));
        answer.put("memoryFactor", Fields.<Double>get(manager, "realtimeMemoryLoadFactor"));
        ObjectNode brokers = answer.putObject("brokers");
        Fields.<Map<ResourceUnit, ResourceUnitRanking>>get(manager, "resourceUnitRankings").forEach((unit, ranking) ->
                brokers.putObject(name(unit))
                        .put("load", ranking.getEstimatedLoadPercentage())
                        .put("rate", ranking.getEstimatedMessageRate())
                        .put("capacity", ranking.estimateMaxCapacity(defaultQuota)));
        Fields.<AtomicReference<Map<Long, Set<ResourceUnit>>>>get(manager, "sortedRankings").get().forEach(
                (rank, units) -> units.forEach(unit -> ((ObjectNode) brokers.get(name(unit))).put("rank", rank)));
        return List.of(answer);
    }

    private static String name(ResourceUnit unit) {
        return unit.getResourceId().replace("http://", "");
    }

    private static List<JsonNode> place(ObjectNode theCase) throws Exception {
        SimpleLoadManagerImpl manager = manager();
        settle(manager, theCase);
        Fields.put(manager, "brokerRotationCursor", theCase.path("cursor").asLong());
        String name = theCase.get("bundle").asText();
        int end = name.lastIndexOf('/');
        NamespaceBundle bundle = Services.BUNDLES.getBundle(name.substring(0, end), name.substring(end + 1));

        Multimap<Long, ResourceUnit> ranked = manager.getResourceAvailabilityFor(bundle);
        Set<String> weighted = new TreeSet<>();
        Set<String> all = new TreeSet<>();
        ObjectNode answer = Json.object();
        ObjectNode candidates = answer.putObject("candidates");
        ranked.forEach((rank, unit) -> {
            candidates.put(name(unit), rank);
            all.add(name(unit));
            if (rank > 0) {
                weighted.add(name(unit));
            }
        });
        String chosen = manager.getLeastLoaded(bundle).map(SimpleCases::name).orElse(null);
        Set<String> eligible = weighted.isEmpty() ? all : weighted;
        if (chosen == null) {
            eligible = Set.of();
        } else if (BY_ONE_BROKER.contains(Services.configuration.getLoadBalancerPlacementStrategy())) {
            eligible = Set.of(chosen);
        } else if (!eligible.contains(chosen)) {
            throw new IllegalStateException(chosen + " was drawn, but isn't among " + eligible);
        }
        answer.set("eligible", Json.list(eligible));
        answer.put("cursor", Fields.<Long>get(manager, "brokerRotationCursor"));
        return List.of(answer);
    }

    private static List<JsonNode> shed(ObjectNode theCase) throws Exception {
        SimpleLoadManagerImpl manager = manager();
        LoadingCache<String, Long> recentlyUnloaded = Fields.get(manager, "unloadedHotNamespaceCache");
        List<JsonNode> answers = new ArrayList<>();
        for (ObjectNode moment : Json.moments(theCase)) {
            settle(manager, moment);
            Json.entries(moment.path("recentlyUnloaded")).forEach((bundle, time) ->
                    recentlyUnloaded.put(bundle, time.asLong()));
            SENT.clear();
            manager.doLoadShedding();
            ObjectNode answer = Json.object();
            ObjectNode unload = answer.putObject("unload");
            for (String bundle : SENT) {
                reports.forEach((broker, report) -> {
                    if (report.getBundleStats().containsKey(bundle)) {
                        unload.set(broker, Json.list(List.of(bundle)));
                    }
                });
            }
            answers.add(answer);
        }
        return answers;
    }

    /** Every broker splits by itself, after it has written its report. */
    private static List<JsonNode> split(ObjectNode theCase) throws Exception {
        Services.configuration = Json.configuration(theCase.path("config"));
        Services.bundleCounts = new HashMap<>();
        Json.entries(theCase.path("bundleCounts")).forEach((namespace, count) ->
                Services.bundleCounts.put(namespace, count.asInt()));
        SimpleLoadManagerImpl manager = manager();
        ObjectNode answer = Json.object();
        ObjectNode selected = answer.putObject("selected");
        for (Map.Entry<String, JsonNode> broker : Json.entries(theCase.path("brokers")).entrySet()) {
            SENT.clear();
            Fields.put(manager, "lastLoadReport", report(broker.getKey(), broker.getValue()));
            try {
                manager.doNamespaceBundleSplit();
            } catch (Services.Uncountable endsThePass) {
                continue;
            }
            SENT.forEach(bundle -> selected.put(bundle, broker.getKey()));
        }
        return List.of(answer);
    }
}
