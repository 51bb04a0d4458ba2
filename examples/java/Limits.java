// Jedis: limits, a lease and time-outs.
//
//     Limits [URL [PROTOCOL [SILENT_URL]]]
//
// Nobody answers at SILENT_URL.

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.JedisURIHelper;

public final class Limits {
    static final int OPEN = 200; // without an answer: let it pass
    static final int CLOSED = 503; // or turn it away
    static final int WAIT = 2000; // how long a caller may wait for a lease, in ms

    record Answer(int status, Map<String, String> headers) {}

    final JedisPooled redis;
    final JedisPooled waiting; // for calls that wait in the server: a longer time-out, and connections of their own
    final AtomicLong unanswered = new AtomicLong(); // set an alert on it

    Limits(String url, String protocol) {
        redis = connect(url, protocol, 80);
        waiting = connect(url, protocol, WAIT + 1000);
    }

    private static JedisPooled connect(String url, String protocol, int socketTimeout) {
        var patience = DefaultJedisClientConfig.builder().connectionTimeoutMillis(80).socketTimeoutMillis(socketTimeout);
        patience.protocol(protocol.equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2);
        return new JedisPooled(JedisURIHelper.getHostAndPort(URI.create(url)), patience.build());
    }

    private List<?> call(String name, String... arguments) {
        return (List<?>) redis.sendCommand(command(name), arguments);
    }

    private static ProtocolCommand command(String name) {
        return name::getBytes;
    }

    static Map<String, String> headers(String name, int window, List<Long> five) {
        boolean limited = five.get(0) == 1;
        long wait = limited ? five.get(3) : five.get(4);
        // If nothing remains: until the next request fits. A period admits as many as the limit.
        if (!limited && five.get(2) == 0) wait -= (five.get(1) - 1) * window * 1000 / five.get(1);
        long seconds = (wait + 999) / 1000;
        var fields = new TreeMap<String, String>();
        fields.put("RateLimit-Policy", String.format("\"%s\";q=%d;w=%d", name, five.get(1), window));
        fields.put("RateLimit", String.format("\"%s\";r=%d;t=%d", name, five.get(2), seconds));
        if (limited && wait >= 0) fields.put("Retry-After", Long.toString(seconds)); // at −1 no wait helps
        return fields;
    }

    /** The status and the headers for a request: three a minute, and all three may come at once. */
    @SuppressWarnings("unchecked")
    Answer check(String user, int withoutAnswer) {
        try {
            var reply = (List<Long>) call("RL.GCRA", "user:" + user, "2", "3", "1m");
            return new Answer(reply.get(0) == 1 ? 429 : 200, headers("user", 60, reply));
        } catch (JedisException e) {
            unanswered.incrementAndGet();
            return new Answer(withoutAnswer, Map.of());
        }
    }

    /** Two a minute and 100 a day: the answer of both together, and of each. */
    @SuppressWarnings("unchecked")
    List<List<?>> plan(String user) {
        return (List<List<?>>) call("RL.MULTI", "1", "plan:" + user,
            "LIMIT", "SLIDINGWINDOW", "2", "1m", "LIMIT", "SLIDINGWINDOW", "100", "1d");
    }

    /** Works if there is room, for which it may wait, and says whether. No answer is an error: then the work is not begun. */
    boolean lease(String key, int capacity, int ttl, int wait, Runnable work) {
        var id = UUID.randomUUID().toString();
        try {
            var concurrent = command("RL.CONCURRENT");
            var reply = (List<?>) (wait == 0
                ? redis.sendCommand(concurrent, key, "" + capacity, ttl + "ms", id)
                : waiting.sendCommand(concurrent, key, "" + capacity, ttl + "ms", id, "BLOCK", wait + "ms"));
            boolean admitted = reply.get(0).equals(0L);
            if (admitted) work.run();
            return admitted;
        } finally {
            try {
                redis.sendCommand(command("RL.RELEASE"), key, id);
            } catch (JedisException e) {
                // It ends by itself.
            }
        }
    }

    static void ensure(boolean right, Object got) {
        if (!right) throw new AssertionError("got " + got);
    }

    public static void main(String[] arguments) {
        var url = arguments.length > 0 ? arguments[0] : "redis://127.0.0.1:6379";
        var protocol = arguments.length > 1 ? arguments[1] : "3";
        var limits = new Limits(url, protocol);
        var user = UUID.randomUUID().toString(); // fresh keys for each run

        for (int call = 0; call < 4; call++) {
            var answer = limits.check(user, OPEN);
            var left = List.of("r=2;", "r=1;", "r=0;", "r=0;").get(call);
            ensure(answer.status() == (call < 3 ? 200 : 429), answer);
            ensure(answer.headers().get("RateLimit").contains(left), answer);
            int wait = Integer.parseInt(answer.headers().getOrDefault("Retry-After", "0"));
            ensure(call < 3 ? wait == 0 : wait >= 1 && wait <= 20, answer);
            if (call == 3) System.out.println("1 check: " + answer);
        }

        var db = "db:" + user;
        boolean first = limits.lease(db, 1, 30000, 0, () -> ensure(!limits.lease(db, 1, 30000, 0, () -> {}), "a second"));
        ensure(first && limits.lease(db, 1, 30000, 0, () -> {}), "no lease");
        // The first one ends after 300 ms.
        limits.lease(db, 1, 300, 0, () -> ensure(limits.lease(db, 1, 30000, WAIT, () -> {}), "no lease after a wait"));
        System.out.println("2 lease: taken, refused, released, taken, waited for");

        ensure(limits.plan(user).get(0).get(0).equals(0L) && limits.plan(user).get(0).get(0).equals(0L), "refused");
        var refused = limits.plan(user);
        List<?> minute = (List<?>) refused.get(1).get(0), day = (List<?>) refused.get(1).get(1);
        ensure(refused.get(0).get(0).equals(1L) && minute.get(0).equals(1L), refused);
        ensure(day.get(0).equals(0L) && day.get(2).equals(98L), refused);
        System.out.println("3 plan: refused by the minute, 98 left of the day");

        var down = new Limits(arguments.length > 2 ? arguments[2] : "redis://127.0.0.1:1", protocol);
        long start = System.nanoTime();
        var open = down.check(user, OPEN);
        var closed = down.check(user, CLOSED);
        ensure(open.status() == 200 && closed.status() == 503 && System.nanoTime() - start < 1_000_000_000L, closed);
        ensure(limits.unanswered.get() == 0 && down.unanswered.get() == 2, down.unanswered);
        System.out.println("4 no answer: open 200, closed 503, 2 counted");
    }
}
