import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;

/**
 * A steady load on ranges of scalable topics' key hashes, consumed once, until its standard input ends.
 *
 * <p>Arguments: the service URL, then for each stream {@code topic start end messages-per-second bytes}, with start and
 * end as four hexadecimal digits. Prints "ready" once every stream has sent its first messages.
 */
public final class ScalableLoad {
    private static final int TICKS_PER_S = 10;
    private static final int KEYS = 64;

    public static void main(String[] arguments) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            List<Thread> streams = new ArrayList<>();
            for (int at = 1; at < arguments.length; at += 5) {
                String topic = arguments[at];
                List<String> keys = keys(hexadecimal(arguments[at + 1]), hexadecimal(arguments[at + 2]));
                int each = Math.max(1, Integer.parseInt(arguments[at + 3]) / TICKS_PER_S);
                byte[] message = new byte[Integer.parseInt(arguments[at + 4])];
                StreamConsumer<byte[]> consumer = client.newStreamConsumer(Schema.bytes()).topic(topic)
                        .subscriptionName("load").subscriptionInitialPosition(SubscriptionInitialPosition.LATEST)
                        .subscribe();
                started(() -> consume(consumer));
                Producer<byte[]> producer = client.newProducer(Schema.bytes()).topic(topic).create();
                send(producer, keys, message, each, 0);
                streams.add(started(() -> sendForever(producer, keys, message, each)));
            }
            System.out.println("ready");
            while (System.in.read() >= 0) {
                // Whoever started this closes its end, or dies.
            }
            System.exit(0);
        }
    }

    private static Thread started(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static int hexadecimal(String text) {
        return Integer.parseInt(text, 16);
    }

    /** Keys whose hash, as the client routes by it (SegmentRouter, 5.0.1), is in the range. */
    private static List<String> keys(int start, int end) {
        List<String> found = new ArrayList<>();
        for (int number = 0; found.size() < KEYS; number++) {
            String key = "key-" + number;
            int murmur = ScalableTopicHashing.murmur(key.getBytes(StandardCharsets.UTF_8));
            int hash = ScalableTopicHashing.segmentHash(murmur);
            if (start <= hash && hash <= end) {
                found.add(key);
            }
        }
        return found;
    }

    private static void sendForever(Producer<byte[]> producer, List<String> keys, byte[] message, int each) {
        long next = System.nanoTime();
        for (int sent = 0; ; sent += each) {
            next += Duration.ofSeconds(1).toNanos() / TICKS_PER_S;
            send(producer, keys, message, each, sent);
            try {
                Thread.sleep(Math.max(0, (next - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException interrupted) {
                return;
            }
        }
    }

    private static void send(Producer<byte[]> producer, List<String> keys, byte[] message, int each, int sent) {
        for (int number = sent; number < sent + each; number++) {
            producer.async().newMessage().key(keys.get(Math.floorMod(number, keys.size()))).value(message).send()
                    .exceptionally(error -> {
                        System.err.println(error);
                        return null;
                    });
        }
    }

    private static void consume(StreamConsumer<byte[]> consumer) {
        while (true) {
            try {
                Message<byte[]> message = consumer.receive();
                consumer.acknowledgeCumulative(message.id());
            } catch (Exception error) {
                System.err.println(error);
            }
        }
    }
}
