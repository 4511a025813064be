import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.benmanes.caffeine.cache.AsyncLoadingCache;
import com.google.common.collect.BoundType;
import com.google.common.collect.Range;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.commons.lang3.tuple.Pair;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.common.naming.BundleSplitOption;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.SpecifiedPositionsBundleSplitAlgorithm;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.BundlesData;
import org.apache.pulsar.common.policies.data.PoliciesUtil;
import org.apache.pulsar.common.policies.data.stats.TopicStatsImpl;

/** Cases of bundle ranges, of the split algorithms and of the Modular manager's BundleSplitterTask. */
final class SplitCases {
    static final Map<String, ReplayCases.Replay> REPLAYS = Map.of(
            "split.algorithm", SplitCases::algorithm,
            "split.splitBundles", SplitCases::splitBundles,
            "split.hash", SplitCases::hash,
            "split.BundleSplitterTask", SplitCases::bundleSplitterTask);

    private SplitCases() {
    }

    static NamespaceBundle bundle(String namespace, long lower, long upper) {
        BoundType end = upper == NamespaceBundles.FULL_UPPER_BOUND ? BoundType.CLOSED : BoundType.OPEN;
        return Services.BUNDLES.getBundle(NamespaceName.get(namespace),
                Range.range(lower, BoundType.CLOSED, upper, end));
    }

    private static ObjectNode illegalArgument() {
        return Json.object().put("result", "IllegalArgument");
    }

    private static List<JsonNode> algorithm(ObjectNode theCase) throws Exception {
        Services.configuration = Json.configuration(theCase.path("config"));
        Services.topics = Json.texts(theCase.path("topics"));
        NamespaceBundle bundle = bundle(theCase.path("namespace").asText("tenant/ns"),
                Long.decode(theCase.get("lower").asText()), Long.decode(theCase.get("upper").asText()));
        String name = theCase.get("algorithm").asText();
        NamespaceBundleSplitAlgorithm algorithm = theCase.path("force").asBoolean()
                ? SpecifiedPositionsBundleSplitAlgorithm.class.getConstructor(boolean.class).newInstance(true)
                : NamespaceBundleSplitAlgorithm.of(name);
        if (algorithm == null) {
            throw new Absent(name);
        }
        try {
            List<Long> boundaries = algorithm.getSplitBoundary(option(theCase, name, bundle)).get();
            return List.of(Json.object().set("boundaries", Json.MAPPER.valueToTree(boundaries)));
        } catch (IllegalArgumentException refused) {
            return List.of(illegalArgument());
        }
    }

    private static BundleSplitOption option(ObjectNode theCase, String name, NamespaceBundle bundle) throws Exception {
        List<Long> positions = theCase.path("positions").isArray() ? new ArrayList<>() : null;
        theCase.path("positions").forEach(position -> positions.add(position.asLong()));
        if (!name.equals("flow_or_qps_equally_divide")) {
            return new BundleSplitOption(Services.NAMESPACES, bundle, positions);
        }
        Map<String, TopicStatsImpl> loaded = new HashMap<>();
        Json.entries(theCase.path("topicStats")).forEach((topic, record) -> loaded.put(topic, topicStats(record)));
        return (BundleSplitOption) Class.forName("org.apache.pulsar.common.naming.FlowOrQpsEquallyDivideBundleSplitOption")
                .getConstructor(NamespaceService.class, NamespaceBundle.class, List.class, Map.class, int.class,
                        int.class, int.class)
                .newInstance(Services.NAMESPACES, bundle, positions, loaded,
                        Services.configuration.getLoadBalancerNamespaceBundleMaxMsgRate(),
                        Services.configuration.getLoadBalancerNamespaceBundleMaxBandwidthMbytes(),
                        Fields.get(Services.configuration, "flowOrQpsDifferenceThresholdPercentage"));
    }

    private static TopicStatsImpl topicStats(JsonNode record) {
        TopicStatsImpl stats = new TopicStatsImpl();
        stats.msgRateIn = Json.number(record, "msgRateIn");
        stats.msgRateOut = Json.number(record, "msgRateOut");
        stats.msgThroughputIn = Json.number(record, "msgThroughputIn");
        stats.msgThroughputOut = Json.number(record, "msgThroughputOut");
        return stats;
    }

    private static List<JsonNode> splitBundles(ObjectNode theCase) throws Exception {
        NamespaceName namespace = NamespaceName.get("tenant/ns");
        List<String> boundaries = Json.texts(theCase.get("boundaries"));
        NamespaceBundles bundles = Services.BUNDLES.getBundles(namespace,
                BundlesData.builder().boundaries(boundaries).numBundles(boundaries.size() - 1).build());
        AsyncLoadingCache<NamespaceName, NamespaceBundles> cache = Fields.get(Services.BUNDLES, "bundlesCache");
        cache.put(namespace, CompletableFuture.completedFuture(bundles));
        List<Long> positions = new ArrayList<>();
        theCase.path("positions").forEach(position -> positions.add(position.asLong()));
        NamespaceBundle target = Services.BUNDLES.getBundle("tenant/ns", theCase.get("bundle").asText());
        try {
            Pair<NamespaceBundles, List<NamespaceBundle>> split = Services.BUNDLES
                    .splitBundles(target, theCase.path("numBundles").asInt(2), positions).get();
            if (split == null) {
                return List.of(Json.object().put("result", "NotFound"));
            }
            ObjectNode answer = Json.object();
            answer.set("boundaries", Json.list(split.getLeft().getBundlesData().getBoundaries()));
            answer.set("children", ranges(split.getRight()));
            return List.of(answer);
        } catch (IllegalArgumentException refused) {
            return List.of(illegalArgument());
        }
    }

    static ArrayNode ranges(Collection<NamespaceBundle> bundles) {
        ArrayNode ranges = Json.array();
        bundles.forEach(bundle -> ranges.add(bundle.getBundleRange()));
        return ranges;
    }

    /** The hash of a text; of a topic also its bundle among {@code numBundles} equal ones. */
    private static List<JsonNode> hash(ObjectNode theCase) {
        ObjectNode answer = Json.object();
        if (theCase.has("string")) {
            return List.of(answer.put("hash", Services.BUNDLES.getLongHashCode(theCase.get("string").asText())));
        }
        BundlesData equal = PoliciesUtil.getBundles(theCase.get("numBundles").asInt());
        answer.set("boundaries", Json.list(equal.getBoundaries()));
        if (theCase.has("topic")) {
            TopicName topic = TopicName.get(theCase.get("topic").asText());
            NamespaceBundle bundle = Services.BUNDLES.getBundles(topic.getNamespaceObject(), equal).findBundle(topic);
            answer.put("hash", Services.BUNDLES.getLongHashCode(topic.toString()));
            answer.put("bundle", bundle.getBundleRange());
        }
        return List.of(answer);
    }

    private static List<JsonNode> bundleSplitterTask(ObjectNode theCase) throws Exception {
        Services.configuration = Json.configuration(theCase.path("config"));
        Services.bundleCounts = new HashMap<>();
        Json.entries(theCase.path("bundleCounts")).forEach((namespace, count) ->
                Services.bundleCounts.put(namespace, count.asInt()));
        LoadData loadData = ModularCases.loadData(theCase);
        Object selected = BundleSplitterTask.class
                .getMethod("findBundlesToSplit", LoadData.class, PulsarService.class)
                .invoke(new BundleSplitterTask(), loadData, Services.PULSAR);
        ObjectNode answer = Json.object();
        ObjectNode owners = answer.putObject("selected");
        if (selected instanceof Map<?, ?> bundles) {
            bundles.forEach((bundle, broker) -> owners.put((String) bundle, (String) broker));
        } else {
            // Up to 2.11 the task tells the bundles only.
            ((Collection<?>) selected).forEach(bundle -> owners.putNull((String) bundle));
        }
        return List.of(answer);
    }
}
