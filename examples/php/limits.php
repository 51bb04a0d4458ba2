<?php
// PhpRedis: limits, a lease and time-outs.
//
//     limits.php [URL [PROTOCOL [SILENT_URL]]]
//
// Nobody answers at SILENT_URL. PhpRedis knows RESP2 only.

declare(strict_types=1);

const OPEN = 200; // without an answer: let it pass
const CLOSED = 503; // or turn it away
const WAIT = 2000; // how long a caller may wait for a lease, in ms

function headers(string $name, int $window, array $reply): array
{
    [$limited, $limit, $remaining, $retryAfter, $resetAfter] = $reply;
    // If nothing remains: until the next request fits. A period admits as many as the limit.
    $next = $remaining ? $resetAfter : $resetAfter - intdiv(($limit - 1) * $window * 1000, $limit);
    $seconds = intdiv(($limited ? $retryAfter : $next) + 999, 1000);
    $fields = [
        'RateLimit-Policy' => "\"$name\";q=$limit;w=$window",
        'RateLimit' => "\"$name\";r=$remaining;t=$seconds",
    ];
    return $limited && $retryAfter >= 0 ? $fields + ['Retry-After' => (string) $seconds] : $fields;
}

final class Limits
{
    public int $unanswered = 0; // set an alert on it
    private ?Redis $redis = null;

    public function __construct(private string $url, private float $patience = 0.08)
    {
    }

    private function redis(): Redis
    {
        if ($this->redis === null) {
            $redis = new Redis();
            ['host' => $host, 'port' => $port] = parse_url($this->url);
            if (!@$redis->connect($host, $port, 0.08, null, 0, $this->patience)) {
                throw new RedisException('no connection');
            }
            $redis->setOption(Redis::OPT_MAX_RETRIES, 0); // the lost call may have been counted
            $this->redis = $redis;
        }
        return $this->redis;
    }

    private function call(string ...$command): array|int
    {
        try {
            $reply = $this->redis()->rawCommand(...$command);
        } catch (RedisException $lost) {
            $this->redis = null; // the late reply would be taken for the next call's
            throw $lost;
        }
        return $reply === false ? throw new RedisException($this->redis()->getLastError()) : $reply;
    }

    /** The status and the headers for a request: three a minute, and all three may come at once. */
    public function check(string $user, int $withoutAnswer = OPEN): array
    {
        try {
            $reply = $this->call('RL.GCRA', "user:$user", '2', '3', '1m');
        } catch (RedisException) {
            $this->unanswered++;
            return [$withoutAnswer, []];
        }
        return [$reply[0] ? 429 : 200, headers('user', 60, $reply)];
    }

    /** Two a minute and 100 a day: the answer of both together, and of each. */
    public function plan(string $user): array
    {
        $limits = ['LIMIT', 'SLIDINGWINDOW', '2', '1m', 'LIMIT', 'SLIDINGWINDOW', '100', '1d'];
        return $this->call('RL.MULTI', '1', "plan:$user", ...$limits);
    }

    /** Waits in the server, on a connection of its own: it would hold up all other calls, and its time-out is longer. */
    private function waitInLine(array $command, int $wait): array
    {
        $waiting = new self($this->url, $wait / 1000 + 1);
        return $waiting->call(...$command, ...['BLOCK', "{$wait}ms"]);
    }

    /**
     * Works if there is room, for which it waits up to so many ms, and says whether. No answer is an error: then the work
     * is not begun.
     */
    public function lease(string $key, int $capacity, int $ttl, callable $work, int $wait = 0): bool
    {
        $id = bin2hex(random_bytes(16));
        $command = ['RL.CONCURRENT', $key, (string) $capacity, "{$ttl}ms", $id];
        try {
            [$limited] = $wait ? $this->waitInLine($command, $wait) : $this->call(...$command);
            $limited || $work();
            return !$limited;
        } finally {
            try {
                $this->call('RL.RELEASE', $key, $id);
            } catch (RedisException) {
                // It ends by itself.
            }
        }
    }
}

function ensure(bool $right, mixed ...$got): void
{
    $right || throw new Error('got ' . json_encode($got));
}

$limits = new Limits($argv[1] ?? 'redis://127.0.0.1:6379');
$user = bin2hex(random_bytes(16)); // fresh keys for each run

foreach ([[200, 2], [200, 1], [200, 0], [429, 0]] as [$status, $left]) {
    [$got, $fields] = $limits->check($user);
    ensure($got === $status && str_starts_with($fields['RateLimit'], "\"user\";r=$left;"), $got, $fields);
    $wait = (int) ($fields['Retry-After'] ?? 0);
    ensure($status === 429 ? $wait >= 1 && $wait <= 20 : $wait === 0, $fields);
}
echo "1 check: $got ", json_encode($fields), "\n";

$second = null;
$first = $limits->lease("db:$user", 1, 30000, function () use ($limits, $user, &$second) {
    $second = $limits->lease("db:$user", 1, 30000, fn () => null);
});
$third = $limits->lease("db:$user", 1, 30000, fn () => null);
ensure([$first, $second, $third] === [true, false, true], $first, $second, $third);
$waited = null; // the first one ends after 300 ms
$limits->lease("db:$user", 1, 300, function () use ($limits, $user, &$waited) {
    $waited = $limits->lease("db:$user", 1, 30000, fn () => null, WAIT);
});
ensure($waited === true, $waited);
echo "2 lease: taken, refused, released, taken, waited for\n";

$plans = array_map(fn () => $limits->plan($user), range(1, 3));
ensure(array_map(fn ($plan) => $plan[0][0], $plans) === [0, 0, 1], $plans);
[[$minute], [$day, , $left]] = $plans[2][1];
ensure([$minute, $day, $left] === [1, 0, 98], $plans);
echo "3 plan: refused by the minute, 98 left of the day\n";

$start = hrtime(true);
$down = new Limits($argv[3] ?? 'redis://127.0.0.1:1');
ensure([$down->check($user), $down->check($user, CLOSED)] === [[200, []], [503, []]]);
ensure(hrtime(true) - $start < 1e9 && [$limits->unanswered, $down->unanswered] === [0, 2]);
echo "4 no answer: open 200, closed 503, 2 counted\n";
