import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.pulsar.broker.service.scalable.AutoScaleConfig;
import org.apache.pulsar.broker.service.scalable.AutoScaleDecision;
import org.apache.pulsar.broker.service.scalable.AutoScalePolicyEvaluator;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.broker.service.scalable.SegmentLoadSample;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentInfo;
import org.apache.pulsar.common.scalable.SegmentLoadStats;

/** Cases of scalable topics. */
final class ScalableCases {
    static final Map<String, ReplayCases.Replay> REPLAYS =
            Map.of("split.AutoScalePolicyEvaluator", ScalableCases::splits);

    private ScalableCases() {
    }

    /** Which segments a controller splits one after the other, if their parts have no load. */
    private static List<JsonNode> splits(ObjectNode theCase) throws IllegalAccessException {
        AutoScaleConfig config;
        try {
            config = AutoScaleConfig.resolve(Json.configuration(theCase.path("config")), null, null);
        } catch (IllegalArgumentException whichSwitchesItOff) {
            return List.of(Json.object().set("split", Json.array()));
        }
        Map<Long, SegmentInfo> segments = new HashMap<>();
        Map<Long, SegmentLoadSample> loads = new HashMap<>();
        for (JsonNode segment : theCase.get("segments")) {
            long id = segment.get("id").asLong();
            HashRange range = HashRange.of(segment.get("start").asInt(), segment.get("end").asInt());
            SegmentInfo active = SegmentInfo.active(id, range, List.of(), 0, 0);
            segments.put(id, segment.get("active").asBoolean() ? active : active.sealed(0, 0, List.of()));
            loads.put(id, new SegmentLoadSample(new SegmentLoadStats(
                    Json.number(segment, "msgRateIn"), Json.number(segment, "msgThroughputIn"),
                    Json.number(segment, "msgRateOut"), Json.number(segment, "msgThroughputOut")), 0));
        }
        SegmentLayout layout = new SegmentLayout(0, segments.size(), segments);
        Set<Long> split = new TreeSet<>();
        while (AutoScalePolicyEvaluator.decide(layout, loads, Map.of(), Set.of(), config, 0, Long.MIN_VALUE,
                Long.MIN_VALUE, Long.MIN_VALUE) instanceof AutoScaleDecision.Split decision) {
            split.add(decision.segmentId());
            layout = layout.splitSegment(decision.segmentId(), 0);
        }
        return List.of(Json.object().set("split", Json.MAPPER.valueToTree(split)));
    }
}
