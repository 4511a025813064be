import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.ArgumentMatchers.nullable;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitDecision;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.Unload;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.DefaultNamespaceBundleSplitStrategyImpl;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.resources.LocalPoliciesResources;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.common.policies.data.LocalPolicies;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;

/** Cases of the Extensible manager (releases from 3.0 on): records, top bundles, shedding, placement, splitting. */
final class ExtensibleCases {
    static final Map<String, ReplayCases.Replay> REPLAYS = Map.of(
            "ext.TransferShedder", ExtensibleCases::transfer,
            "ext.LeastResourceUsageWithWeight", ExtensibleCases::place,
            "ext.BrokerLoadData", ExtensibleCases::brokerLoadData,
            "TopKBundles", ExtensibleCases::topBundles,
            "split.DefaultNamespaceBundleSplitStrategy", ExtensibleCases::split);

    private static final ServiceUnitStateChannel CHANNEL = Services.mocked(ServiceUnitStateChannel.class);

    private static Set<String> owned;
    private static Set<String> disowned = Set.of();
    private static Map<String, NamespaceBundleStats> bundleStats;
    private static List<String> splitting = List.of();
    private static JsonNode boundaries = Json.object();
    private static Set<String> antiAffinityNamespaces = Set.of();

    static {
        ExtensibleLoadManagerImpl manager = Services.mocked(ExtensibleLoadManagerImpl.class);
        ExtensibleLoadManagerWrapper wrapper = Services.mocked(ExtensibleLoadManagerWrapper.class);
        when(wrapper.get()).thenReturn(manager);
        when(manager.getServiceUnitStateChannel()).thenReturn(CHANNEL);
        when(Services.PULSAR.getLoadManager()).thenReturn(new AtomicReference<LoadManager>(wrapper));
        when(Services.PULSAR.getBrokerService()).thenReturn(Services.BROKER);
        when(Services.BROKER.getBundleStats()).thenAnswer(call -> bundleStats);
        when(CHANNEL.isOwner(anyString())).thenAnswer(call -> !disowned.contains(call.<String>getArgument(0)));
        when(CHANNEL.isOwner(anyString(), anyString())).thenAnswer(call ->
                owned == null || owned.contains(call.<String>getArgument(0)));
        when(CHANNEL.getOwnershipEntrySet()).thenAnswer(call -> splittingEntries());
        when(Services.NAMESPACES.getSplitBoundary(
                any(NamespaceBundle.class), nullable(List.class), any(NamespaceBundleSplitAlgorithm.class)))
                .thenAnswer(call -> boundary(call.getArgument(0)));
        when(Services.NAMESPACES.getNamespaceBundleSplitAlgorithmByName(any()))
                .thenReturn(NamespaceBundleSplitAlgorithm.RANGE_EQUALLY_DIVIDE_ALGO);
        PulsarResources resources = Services.mocked(PulsarResources.class);
        LocalPoliciesResources localPolicies = Services.mocked(LocalPoliciesResources.class);
        when(Services.PULSAR.getPulsarResources()).thenReturn(resources);
        when(resources.getLocalPolicies()).thenReturn(localPolicies);
        try {
            when(localPolicies.getLocalPolicies(any())).thenAnswer(call -> localPolicies(call.getArgument(0)));
        } catch (Exception declaredByTheMethod) {
            throw new IllegalStateException(declaredByTheMethod);
        }
    }

    private ExtensibleCases() {
    }

    // Records

    private static List<JsonNode> brokerLoadData(ObjectNode theCase) throws Exception {
        List<JsonNode> answers = new ArrayList<>();
        Map<String, BrokerLoadData> records = new LinkedHashMap<>();
        List<ObjectNode> moments = Json.moments(theCase);
        for (int step = 0; step < moments.size(); step++) {
            apply(records, samples(theCase, step), Json.configuration(moments.get(step).path("config")), now());
            BrokerLoadData record = records.get("b");
            answers.add(Json.object()
                    .put("maxResourceUsage", record.getMaxResourceUsage())
                    .put("weightedMaxEMA", record.getWeightedMaxEMA())
                    .put("msgThroughputEMA", record.getMsgThroughputEMA()));
        }
        return answers;
    }

    private static long now() {
        return System.currentTimeMillis();
    }

    /** The samples that arrive at a step; the case's own come before the first. */
    private static Map<String, JsonNode> samples(ObjectNode theCase, int step) {
        Map<String, JsonNode> samples = new LinkedHashMap<>();
        if (step == 0) {
            samples.putAll(Json.entries(theCase.path("brokers")));
        }
        samples.putAll(Json.entries(theCase.path("steps").path(step).path("brokers")));
        return samples;
    }

    private static void apply(Map<String, BrokerLoadData> records, Map<String, JsonNode> samples,
            ServiceConfiguration configuration, long now) throws ReflectiveOperationException {
        for (Map.Entry<String, JsonNode> entry : samples.entrySet()) {
            JsonNode sample = entry.getValue();
            if (sample.isNull()) {
                records.remove(entry.getKey());
                continue;
            }
            BrokerLoadData record = sample.path("update").asBoolean() ? records.get(entry.getKey()) : null;
            record = record == null ? new BrokerLoadData() : record;
            update(record, sample, configuration);
            Fields.put(record, "updatedAt", now - sample.path("ageMs").asLong());
            for (String average : List.of("weightedMaxEMA", "msgThroughputEMA")) {
                if (sample.has(average)) {
                    Fields.set(record, average, sample.get(average));
                }
            }
            records.put(entry.getKey(), record);
        }
    }

    /** Counts are int in the releases before 4.0, long from there on. */
    private static void update(BrokerLoadData record, JsonNode sample, ServiceConfiguration configuration)
            throws ReflectiveOperationException {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(ModularCases.resource(sample, "cpu"));
        usage.setMemory(ModularCases.resource(sample, "memory"));
        usage.setDirectMemory(ModularCases.resource(sample, "directMemory"));
        usage.setBandwidthIn(ModularCases.resource(sample, "bandwidthIn"));
        usage.setBandwidthOut(ModularCases.resource(sample, "bandwidthOut"));
        int bundles = sample.path("bundleCount").asInt();
        int topics = sample.path("topics").asInt();
        for (Method method : BrokerLoadData.class.getMethods()) {
            if (method.getName().equals("update") && method.getParameterCount() == 8) {
                boolean counts = method.getParameterTypes()[5] == int.class;
                method.invoke(record, usage, Json.number(sample, "msgThroughputIn"),
                        Json.number(sample, "msgThroughputOut"), Json.number(sample, "msgRateIn"),
                        Json.number(sample, "msgRateOut"), counts ? (Object) bundles : (Object) (long) bundles,
                        counts ? (Object) topics : (Object) (long) topics, configuration);
                return;
            }
        }
        throw new NoSuchMethodException("BrokerLoadData.update");
    }

    // Top bundles

    private static List<JsonNode> topBundles(ObjectNode theCase) throws Exception {
        List<JsonNode> answers = new ArrayList<>();
        for (ObjectNode moment : Json.moments(theCase)) {
            Services.configuration = Json.configuration(moment.path("config"));
            Set<String> isolated = Set.copyOf(Json.texts(moment.at("/policies/isolationPolicyNamespaces")));
            antiAffinityNamespaces = Set.copyOf(Json.texts(moment.at("/policies/antiAffinityNamespaces")));
            SimpleResourceAllocationPolicies policies = Services.mocked(SimpleResourceAllocationPolicies.class);
            when(policies.areIsolationPoliciesPresent(any())).thenAnswer(call ->
                    isolated.contains(call.getArgument(0).toString()));
            TopKBundles top = new TopKBundles(Services.PULSAR);
            Fields.put(top, "allocationPolicies", policies);
            // The map that PulsarStats keeps them in: it decides the order of equals.
            top.update(stats(moment.get("bundleStats"), new ConcurrentHashMap<>()), moment.get("topk").asInt());
            ArrayNode names = Json.array();
            top.getLoadData().getTopBundlesLoadData().forEach(bundle -> names.add(bundle.bundleName()));
            answers.add(Json.object().set("top", names));
        }
        return answers;
    }

    private static Map<String, NamespaceBundleStats> stats(
            JsonNode records, Map<String, NamespaceBundleStats> stats) {
        Json.entries(records).forEach((bundle, record) -> stats.put(bundle, ModularCases.stats(record)));
        return stats;
    }

    private static Optional<LocalPolicies> localPolicies(NamespaceName namespace) {
        return antiAffinityNamespaces.contains(namespace.toString())
                ? Optional.of(new LocalPolicies(null, null, "group")) : Optional.empty();
    }

    // TransferShedder

    private static List<JsonNode> transfer(ObjectNode theCase) throws Exception {
        List<JsonNode> answers = new ArrayList<>();
        List<ObjectNode> moments = Json.moments(theCase);
        Map<String, BrokerLoadData> records = new LinkedHashMap<>();
        Map<String, Long> recentlyUnloadedBrokers = new HashMap<>();
        AtomicReference<ObjectNode> current = new AtomicReference<>();
        UnloadCounter counter = new UnloadCounter();
        TransferShedder shedder = shedder(theCase, counter, current);
        for (int step = 0; step < moments.size(); step++) {
            ObjectNode moment = moments.get(step);
            current.set(moment);
            long now = now();
            ServiceConfiguration configuration = Json.configuration(moment.path("config"));
            apply(records, samples(theCase, step), configuration, now);
            JsonNode ages = theCase.path("steps").path(step).path("recentlyUnloadedBrokersAgeMs");
            if (ages.isMissingNode() && step == 0) {
                ages = theCase.path("recentlyUnloadedBrokersAgeMs");
            }
            Json.entries(ages).forEach((broker, age) -> recentlyUnloadedBrokers.put(broker, now - age.asLong()));
            Map<String, Long> recentlyUnloadedBundles = new HashMap<>();
            Json.entries(moment.path("recentlyUnloaded")).forEach((bundle, time) ->
                    recentlyUnloadedBundles.put(bundle, time.asLong()));
            owned = moment.has("ownedBundles") ? Set.copyOf(Json.texts(moment.get("ownedBundles"))) : null;
            LoadManagerContext context = context(configuration, records, moment);
            Set<UnloadDecision> decisions =
                    shedder.findBundlesForUnloading(context, recentlyUnloadedBundles, recentlyUnloadedBrokers);
            ObjectNode answer = Json.object();
            answer.set("decisions", decisions(decisions));
            answer.put("loadAvg", counter.getLoadAvg());
            answer.put("loadStd", counter.getLoadStd());
            answer.put("stdAfter", Fields.<Double>get(Fields.get(shedder, "stats"), "std"));
            answer.put("hitCount", Fields.<Integer>get(shedder, "unloadConditionHitCount"));
            answer.set("counters", counters(Fields.get(counter, "breakdownCounters")));
            answer.set("recentlyUnloadedBrokersAfter", Json.list(new TreeSet<>(recentlyUnloadedBrokers.keySet())));
            answers.add(answer);
        }
        return answers;
    }

    /** Without a broker service everything is transferable; with one, a single filter stands for all policies. */
    private static TransferShedder shedder(ObjectNode theCase, UnloadCounter counter,
            AtomicReference<ObjectNode> current) {
        String text = theCase.toString();
        boolean policies = text.contains("\"transferableBundles\"") || text.contains("\"notTransferableNamespaces\"")
                || text.contains("\"ownedBundles\"");
        if (!policies) {
            return new TransferShedder(counter);
        }
        BrokerFilter filter = new BrokerFilter() {
            @Override
            public String name() {
                return "policies of the case";
            }

            @Override
            public CompletableFuture<Map<String, BrokerLookupData>> filterAsync(Map<String, BrokerLookupData> brokers,
                    ServiceUnitId bundle, LoadManagerContext context) {
                if (!transferable(current.get(), bundle.toString())) {
                    brokers.clear();
                }
                return CompletableFuture.completedFuture(brokers);
            }
        };
        return new TransferShedder(Services.PULSAR, counter, List.of(filter), null, null);
    }

    private static boolean transferable(ObjectNode moment, String bundle) {
        if (moment.has("transferableBundles")) {
            return Json.texts(moment.get("transferableBundles")).stream().anyMatch(bundle::equalsIgnoreCase);
        }
        String namespace = bundle.substring(0, bundle.lastIndexOf('/'));
        return !Json.texts(moment.path("notTransferableNamespaces")).contains(namespace);
    }

    private static ArrayNode decisions(Set<UnloadDecision> decisions) {
        Map<String, ObjectNode> sorted = new TreeMap<>();
        for (UnloadDecision decision : decisions) {
            Unload unload = decision.getUnload();
            sorted.put(unload.sourceBroker() + "\n" + unload.serviceUnit() + "\n" + unload.destBroker(), Json.object()
                    .put("source", unload.sourceBroker())
                    .put("bundle", unload.serviceUnit())
                    .put("dest", unload.destBroker().orElse(null))
                    .put("label", decision.getLabel().name())
                    .put("reason", decision.getReason().name()));
        }
        return Json.array().addAll(sorted.values());
    }

    private static ObjectNode counters(Map<?, ? extends Map<?, AtomicLong>> breakdown) {
        ObjectNode counters = Json.object();
        breakdown.forEach((label, reasons) -> reasons.forEach((reason, count) -> {
            if (count.get() != 0) {
                counters.put(label + "/" + reason, count.get());
            }
        }));
        return counters;
    }

    private static LoadManagerContext context(ServiceConfiguration configuration, Map<String, BrokerLoadData> records,
            ObjectNode moment) {
        Map<String, BrokerLookupData> available = new HashMap<>();
        Json.texts(moment.path("availableBrokers")).forEach(broker -> available.put(broker, null));
        BrokerRegistry registry = Services.mocked(BrokerRegistry.class);
        when(registry.getAvailableBrokerLookupDataAsync())
                .thenReturn(CompletableFuture.completedFuture(available));
        when(registry.getBrokerId()).thenReturn("self:8080");
        Map<String, TopBundlesLoadData> tops = new HashMap<>();
        Json.entries(moment.path("topBundles")).forEach((broker, list) -> {
            TopBundlesLoadData top = new TopBundlesLoadData();
            list.forEach(entry -> top.getTopBundlesLoadData().add(new TopBundlesLoadData.BundleLoadData(
                    entry.get("bundle").asText(), ModularCases.stats(entry))));
            tops.put(broker, top);
        });
        LoadManagerContext context = Services.mocked(LoadManagerContext.class);
        LoadDataStore<BrokerLoadData> loadStore = store(new HashMap<>(), records);
        LoadDataStore<TopBundlesLoadData> topStore = store(new HashMap<>(), tops);
        when(context.brokerConfiguration()).thenReturn(configuration);
        when(context.brokerLoadDataStore()).thenReturn(loadStore);
        when(context.topBundleLoadDataStore()).thenReturn(topStore);
        when(context.brokerRegistry()).thenReturn(registry);
        return context;
    }

    /** A store that iterates as a plain hash map does. */
    @SuppressWarnings("unchecked")
    private static <T> LoadDataStore<T> store(Map<String, T> table, Map<String, T> entries) {
        entries.forEach(table::put);
        LoadDataStore<T> store = Services.mocked(LoadDataStore.class);
        when(store.get(any())).thenAnswer(call -> Optional.ofNullable(table.get(call.<String>getArgument(0))));
        when(store.entrySet()).thenReturn(table.entrySet());
        when(store.size()).thenReturn(table.size());
        return store;
    }

    // Placement

    private static List<JsonNode> place(ObjectNode theCase) throws Exception {
        List<JsonNode> answers = new ArrayList<>();
        List<ObjectNode> moments = Json.moments(theCase);
        Map<String, BrokerLoadData> records = new LinkedHashMap<>();
        LeastResourceUsageWithWeight placement = new LeastResourceUsageWithWeight();
        for (int step = 0; step < moments.size(); step++) {
            ObjectNode moment = moments.get(step);
            ServiceConfiguration configuration = Json.configuration(moment.path("config"));
            apply(records, samples(theCase, step), configuration, now());
            Set<String> candidates = new LinkedHashSet<>(Json.texts(moment.get("candidates")));
            String selected = placement.select(candidates, SplitCases.bundle("tenant/ns", 0, 16),
                    context(configuration, records, moment)).orElse(null);
            ObjectNode answer = Json.object();
            ObjectNode averages = answer.putObject("ema");
            records.forEach((broker, record) -> averages.put(broker, record.getWeightedMaxEMA()));
            ModularCases.tellEligible(
                    Fields.<ThreadLocal<ArrayList<String>>>get(placement, "bestBrokers").get(), selected, answer);
            answers.add(answer);
        }
        return answers;
    }

    // Splitting

    private static List<JsonNode> split(ObjectNode theCase) throws Exception {
        SplitCounter counter = new SplitCounter();
        DefaultNamespaceBundleSplitStrategyImpl strategy = new DefaultNamespaceBundleSplitStrategyImpl(counter);
        List<JsonNode> answers = new ArrayList<>();
        for (ObjectNode moment : Json.moments(theCase)) {
            Services.configuration = Json.configuration(moment.path("config"));
            Services.bundleCounts = new HashMap<>();
            Json.entries(moment.path("bundleCounts")).forEach((namespace, count) ->
                    Services.bundleCounts.put(namespace, count.asInt()));
            // A step's statistics stand for themselves: they are what the broker has at that step.
            bundleStats = stats(theCase.path("steps").path(answers.size()).path("bundleStats"), new LinkedHashMap<>());
            disowned = new HashSet<>(Json.texts(moment.path("notOwnedBundles")));
            splitting = Json.texts(moment.path("splittingBundles"));
            boundaries = moment.path("boundary");
            ObjectNode answer = Json.object();
            try {
                answer.set("decisions", splits(strategy.findBundlesToSplit(
                        context(Services.configuration, Map.of(), moment), Services.PULSAR)));
            } catch (RuntimeException thrown) {
                answer.put("error", thrown.toString());
            }
            answer.set("hits", Json.numbers(Fields.<Map<String, Integer>>get(strategy, "splitConditionHitCounts")));
            answer.set("counters", counters(Fields.get(counter, "breakdownCounters")));
            answers.add(answer);
        }
        return answers;
    }

    private static ArrayNode splits(Set<SplitDecision> decisions) {
        Map<String, ObjectNode> sorted = new TreeMap<>();
        for (SplitDecision decision : decisions) {
            ObjectNode answer = Json.object()
                    .put("bundle", decision.getSplit().serviceUnit())
                    .put("source", decision.getSplit().sourceBroker());
            answer.set("children", Json.list(
                    new TreeSet<>(decision.getSplit().splitServiceUnitToDestBroker().keySet())));
            answer.put("label", decision.getLabel().name()).put("reason", decision.getReason().name());
            sorted.put(decision.getSplit().serviceUnit(), answer);
        }
        return Json.array().addAll(sorted.values());
    }

    private static Set<Map.Entry<String, ServiceUnitStateData>> splittingEntries() {
        Set<Map.Entry<String, ServiceUnitStateData>> entries = new LinkedHashSet<>();
        for (String bundle : splitting) {
            ServiceUnitStateData data = Services.mocked(ServiceUnitStateData.class);
            when(data.state()).thenReturn(ServiceUnitState.Splitting);
            entries.add(new SimpleEntry<>(bundle, data));
        }
        return entries;
    }

    private static CompletableFuture<List<Long>> boundary(NamespaceBundle bundle) {
        JsonNode given = boundaries.path(bundle.toString());
        if (given.isMissingNode()) {
            long lower = bundle.getKeyRange().lowerEndpoint();
            return CompletableFuture.completedFuture(
                    List.of(lower + (bundle.getKeyRange().upperEndpoint() - lower) / 2));
        }
        if (given.isTextual()) {
            return CompletableFuture.failedFuture(new IllegalStateException("the look-up of the boundary fails"));
        }
        if (given.isNull()) {
            return CompletableFuture.completedFuture(null);
        }
        List<Long> positions = new ArrayList<>();
        if (given.isNumber()) {
            positions.add(given.asLong());
        }
        given.forEach(position -> positions.add(position.asLong()));
        return CompletableFuture.completedFuture(positions);
    }
}
