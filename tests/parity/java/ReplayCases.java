import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs test cases on the real Pulsar classes of the class path.
 *
 * <p>Reads one case in the vector format per line and writes one line for it: {@code answers}, one per step; or
 * {@code error}, what the strategy threw; or {@code absent}, why this release cannot run the case.
 */
public final class ReplayCases {
    /** What answers the cases of one strategy. */
    interface Replay {
        List<? extends JsonNode> answers(ObjectNode theCase) throws Exception;
    }

    private ReplayCases() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Map<String, Replay> replays = replays();
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            answers.println(answer((ObjectNode) Json.MAPPER.readTree(line), replays));
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Replay> replays() throws ReflectiveOperationException {
        Map<String, Replay> replays = new HashMap<>(ModularCases.REPLAYS);
        replays.putAll(RecordCases.REPLAYS);
        replays.putAll(SplitCases.REPLAYS);
        replays.putAll(SimpleCases.REPLAYS);
        for (String newer : List.of("ExtensibleCases", "ScalableCases")) {
            try {
                replays.putAll((Map<String, Replay>) Class.forName(newer).getDeclaredField("REPLAYS").get(null));
            } catch (ClassNotFoundException olderRelease) {
                break;
            }
        }
        return replays;
    }

    private static JsonNode answer(ObjectNode theCase, Map<String, Replay> replays) {
        ObjectNode line = Json.object();
        line.set("id", theCase.get("id"));
        String strategy = theCase.path("strategy").asText();
        Replay replay = replays.get(strategy);
        if (replay == null) {
            return line.put("absent", "this release has no " + strategy);
        }
        try {
            line.set("answers", Json.MAPPER.valueToTree(replay.answers(theCase)));
        } catch (Absent | ClassNotFoundException | NoSuchMethodException absent) {
            line.put("absent", "this release has no " + absent.getMessage());
        } catch (Exception | LinkageError thrown) {
            line.put("error", thrown.toString());
        }
        return line;
    }
}
