//! redis-rs: limits, a lease and time-outs.
//!
//! `limits [URL [PROTOCOL [SILENT_URL]]]`; no server answers at SILENT_URL.

use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionLike, RedisResult, cmd};

const PATIENCE: Duration = Duration::from_millis(80);
const WAIT: Duration = Duration::from_secs(2); // how long a caller may wait for a lease
const OPEN: u16 = 200; // without an answer: let it pass
const CLOSED: u16 = 503; // or turn it away

type Five = (bool, i64, i64, i64, i64);
type Headers = Vec<(&'static str, String)>;

struct Limits {
    client: Client,
    redis: Option<Connection>,
    unanswered: u32, // set an alert on it
}

impl Limits {
    fn new(url: &str, protocol: &str) -> RedisResult<Self> {
        Ok(Self {
            client: Client::open(format!("{url}?protocol=resp{protocol}"))?,
            redis: None,
            unanswered: 0,
        })
    }

    /// The connection, a new one if it was lost.
    fn redis(&mut self) -> RedisResult<&mut Connection> {
        let redis = match self.redis.take().filter(ConnectionLike::is_open) {
            Some(redis) => redis,
            None => {
                let redis = self.client.get_connection_with_timeout(PATIENCE)?;
                redis.set_read_timeout(Some(PATIENCE))?;
                redis.set_write_timeout(Some(PATIENCE))?;
                redis
            }
        };
        Ok(self.redis.insert(redis))
    }

    /// The status and the headers for a request: three a minute, and all three may come at once.
    fn check(&mut self, user: &str, without_answer: u16) -> (u16, Headers) {
        let mut gcra = cmd("RL.GCRA");
        gcra.arg(format!("user:{user}")).arg(2).arg(3).arg("1m");
        let Ok(reply) = self.redis().and_then(|redis| gcra.query::<Five>(redis)) else {
            self.unanswered += 1;
            return (without_answer, vec![]);
        };
        (if reply.0 { 429 } else { 200 }, headers("user", 60, reply))
    }

    /// Two a minute and 100 a day: the answer of both together, and of each.
    fn plan(&mut self, user: &str) -> RedisResult<(Five, Vec<Five>)> {
        let mut multi = cmd("RL.MULTI");
        multi.arg(1).arg(format!("plan:{user}"));
        multi.arg("LIMIT").arg("SLIDINGWINDOW").arg(2).arg("1m");
        multi.arg("LIMIT").arg("SLIDINGWINDOW").arg(100).arg("1d");
        multi.query(self.redis()?)
    }

    /// A place for a piece of work, if there is room, for which it may wait. No answer is an error: then it is not begun.
    fn lease(
        &mut self,
        key: &str,
        capacity: u32,
        ttl: u32,
        wait: Option<Duration>,
    ) -> RedisResult<Option<Lease<'_>>> {
        let mut waiting = wait.map(|wait| self.waiting(wait)).transpose()?;
        let lease = Lease { redis: self.redis()?, key: key.to_owned(), id: uuid() };
        let mut concurrent = cmd("RL.CONCURRENT");
        concurrent.arg(key).arg(capacity).arg(format!("{ttl}ms")).arg(&lease.id);
        if let Some(wait) = wait {
            concurrent.arg("BLOCK").arg(format!("{}ms", wait.as_millis()));
        }
        let reply: Five = concurrent.query(waiting.as_mut().unwrap_or(lease.redis))?;
        Ok((!reply.0).then_some(lease))
    }

    /// A connection for one call that waits in the server. It would hold up other calls, and its time-out is longer.
    fn waiting(&self, wait: Duration) -> RedisResult<Connection> {
        let redis = self.client.get_connection_with_timeout(PATIENCE)?;
        redis.set_read_timeout(Some(wait + Duration::from_secs(1)))?;
        redis.set_write_timeout(Some(PATIENCE))?;
        Ok(redis)
    }
}

/// Released when dropped, whatever becomes of the work; if that fails, it ends by itself.
struct Lease<'a> {
    redis: &'a mut Connection,
    key: String,
    id: String,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let _ = cmd("RL.RELEASE").arg(&self.key).arg(&self.id).query::<i64>(self.redis);
    }
}

fn headers(name: &str, window: u32, (limited, limit, remaining, retry_after, reset_after): Five) -> Headers {
    // If nothing remains: until the next request fits. A period admits as many as the limit.
    let earlier = if remaining == 0 { (limit - 1) * i64::from(window) * 1000 / limit } else { 0 };
    let wait = if limited { retry_after } else { reset_after - earlier };
    let seconds = (wait + 999) / 1000;
    let mut fields = vec![("RateLimit-Policy", format!("\"{name}\";q={limit};w={window}"))];
    fields.push(("RateLimit", format!("\"{name}\";r={remaining};t={seconds}")));
    fields.extend((limited && wait >= 0).then(|| ("Retry-After", seconds.to_string())));
    fields
}

fn uuid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("Linux").trim().to_owned()
}

fn main() -> RedisResult<()> {
    let argument = |i, otherwise: &str| std::env::args().nth(i).unwrap_or_else(|| otherwise.into());
    let (url, protocol) = (argument(1, "redis://127.0.0.1:6379"), argument(2, "3"));
    let (mut limits, mut other) = (Limits::new(&url, &protocol)?, Limits::new(&url, &protocol)?);
    let user = uuid(); // fresh keys for each run

    for (status, left) in [(200, 2), (200, 1), (200, 0), (429, 0)] {
        let answer = limits.check(&user, OPEN);
        let wait = answer.1.get(2).and_then(|(_, seconds)| seconds.parse().ok()).unwrap_or(0);
        assert!(
            answer.0 == status && answer.1[1].1.starts_with(&format!("\"user\";r={left};")),
            "{answer:?}"
        );
        assert!(if status == 429 { (1..=20).contains(&wait) } else { wait == 0 }, "{answer:?}");
    }
    println!("1 check: {:?}", limits.check(&user, OPEN));

    let key = format!("db:{user}");
    let first = limits.lease(&key, 1, 30_000, None)?;
    assert!(first.is_some() && other.lease(&key, 1, 30_000, None)?.is_none());
    drop(first);
    assert!(other.lease(&key, 1, 30_000, None)?.is_some());
    let short = limits.lease(&key, 1, 300, None)?; // it ends after 300 ms
    assert!(short.is_some() && other.lease(&key, 1, 30_000, Some(WAIT))?.is_some());
    drop(short);
    println!("2 lease: taken, refused, released, taken, waited for");

    let plans = [limits.plan(&user)?, limits.plan(&user)?, limits.plan(&user)?];
    assert_eq!(plans.each_ref().map(|(all, _)| all.0), [false, false, true]);
    let (minute, day) = (plans[2].1[0], plans[2].1[1]);
    assert_eq!((minute.0, day.0, day.2), (true, false, 98));
    println!("3 plan: refused by the minute, 98 left of the day");

    let (start, mut down) = (Instant::now(), Limits::new(&argument(3, "redis://127.0.0.1:1"), &protocol)?);
    assert_eq!((down.check(&user, OPEN), down.check(&user, CLOSED)), ((200, vec![]), (503, vec![])));
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!((limits.unanswered, down.unanswered), (0, 2));
    println!("4 no answer: open 200, closed 503, 2 counted");
    Ok(())
}
