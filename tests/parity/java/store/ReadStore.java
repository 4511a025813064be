import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.pulsar.metadata.api.GetResult;
import org.apache.pulsar.metadata.api.MetadataStore;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.MetadataStoreFactory;
import org.apache.pulsar.metadata.api.Option;

/** Reads paths, one a line (with a partition key after a tab), from the store at a URL with Pulsar's own client. */
public final class ReadStore {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        MetadataStoreConfig config = MetadataStoreConfig.builder().build();
        try (MetadataStore store = MetadataStoreFactory.create(arguments[0], config)) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] parts = line.split("\t");
                Set<Option> options = parts.length == 1 ? Set.of() : Set.of(new Option.PartitionKey(parts[1]));
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("path", parts[0]);
                answer.put("children", store.getChildren(parts[0]).get());
                Optional<GetResult> found = store.get(parts[0], options).get();
                found.ifPresent(record -> {
                    answer.put("value", Base64.getEncoder().encodeToString(record.getValue()));
                    answer.put("created", record.getStat().getCreationTimestamp());
                    answer.put("modified", record.getStat().getModificationTimestamp());
                });
                System.out.println(json.writeValueAsString(answer));
            }
        }
    }

    private ReadStore() {
    }
}
