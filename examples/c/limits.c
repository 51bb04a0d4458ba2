/* hiredis: limits, a lease and time-outs.
 *
 *     limits [URL [PROTOCOL [SILENT_URL]]]
 *
 * Nobody answers at SILENT_URL. RESP3 wants hiredis 1.0 or later. */

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

enum { OPEN = 200, CLOSED = 503 }; /* without an answer: let it pass, or turn it away */
enum { WAIT = 2000 }; /* how long a caller may wait for a lease, in ms */
static const struct timeval patience = {0, 80000};

struct limits {
    char host[64];
    int port, protocol, wait; /* wait: how long its calls may wait in the server, in ms */
    redisContext *redis;
    long unanswered; /* set an alert on it */
};

struct headers {
    char policy[64], limit[64], retry_after[32]; /* empty if it is not to be sent */
};

/* The reply, or NULL without an answer; then a new connection is wanted. */
static redisReply *call(struct limits *limits, const char *format, ...) {
    if (!limits->redis) {
        limits->redis = redisConnectWithTimeout(limits->host, limits->port, patience);
        if (limits->redis && !limits->redis->err) {
            redisSetTimeout(limits->redis, (struct timeval){limits->wait / 1000 + (limits->wait > 0), patience.tv_usec});
            if (limits->protocol == 3) freeReplyObject(redisCommand(limits->redis, "HELLO 3"));
        }
    }
    redisReply *reply = NULL;
    if (limits->redis && !limits->redis->err) {
        va_list arguments;
        va_start(arguments, format);
        reply = redisvCommand(limits->redis, format, arguments);
        va_end(arguments);
    }
    if (reply && reply->type != REDIS_REPLY_ERROR) return reply;
    freeReplyObject(reply);
    if (limits->redis) redisFree(limits->redis);
    limits->redis = NULL;
    return NULL;
}

static long long at(const redisReply *reply, size_t i) { return reply->element[i]->integer; }

static struct headers headers(const char *name, int window, const redisReply *five) {
    struct headers fields = {"", "", ""};
    long long wait = at(five, at(five, 0) ? 3 : 4), limit = at(five, 1);
    /* If nothing remains: until the next request fits. A period admits as many as the limit. */
    if (!at(five, 0) && !at(five, 2)) wait -= (limit - 1) * window * 1000 / limit;
    long long seconds = (wait + 999) / 1000;
    snprintf(fields.policy, sizeof fields.policy, "\"%s\";q=%lld;w=%d", name, at(five, 1), window);
    snprintf(fields.limit, sizeof fields.limit, "\"%s\";r=%lld;t=%lld", name, at(five, 2), seconds);
    if (at(five, 0) && wait >= 0) snprintf(fields.retry_after, sizeof fields.retry_after, "%lld", seconds);
    return fields;
}

/* The status and the headers for a request: three a minute, and all three may come at once. */
static int check(struct limits *limits, const char *user, int without_answer, struct headers *fields) {
    redisReply *reply = call(limits, "RL.GCRA user:%s 2 3 1m", user);
    if (!reply) {
        limits->unanswered++;
        return without_answer;
    }
    int status = at(reply, 0) ? 429 : 200;
    *fields = headers("user", 60, reply);
    freeReplyObject(reply);
    return status;
}

/* Works if there is room, for which it waits up to so many ms, and says whether. No answer is a no: then the work is not
 * begun. */
static int with_lease(struct limits *limits, const char *key, int capacity, int ttl, int wait, void (*work)(void)) {
    unsigned char id[16];
    if (getrandom(id, sizeof id, 0) != sizeof id) return 0;
    redisReply *reply;
    if (wait) {
        /* A connection of its own: it would hold up all other calls, and its time-out is longer. */
        struct limits waiting = *limits;
        waiting.redis = NULL;
        waiting.wait = wait;
        reply = call(&waiting, "RL.CONCURRENT %s %d %dms %b BLOCK %dms", key, capacity, ttl, id, sizeof id, wait);
        if (waiting.redis) redisFree(waiting.redis);
    } else {
        reply = call(limits, "RL.CONCURRENT %s %d %dms %b", key, capacity, ttl, id, sizeof id);
    }
    int admitted = reply && !at(reply, 0);
    freeReplyObject(reply);
    if (admitted) work();
    /* Also if the answer was lost. Without a release it ends by itself. */
    freeReplyObject(call(limits, "RL.RELEASE %s %b", key, id, sizeof id));
    return admitted;
}

static void ensure(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static struct limits limits = {"127.0.0.1", 6379, 2, 0, NULL, 0};
static char db[64];
static int second = -1, waited = -1;
static void nothing(void) {}
static void ask_again(void) { second = with_lease(&limits, db, 1, 30000, 0, nothing); }
static void wait_for_it(void) { waited = with_lease(&limits, db, 1, 30000, WAIT, nothing); }

int main(int argc, char **argv) {
    if (argc > 1) ensure(sscanf(argv[1], "redis://%63[^:]:%d", limits.host, &limits.port) == 2, "the URL");
    if (argc > 2) limits.protocol = atoi(argv[2]);
    struct limits down = {"127.0.0.1", 1, limits.protocol, 0, NULL, 0};
    if (argc > 3) ensure(sscanf(argv[3], "redis://%63[^:]:%d", down.host, &down.port) == 2, "the silent URL");
    char user[32];
    struct timespec start, end;
    clock_gettime(CLOCK_REALTIME, &start);
    snprintf(user, sizeof user, "%lld%09ld", (long long)start.tv_sec, start.tv_nsec); /* fresh keys for each run */

    struct headers fields;
    for (int i = 0; i < 4; i++) {
        ensure(check(&limits, user, OPEN, &fields) == (i < 3 ? 200 : 429), "the status");
        ensure(fields.limit[9] == "2100"[i], "what remains");
    }
    ensure(atoi(fields.retry_after) >= 1 && atoi(fields.retry_after) <= 20, "Retry-After");
    printf("1 check: 429 %s %s %s\n", fields.policy, fields.limit, fields.retry_after);

    snprintf(db, sizeof db, "db:%s", user);
    ensure(with_lease(&limits, db, 1, 30000, 0, ask_again) && !second, "the first lease, or the second");
    ensure(with_lease(&limits, db, 1, 30000, 0, nothing), "the third lease");
    ensure(with_lease(&limits, db, 1, 300, 0, wait_for_it) && waited, "the lease that was waited for"); /* 300 ms */
    printf("2 lease: taken, refused, released, taken, waited for\n");

    for (int i = 0; i < 3; i++) { /* two a minute and 100 a day */
        redisReply *reply = call(&limits,
            "RL.MULTI 1 plan:%s LIMIT SLIDINGWINDOW 2 1m LIMIT SLIDINGWINDOW 100 1d", user);
        ensure(reply && at(reply->element[0], 0) == (i == 2), "the plan");
        redisReply *minute = reply->element[1]->element[0], *day = reply->element[1]->element[1];
        ensure(i < 2 || (at(minute, 0) == 1 && at(day, 0) == 0 && at(day, 2) == 98), "which of them binds");
        freeReplyObject(reply);
    }
    printf("3 plan: refused by the minute, 98 left of the day\n");

    clock_gettime(CLOCK_REALTIME, &start);
    ensure(check(&down, user, OPEN, &fields) == 200 && check(&down, user, CLOSED, &fields) == 503, "no answer");
    clock_gettime(CLOCK_REALTIME, &end);
    ensure(end.tv_sec - start.tv_sec < 2 && !limits.unanswered && down.unanswered == 2, "the count");
    printf("4 no answer: open 200, closed 503, 2 counted\n");
    redisFree(limits.redis);
}
