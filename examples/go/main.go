// go-redis: limits, a lease and time-outs.
//
//	limits [URL [PROTOCOL [SILENT_URL]]]
//
// Nobody answers at SILENT_URL.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Without an answer: let it pass, or turn it away.
const (
	open   = 200
	closed = 503
)

func connect(url, protocol string, read time.Duration) *redis.Client {
	options, err := redis.ParseURL(url)
	must(err == nil, err)
	options.Protocol, err = strconv.Atoi(protocol)
	must(err == nil, err)
	options.MaxRetries = -1 // the lost call may have been counted
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = patience, read, patience
	return redis.NewClient(options)
}

const (
	patience = 80 * time.Millisecond
	longest  = 2 * time.Second // how long a caller may wait for a lease
)

func headers(name string, window int, five []int64) map[string]string {
	wait := five[4]
	if five[0] == 1 {
		wait = five[3]
	} else if five[2] == 0 { // until the next request fits; a period admits as many as the limit
		wait -= (five[1] - 1) * int64(window) * 1000 / five[1]
	}
	seconds := (wait + 999) / 1000
	fields := map[string]string{
		"RateLimit-Policy": fmt.Sprintf(`"%s";q=%d;w=%d`, name, five[1], window),
		"RateLimit":        fmt.Sprintf(`"%s";r=%d;t=%d`, name, five[2], seconds),
	}
	if five[0] == 1 && five[3] >= 0 { // at −1 no wait helps
		fields["Retry-After"] = strconv.FormatInt(seconds, 10)
	}
	return fields
}

type limits struct {
	redis      *redis.Client
	waiting    *redis.Client // for calls that wait in the server: a longer time-out, and connections of their own
	unanswered int64         // set an alert on it
}

// check returns the status and the headers for a request: three a minute, and all three may come at once.
func (l *limits) check(ctx context.Context, user string, withoutAnswer int) (int, map[string]string) {
	reply, err := l.redis.Do(ctx, "RL.GCRA", "user:"+user, 2, 3, "1m").Int64Slice()
	if err != nil {
		if rejected := redis.Error(nil); errors.As(err, &rejected) { // an error reply, so perhaps a wrong call
			log.Println("limits: ERROR REPLY:", rejected)
		}
		atomic.AddInt64(&l.unanswered, 1)
		return withoutAnswer, nil
	}
	status := map[int64]int{0: 200, 1: 429}[reply[0]]
	return status, headers("user", 60, reply)
}

// plan is two a minute and 100 a day: whether both admit, and the answer of each.
func (l *limits) plan(ctx context.Context, user string) (bool, []any, error) {
	reply, err := l.redis.Do(ctx, "RL.MULTI", 1, "plan:"+user,
		"LIMIT", "SLIDINGWINDOW", 2, "1m", "LIMIT", "SLIDINGWINDOW", 100, "1d").Slice()
	if err != nil {
		return false, nil, err
	}
	return reply[0].([]any)[0].(int64) == 0, reply[1].([]any), nil
}

// withLease works if there is room, for which it may wait, and says whether. No answer is an error: then the work is not
// begun.
func (l *limits) withLease(ctx context.Context, key string, capacity, ttl int, wait time.Duration, work func()) (bool, error) {
	id := unique()
	// Also if the answer was lost, or the caller has gone; without a release the lease ends by itself.
	defer l.redis.Do(context.Background(), "RL.RELEASE", key, id)
	client, command := l.redis, []any{"RL.CONCURRENT", key, capacity, fmt.Sprintf("%dms", ttl), id}
	if wait > 0 {
		client, command = l.waiting, append(command, "BLOCK", fmt.Sprintf("%dms", wait.Milliseconds()))
	}
	reply, err := client.Do(ctx, command...).Int64Slice()
	if err != nil || reply[0] == 1 {
		return false, err
	}
	work()
	return true, nil
}

func main() {
	arguments := []string{"redis://127.0.0.1:6379", "3", "redis://127.0.0.1:1"}
	copy(arguments, os.Args[1:])
	ctx, user := context.Background(), unique() // fresh keys for each run
	l := &limits{
		redis:   connect(arguments[0], arguments[1], patience),
		waiting: connect(arguments[0], arguments[1], longest+time.Second),
	}

	for call, wanted := range []int{200, 200, 200, 429} {
		status, fields := l.check(ctx, user, open)
		left := []int{2, 1, 0, 0}[call]
		must(status == wanted && fields["RateLimit"][:10] == fmt.Sprintf(`"user";r=%d`, left), status, fields)
		wait, _ := strconv.Atoi(fields["Retry-After"])
		must((status == 429) == (wait >= 1 && wait <= 20), fields)
		if status == 429 {
			fmt.Println("1 check:", status, fields)
		}
	}

	db, second := "db:"+user, true
	nothing := func() {}
	first, err := l.withLease(ctx, db, 1, 30000, 0, func() { second, _ = l.withLease(ctx, db, 1, 30000, 0, nothing) })
	must(err == nil && first && !second, err, first, second)
	third, err := l.withLease(ctx, db, 1, 30000, 0, nothing)
	must(err == nil && third, err, third)
	waited := false // the first one ends after 300 ms
	_, err = l.withLease(ctx, db, 1, 300, 0, func() { waited, _ = l.withLease(ctx, db, 1, 30000, longest, nothing) })
	must(err == nil && waited, err, waited)
	fmt.Println("2 lease: taken, refused, released, taken, waited for")

	for _, wanted := range []bool{true, true, false} {
		admitted, each, err := l.plan(ctx, user)
		must(err == nil && admitted == wanted, err, each)
		minute, day := each[0].([]any), each[1].([]any)
		must(admitted || minute[0] == int64(1) && day[0] == int64(0) && day[2] == int64(98), each)
	}
	fmt.Println("3 plan: refused by the minute, 98 left of the day")

	start, down := time.Now(), &limits{redis: connect(arguments[2], arguments[1], patience)}
	passed, _ := down.check(ctx, user, open)
	shut, _ := down.check(ctx, user, closed)
	must(passed == 200 && shut == 503 && time.Since(start) < time.Second, passed, shut, time.Since(start))
	must(l.unanswered == 0 && down.unanswered == 2, l.unanswered, down.unanswered)
	fmt.Println("4 no answer: open 200, closed 503, 2 counted")
}

func unique() string {
	id := make([]byte, 16)
	_, err := rand.Read(id)
	must(err == nil, err)
	return fmt.Sprintf("%x", id)
}

func must(right bool, got ...any) {
	if !right {
		log.Fatal(got...)
	}
}
