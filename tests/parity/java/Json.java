import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.broker.ServiceConfiguration;

/** Reads the vector format: figures, names, settings, and the state of a case at each of its steps. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();
    private static final List<String> ONLY_ONCE = List.of("counter", "activeBrokers", "emptyLoadData");

    private Json() {
    }

    /** A figure; 0 if it is missing. Values JSON has no number for are written as text ("NaN"). */
    static double number(JsonNode record, String key) {
        JsonNode value = record.path(key);
        return value.isTextual() ? Double.parseDouble(value.asText()) : value.asDouble();
    }

    static double number(JsonNode value) {
        return value.isTextual() ? Double.parseDouble(value.asText()) : value.asDouble();
    }

    /** The entries of an object in the order of their keys; none if it is missing. */
    static Map<String, JsonNode> entries(JsonNode object) {
        Map<String, JsonNode> entries = new LinkedHashMap<>();
        object.fields().forEachRemaining(entry -> entries.put(entry.getKey(), entry.getValue()));
        return entries;
    }

    /** The texts of a list; none if it is missing. */
    static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    static ArrayNode list(Iterable<String> texts) {
        ArrayNode list = MAPPER.createArrayNode();
        texts.forEach(list::add);
        return list;
    }

    static ObjectNode numbers(Map<String, ? extends Number> figures) {
        ObjectNode object = MAPPER.createObjectNode();
        figures.forEach((name, figure) -> object.set(name, MAPPER.valueToTree(figure)));
        return object;
    }

    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static ArrayNode array() {
        return MAPPER.createArrayNode();
    }

    /** The case as it stands at each step: a step's entries replace those they name, null removes one. */
    static List<ObjectNode> moments(ObjectNode theCase) {
        List<ObjectNode> moments = new ArrayList<>();
        ObjectNode state = theCase.deepCopy();
        if (!theCase.has("steps")) {
            moments.add(state);
            return moments;
        }
        for (JsonNode step : theCase.get("steps")) {
            for (Map.Entry<String, JsonNode> change : entries(step).entrySet()) {
                JsonNode old = state.get(change.getKey());
                if (old != null && old.isObject() && change.getValue().isObject()) {
                    ObjectNode merged = old.deepCopy();
                    merged.setAll((ObjectNode) change.getValue());
                    for (Iterator<JsonNode> values = merged.elements(); values.hasNext();) {
                        if (values.next().isNull()) {
                            values.remove();
                        }
                    }
                    state.set(change.getKey(), merged);
                } else {
                    state.set(change.getKey(), change.getValue());
                }
            }
            moments.add(state.deepCopy());
            state.remove(ONLY_ONCE);
        }
        return moments;
    }

    /** The settings of a broker whose configuration file says this; like a broker, ignores what it doesn't know. */
    static ServiceConfiguration configuration(JsonNode config) throws IllegalAccessException {
        ServiceConfiguration configuration = new ServiceConfiguration();
        for (Map.Entry<String, JsonNode> setting : entries(config).entrySet()) {
            if (Fields.exists(configuration, setting.getKey())) {
                Fields.set(configuration, setting.getKey(), setting.getValue());
            }
        }
        return configuration;
    }
}
