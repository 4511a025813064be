import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.commons.lang3.mutable.MutableInt;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** Cases of the Modular manager's shedders and placement strategies. */
final class ModularCases {
    private static final String IMPL = "org.apache.pulsar.broker.loadbalance.impl.";
    private static final int SHORT_SAMPLES = 10;
    private static final int LONG_SAMPLES = 1000;

    static final Map<String, ReplayCases.Replay> REPLAYS = Map.of(
            "OverloadShedder", ModularCases::shed,
            "ThresholdShedder", ModularCases::shed,
            "UniformLoadShedder", ModularCases::shed,
            "AvgShedder", ModularCases::shed,
            "LeastLongTermMessageRate", ModularCases::place,
            "LeastResourceUsageWithWeight", ModularCases::place,
            "RoundRobinBrokerSelector", ModularCases::place);

    private ModularCases() {
    }

    private static <T> T strategy(ObjectNode theCase) throws ReflectiveOperationException {
        @SuppressWarnings("unchecked")
        T strategy = (T) Class.forName(IMPL + theCase.get("strategy").asText()).getDeclaredConstructor().newInstance();
        return strategy;
    }

    private static List<JsonNode> shed(ObjectNode theCase) throws Exception {
        LoadSheddingStrategy shedder = strategy(theCase);
        List<JsonNode> answers = new ArrayList<>();
        for (ObjectNode moment : Json.moments(theCase)) {
            ServiceConfiguration configuration = Json.configuration(moment.path("config"));
            if (moment.has("activeBrokers")) {
                onActiveBrokersChange(shedder, new HashSet<>(Json.texts(moment.get("activeBrokers"))));
            }
            LoadData loadData = moment.has("emptyLoadData") ? new LoadData() : loadData(moment);
            ObjectNode answer = Json.object();
            ObjectNode unload = answer.putObject("unload");
            shedder.findBundlesForUnloading(loadData, configuration).asMap()
                    .forEach((broker, bundles) -> unload.set(broker, Json.list(bundles)));
            switch (theCase.get("strategy").asText()) {
                case "ThresholdShedder" -> answer.set("history", Json.numbers(
                        Fields.<Map<String, Double>>get(shedder, "brokerAvgResourceUsage")));
                case "AvgShedder" -> tellAvgShedder(shedder, loadData, configuration, unload, answer);
                default -> {
                }
            }
            answers.add(answer);
        }
        return answers;
    }

    private static void tellAvgShedder(LoadSheddingStrategy shedder, LoadData loadData,
            ServiceConfiguration configuration, ObjectNode unload, ObjectNode answer) throws Exception {
        answer.set("scores", Json.numbers(Fields.<Map<String, Double>>get(shedder, "brokerScoreMap")));
        answer.set("hitHigh", Json.numbers(Fields.<Map<String, MutableInt>>get(shedder, "brokerHitCountForHigh")));
        answer.set("hitLow", Json.numbers(Fields.<Map<String, MutableInt>>get(shedder, "brokerHitCountForLow")));
        ObjectNode destinations = answer.putObject("destinations");
        Set<String> everyone = loadData.getBrokerData().keySet();
        if (Fields.exists(shedder, "pendingBundleToUnload")) {
            for (JsonNode bundles : unload) {
                for (String bundle : Json.texts(bundles)) {
                    Set<String> among = drawnAmong(shedder, everyone, bundle, loadData, configuration);
                    destinations.set(bundle, Json.MAPPER.valueToTree(among.size() == 1 ? among.iterator().next() : among));
                }
            }
            shedder.getClass().getMethod("onUnloadAttemptCompleted").invoke(shedder);
            return;
        }
        Map<BundleData, String> remembered = Fields.get(shedder, "bundleBrokerMap");
        for (JsonNode bundles : unload) {
            for (String bundle : Json.texts(bundles)) {
                BundleData data = loadData.getBundleData().get(bundle);
                boolean known = everyone.contains(remembered.get(data));
                String choice = ((ModularLoadManagerStrategy) shedder)
                        .selectBroker(everyone, data, loadData, configuration).orElseThrow();
                if (known) {
                    destinations.put(bundle, choice);
                } else {
                    destinations.set(bundle, Json.list(new TreeSet<>(everyone)));
                }
            }
        }
    }

    /** The brokers among which the shedder of 5.0.1 draws, or the one that it has in mind for a bundle. */
    private static Set<String> drawnAmong(LoadSheddingStrategy shedder, Set<String> everyone, String bundle,
            LoadData loadData, ServiceConfiguration configuration) throws Exception {
        Set<String> among = new TreeSet<>();
        Object watched = mock(shedder.getClass(), withSettings().stubOnly().spiedInstance(shedder).defaultAnswer(call -> {
            if (call.getMethod().getName().equals("selectBroker")) {
                among.addAll(call.<Set<String>>getArgument(0));
            }
            return call.callRealMethod();
        }));
        Object chosen = shedder.getClass().getMethod("selectBrokerForBundle", Set.class, String.class, BundleData.class,
                        LoadData.class, ServiceConfiguration.class)
                .invoke(watched, everyone, bundle, loadData.getBundleData().get(bundle), loadData, configuration);
        return among.isEmpty() ? Set.of((String) ((Optional<?>) chosen).orElseThrow()) : among;
    }

    private static List<JsonNode> place(ObjectNode theCase) throws Exception {
        ModularLoadManagerStrategy placement = strategy(theCase);
        boolean roundRobin = "RoundRobinBrokerSelector".equals(theCase.get("strategy").asText());
        List<JsonNode> answers = new ArrayList<>();
        for (ObjectNode moment : Json.moments(theCase)) {
            if (moment.has("counter")) {
                Fields.<AtomicInteger>get(placement, "count").set(moment.get("counter").asInt());
            }
            Set<String> candidates = new LinkedHashSet<>(Json.texts(moment.get("candidates")));
            String selected = placement.selectBroker(candidates, new BundleData(SHORT_SAMPLES, LONG_SAMPLES),
                    loadData(moment), Json.configuration(moment.path("config"))).orElse(null);
            ObjectNode answer = Json.object();
            if (roundRobin) {
                answer.put("selected", selected);
                answer.put("counter", Fields.<AtomicInteger>get(placement, "count").get());
            } else {
                tellEligible(Fields.get(placement, "bestBrokers"), selected, answer);
            }
            if ("LeastResourceUsageWithWeight".equals(theCase.get("strategy").asText())) {
                answer.set("history", Json.numbers(
                        Fields.<Map<String, Double>>get(placement, "brokerAvgResourceUsageWithWeight")));
            }
            answers.add(answer);
        }
        return answers;
    }

    /** The brokers a placement drew one of; the drawn one only where no other could have been. */
    static void tellEligible(List<String> best, String selected, ObjectNode answer) {
        // Where there are no candidates a strategy may leave the list of its last call behind.
        List<String> eligible = selected == null ? List.of() : best;
        if (selected != null && !best.contains(selected)) {
            throw new IllegalStateException(selected + " was drawn, but isn't among " + best);
        }
        answer.set("eligible", Json.list(new TreeSet<>(eligible)));
        answer.put("selected", eligible.size() == 1 ? selected : null);
    }

    /** Releases before 3.0 don't tell strategies which brokers are active. */
    private static void onActiveBrokersChange(Object strategy, Set<String> active) throws ReflectiveOperationException {
        strategy.getClass().getMethod("onActiveBrokersChange", Set.class).invoke(strategy, active);
    }

    /** The leader's view, filled in the order of the keys. */
    static LoadData loadData(JsonNode moment) {
        LoadData loadData = new LoadData();
        Json.entries(moment.path("brokers")).forEach((broker, record) ->
                loadData.getBrokerData().put(broker, brokerData(record)));
        Json.entries(moment.path("bundles")).forEach((bundle, record) ->
                loadData.getBundleData().put(bundle, bundleData(record)));
        Json.entries(moment.path("recentlyUnloaded")).forEach((bundle, time) ->
                loadData.getRecentlyUnloadedBundles().put(bundle, time.asLong()));
        return loadData;
    }

    private static BrokerData brokerData(JsonNode record) {
        BrokerData data = new BrokerData(localBrokerData(record));
        TimeAverageBrokerData averages = new TimeAverageBrokerData();
        averages.setLongTermMsgRateIn(Json.number(record, "longTermMsgRateIn"));
        averages.setLongTermMsgRateOut(Json.number(record, "longTermMsgRateOut"));
        data.setTimeAverageData(averages);
        Json.entries(record.path("preallocated")).forEach((bundle, bundleRecord) ->
                data.getPreallocatedBundleData().put(bundle, bundleData(bundleRecord)));
        return data;
    }

    static LocalBrokerData localBrokerData(JsonNode record) {
        LocalBrokerData data = new LocalBrokerData();
        data.setCpu(resource(record, "cpu"));
        data.setMemory(resource(record, "memory"));
        data.setDirectMemory(resource(record, "directMemory"));
        data.setBandwidthIn(resource(record, "bandwidthIn"));
        data.setBandwidthOut(resource(record, "bandwidthOut"));
        data.setMsgThroughputIn(Json.number(record, "msgThroughputIn"));
        data.setMsgThroughputOut(Json.number(record, "msgThroughputOut"));
        data.setMsgRateIn(Json.number(record, "msgRateIn"));
        data.setMsgRateOut(Json.number(record, "msgRateOut"));
        data.setBundles(new HashSet<>(Json.texts(record.path("bundles"))));
        Json.entries(record.path("lastStats")).forEach((bundle, stats) -> data.getLastStats().put(bundle, stats(stats)));
        return data;
    }

    static ResourceUsage resource(JsonNode record, String name) {
        JsonNode pair = record.path(name);
        return pair.isMissingNode()
                ? new ResourceUsage() : new ResourceUsage(Json.number(pair.get(0)), Json.number(pair.get(1)));
    }

    static BundleData bundleData(JsonNode record) {
        BundleData data = new BundleData(SHORT_SAMPLES, LONG_SAMPLES);
        fill(data.getShortTermData(), record.path("shortTerm"));
        fill(data.getLongTermData(), record.path("longTerm"));
        data.setTopics(record.path("topics").asInt());
        return data;
    }

    private static void fill(TimeAverageMessageData data, JsonNode record) {
        data.setMsgThroughputIn(Json.number(record, "msgThroughputIn"));
        data.setMsgThroughputOut(Json.number(record, "msgThroughputOut"));
        data.setMsgRateIn(Json.number(record, "msgRateIn"));
        data.setMsgRateOut(Json.number(record, "msgRateOut"));
        data.setNumSamples(record.path("numSamples").asInt());
    }

    static NamespaceBundleStats stats(JsonNode record) {
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgThroughputIn = Json.number(record, "msgThroughputIn");
        stats.msgThroughputOut = Json.number(record, "msgThroughputOut");
        stats.msgRateIn = Json.number(record, "msgRateIn");
        stats.msgRateOut = Json.number(record, "msgRateOut");
        stats.topics = record.path("topics").asLong();
        stats.consumerCount = record.path("consumerCount").asInt();
        stats.producerCount = record.path("producerCount").asInt();
        stats.cacheSize = record.path("cacheSize").asLong();
        return stats;
    }
}
