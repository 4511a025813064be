import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.configuration.FieldContext;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** Cases of the configuration, of the load records, of Java's map order and of its sort. */
final class RecordCases {
    static final Map<String, ReplayCases.Replay> REPLAYS = Map.of(
            "ServiceConfiguration", RecordCases::serviceConfiguration,
            "LocalBrokerData", RecordCases::localBrokerData,
            "TimeAverageMessageData", RecordCases::timeAverageMessageData,
            "TimeAverageBrokerData.reset", RecordCases::timeAverageBrokerData,
            "NamespaceBundleStats.compare", RecordCases::compareStats,
            "order", RecordCases::mapOrder,
            "sort", RecordCases::sort);

    private RecordCases() {
    }

    /** What the class says of every key that it has. */
    private static List<JsonNode> serviceConfiguration(ObjectNode theCase) throws ReflectiveOperationException {
        ServiceConfiguration defaults = new ServiceConfiguration();
        ObjectNode answer = Json.object();
        for (Field field : ServiceConfiguration.class.getDeclaredFields()) {
            FieldContext context = field.getAnnotation(FieldContext.class);
            if (context != null) {
                ObjectNode key = answer.putObject(field.getName());
                key.set("default", plain(Fields.get(defaults, field.getName())));
                key.put("dynamic", context.dynamic());
                key.put("type", field.getGenericType().getTypeName().replaceAll("java\\.(lang|util)\\.", ""));
                if (context.deprecated() || field.isAnnotationPresent(Deprecated.class)) {
                    key.put("deprecated", true);
                }
            }
        }
        return List.of(answer);
    }

    private static JsonNode plain(Object value) {
        if (value instanceof Optional<?> optional) {
            return plain(optional.orElse(null));
        }
        boolean hasForm = value == null || value instanceof Number || value instanceof Boolean
                || value instanceof Collection;
        return Json.MAPPER.valueToTree(hasForm ? value : value.toString());
    }

    private static List<JsonNode> localBrokerData(ObjectNode theCase) throws Exception {
        LocalBrokerData data = ModularCases.localBrokerData(theCase.at("/brokers/b"));
        ObjectNode answer = Json.object();
        answer.put("maxResourceUsage", data.getMaxResourceUsage());
        answer.put("weighted", weighted(data, Json.configuration(theCase.path("config"))));
        answer.put("print", data.printResourceUsage());
        return List.of(answer);
    }

    /** The weighted maximum; up to 2.11 the heap counts too. */
    private static double weighted(LocalBrokerData data, ServiceConfiguration conf) throws ReflectiveOperationException {
        double cpu = conf.getLoadBalancerCPUResourceWeight();
        double direct = conf.getLoadBalancerDirectMemoryResourceWeight();
        double in = weight(conf, "In");
        double out = weight(conf, "Out");
        try {
            return (double) LocalBrokerData.class
                    .getMethod("getMaxResourceUsageWithWeight", double.class, double.class, double.class, double.class)
                    .invoke(data, cpu, direct, in, out);
        } catch (NoSuchMethodException heapCounts) {
            return (double) LocalBrokerData.class
                    .getMethod("getMaxResourceUsageWithWeight", double.class, double.class, double.class,
                            double.class, double.class)
                    .invoke(data, cpu, conf.getLoadBalancerMemoryResourceWeight(), direct, in, out);
        }
    }

    private static double weight(ServiceConfiguration conf, String direction) throws ReflectiveOperationException {
        try {
            return (double) ServiceConfiguration.class
                    .getMethod("getLoadBalancerBandwidth" + direction + "ResourceWeight").invoke(conf);
        } catch (NoSuchMethodException onlyMisspelt) {
            return (double) ServiceConfiguration.class
                    .getMethod("getLoadBalancerBandwith" + direction + "ResourceWeight").invoke(conf);
        }
    }

    private static List<JsonNode> timeAverageMessageData(ObjectNode theCase) {
        TimeAverageMessageData data = new TimeAverageMessageData(theCase.get("maxSamples").asInt());
        ObjectNode answer = Json.object();
        ArrayNode rows = answer.putArray("averages");
        for (JsonNode sample : theCase.get("samples")) {
            data.update(Json.number(sample.get(0)), Json.number(sample.get(1)), Json.number(sample.get(2)),
                    Json.number(sample.get(3)));
            rows.addArray().add(data.getMsgThroughputIn()).add(data.getMsgThroughputOut()).add(data.getMsgRateIn())
                    .add(data.getMsgRateOut()).add(data.getNumSamples());
        }
        return List.of(answer);
    }

    private static List<JsonNode> timeAverageBrokerData(ObjectNode theCase) {
        Map<String, BundleData> bundles = new HashMap<>();
        Json.entries(theCase.path("bundleData")).forEach((name, record) ->
                bundles.put(name, ModularCases.bundleData(record)));
        TimeAverageBrokerData data = new TimeAverageBrokerData();
        // A broker's bundles come in the order of the statistics it published.
        data.reset(new LinkedHashSet<>(Json.texts(theCase.get("ownedBundles"))), bundles,
                ModularCases.stats(theCase.path("defaultStats")));
        return List.of(Json.MAPPER.<ObjectNode>valueToTree(data));
    }

    private static List<JsonNode> compareStats(ObjectNode theCase) {
        NamespaceBundleStats one = ModularCases.stats(theCase.get("a"));
        NamespaceBundleStats other = ModularCases.stats(theCase.get("b"));
        return List.of(Json.object()
                .put("compareTo", one.compareTo(other))
                .put("byMsgRate", one.compareByMsgRate(other))
                .put("byTopicConnections", one.compareByTopicConnections(other))
                .put("byCacheSize", one.compareByCacheSize(other))
                .put("byBandwidthIn", one.compareByBandwidthIn(other))
                .put("byBandwidthOut", one.compareByBandwidthOut(other)));
    }

    private static List<JsonNode> mapOrder(ObjectNode theCase) {
        Map<String, Boolean> concurrent = new ConcurrentHashMap<>();
        Json.texts(theCase.get("keys")).forEach(key -> concurrent.put(key, true));
        Map<String, Boolean> plain = new HashMap<>();
        concurrent.forEach(plain::put);
        ObjectNode answer = Json.object();
        answer.set("chm", Json.list(concurrent.keySet()));
        answer.set("hm", Json.list(plain.keySet()));
        return List.of(answer);
    }

    /** Positions of figures that count as equal up to a distance, and how often two were compared. */
    private static List<JsonNode> sort(ObjectNode theCase) {
        JsonNode figures = theCase.get("figures");
        int tolerance = theCase.get("tolerance").asInt();
        AtomicInteger comparisons = new AtomicInteger();
        List<Integer> positions = new ArrayList<>();
        for (int position = 0; position < figures.size(); position++) {
            positions.add(position);
        }
        positions.sort((one, other) -> {
            comparisons.incrementAndGet();
            int apart = figures.get(one).asInt() - figures.get(other).asInt();
            return Math.abs(apart) <= tolerance ? 0 : apart;
        });
        ObjectNode answer = Json.object().put("comparisons", comparisons.get());
        answer.set("sorted", Json.MAPPER.valueToTree(positions));
        return List.of(answer);
    }
}
