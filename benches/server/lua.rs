//! The limiters that people run today: the scripts of seeds 000, 002 and 003 in our own words.
//!
//! They do the same reads and writes as the originals, and take the clock from where those take it: from the
//! client, but for GCRA. Those that can refuse reply 0 (admitted) or 1 (refused) first, as our commands do.

pub const EMPTY: &str = "return";

/// Seed 000. KEYS: tokens, time of the last call. ARGV: refill per second, capacity, now in s, cost.
pub const TOKEN_BUCKET: &str = r"
local refill, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, cost = tonumber(ARGV[3]), tonumber(ARGV[4])
local tokens = tonumber(redis.call('GET', KEYS[1]) or capacity)
local before = tonumber(redis.call('GET', KEYS[2]) or 0)
tokens = math.min(capacity, tokens + refill * math.max(0, now - before))
local refused = 1
if tokens >= cost then
    refused, tokens = 0, tokens - cost
end
local ttl = math.ceil(2 * capacity / refill)
redis.call('SETEX', KEYS[1], ttl, tokens)
redis.call('SETEX', KEYS[2], ttl, now)
return {refused, tokens}
";

/// Seed 000. KEYS: a sorted set of leases. ARGV: capacity, now in s, id. There, the client drops the ended leases with
/// a call of its own before this one (`ZREMRANGEBYSCORE`), which is not counted here.
pub const CONCURRENT: &str = r"
local held = redis.call('ZCARD', KEYS[1])
if held >= tonumber(ARGV[1]) then
    return {1, held}
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
return {0, held + 1}
";

/// Seed 002, its first form: books ahead and replies the wait. KEYS: arrival time. ARGV: interval in microseconds.
pub const GCRA: &str = r"
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local due = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now))
redis.call('SET', KEYS[1], due + ARGV[1])
return due - now
";

/// Seed 004. KEYS: a stream. ARGV: the most entries, field, value. Replies 1 (added) or 0.
pub const STREAM: &str = r"
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
    return 0
end
redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
return 1
";

/// Seed 003. KEYS: a hash. ARGV: windows as JSON, each `[seconds, limit, seconds of a bucket]`, now in s, cost.
pub const SLIDING_WINDOWS: &str = r"
local now, cost = tonumber(ARGV[2]), tonumber(ARGV[3])
local windows, longest = {}, 0
for _, limit in ipairs(cjson.decode(ARGV[1])) do
    local length = limit[1]
    local width = math.min(limit[3] or length, length)
    local buckets = math.ceil(length / width)
    local total = length .. ':' .. width .. ':'
    local newest = math.floor(now / width)
    local first = newest - buckets + 1
    local oldest = tonumber(redis.call('HGET', KEYS[1], total .. 'o') or first)
    if oldest > newest then
        return 1
    end

    local left, emptied = 0, {}
    for bucket = oldest, math.min(first, oldest + buckets) - 1 do
        local count = redis.call('HGET', KEYS[1], total .. bucket)
        if count then
            left = left + count
            emptied[#emptied + 1] = total .. bucket
        end
    end
    local count
    if left > 0 then
        redis.call('HDEL', KEYS[1], unpack(emptied))
        count = redis.call('HINCRBY', KEYS[1], total, -left)
    else
        count = redis.call('HGET', KEYS[1], total) or 0
    end
    if count + cost > limit[2] then
        return 1
    end
    windows[#windows + 1] = {total = total, first = first, bucket = total .. newest}
    longest = math.max(longest, length)
end

for _, window in ipairs(windows) do
    redis.call('HSET', KEYS[1], window.total .. 'o', window.first)
    redis.call('HINCRBY', KEYS[1], window.total, cost)
    redis.call('HINCRBY', KEYS[1], window.bucket, cost)
end
redis.call('EXPIRE', KEYS[1], longest)
return 0
";
