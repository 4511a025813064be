import java.time.Duration;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * Publishes to scalable topics at given rates, with random keys, and consumes everything once.
 *
 * <p>Arguments: service URL, bytes of a message, and TOPIC=RATE for each topic, in messages/s. Each further line of
 * standard input, TOPIC=RATE too, changes a rate; its end ends the program. Prints `publishing` once all are connected.
 */
public final class ScalableLoad {
    private static final int TICKS_PER_S = 50;
    private static final int KEYS = 100_000;

    private ScalableLoad() {}

    public static void main(String[] arguments) throws Exception {
        byte[] payload = new byte[Integer.parseInt(arguments[1])];
        Map<String, Double> rates = new ConcurrentHashMap<>();
        for (int i = 2; i < arguments.length; i++) {
            change(rates, arguments[i]);
        }
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        Map<String, Producer<byte[]>> producers = new TreeMap<>();
        for (String topic : rates.keySet()) {
            QueueConsumer<byte[]> consumer =
                    client.newQueueConsumer(Schema.bytes()).topic(topic).subscriptionName("load").subscribe();
            Thread consuming = new Thread(() -> consume(consumer));
            consuming.setDaemon(true);
            consuming.start();
            producers.put(topic, client.newProducer(Schema.bytes()).topic(topic).create());
        }
        Thread publishing = new Thread(() -> publish(producers, rates, payload));
        publishing.setDaemon(true);
        publishing.start();
        System.out.println("publishing");
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            change(rates, lines.nextLine());
        }
        Runtime.getRuntime().halt(0);
    }

    private static void change(Map<String, Double> rates, String change) {
        int equals = change.lastIndexOf('=');
        rates.put(change.substring(0, equals), Double.valueOf(change.substring(equals + 1)));
    }

    private static void publish(Map<String, Producer<byte[]>> producers, Map<String, Double> rates, byte[] payload) {
        Map<String, Double> due = new TreeMap<>();
        long next = System.nanoTime();
        while (true) {
            producers.forEach((topic, producer) -> {
                double messages = due.getOrDefault(topic, 0.0) + rates.get(topic) / TICKS_PER_S;
                for (; messages >= 1; messages--) {
                    String key = Integer.toString(ThreadLocalRandom.current().nextInt(KEYS));
                    producer.async().newMessage().key(key).value(payload).send();
                }
                due.put(topic, messages);
            });
            next = Math.max(next + 1_000_000_000L / TICKS_PER_S, System.nanoTime());
            try {
                Thread.sleep(Duration.ofNanos(Math.max(0, next - System.nanoTime())).toMillis());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private static void consume(QueueConsumer<byte[]> consumer) {
        while (true) {
            try {
                consumer.acknowledge(consumer.receive().id());
            } catch (Exception e) {
                System.err.println(e);
                return;
            }
        }
    }
}
