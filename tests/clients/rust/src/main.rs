//! The crates made for redis-cell, as they are published, on the server at the port in the second argument; the first
//! names the crate. Prints how many checks passed, and of how many.

use std::{
    convert::Infallible,
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

use redis::Client;
use redis_cell_rs::{Cmd, Key, Policy, Verdict};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_redis_cell::{Error, ProvideRule, ProvideRuleResult, RateLimitConfig, RateLimitLayer, Rule};

const README: Policy = Policy::new(15, 30, Duration::from_secs(60), 1);

/// A token a minute, three at once.
const SLOW: Policy = Policy::from_tokens_per_hour(60).max_burst(2);

const ONE_IN_TWO_SECONDS: Policy = Policy::from_tokens_per_period(1, Duration::from_secs(2));

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let [_, library, port] = env::args().collect::<Vec<_>>().try_into().expect("a library and a port");
    let client = Client::open(format!("redis://127.0.0.1:{port}/")).expect("an address");
    let mut checks = Checks { start: Instant::now(), passed: 0, total: 0 };
    match library.as_str() {
        "redis-cell-rs" => commands(&client, &mut checks),
        "tower-redis-cell" => middleware(&client, &mut checks).await,
        other => panic!("no client for {other}"),
    }
    println!("{} of {}", checks.passed, checks.total);
    ExitCode::from(u8::from(checks.passed < checks.total))
}

fn commands(client: &Client, checks: &mut Checks) {
    let mut connection = client.get_connection().expect("a connection");
    let mut ask = |key: &Key, policy: &Policy| -> Answer {
        let verdict: Verdict =
            redis::Cmd::from(Cmd::new(key, policy)).query(&mut connection).expect("a verdict");
        verdict.into()
    };

    checks.expect("redis-cell's README", ask(&"user123".into(), &README), Allowed(16, 15, 2));
    checks.expect("its second call", ask(&"user123".into(), &README), Allowed(16, 14, 4));

    let alice = Key::pair("alice", "/api/infer");
    checks.expect("request 1 of 3", ask(&alice, &SLOW), Allowed(3, 2, 60));
    checks.expect("request 2 of 3", ask(&alice, &SLOW), Allowed(3, 1, 120));
    checks.expect("request 3 of 3", ask(&alice, &SLOW), Allowed(3, 0, 180));
    checks.expect("one too many", ask(&alice, &SLOW), Blocked(3, 0, 60, 180));
    checks.expect("two too many", ask(&alice, &SLOW.apply_tokens(2)), Blocked(3, 0, 120, 180));
    checks.expect("a look", ask(&alice, &SLOW.apply_tokens(0)), Allowed(3, 0, 180));

    let bob = Key::pair("bob", "/api/infer");
    checks.expect("another key", ask(&bob, &SLOW.apply_tokens(2)), Allowed(3, 1, 120));
    checks.expect("more than is left", ask(&bob, &SLOW.apply_tokens(2)), Blocked(3, 1, 60, 120));
    checks.expect("a key that is a number", ask(&42_usize.into(), &SLOW), Allowed(3, 2, 60));
    checks.expect("a new policy for it", ask(&42_usize.into(), &SLOW.max_burst(4)), Allowed(5, 3, 120));

    let carol = Key::from("carol");
    checks.expect("one in two seconds", ask(&carol, &ONE_IN_TWO_SECONDS), Allowed(1, 0, 2));
    let early = ask(&carol, &ONE_IN_TWO_SECONDS);
    checks.expect("too early", early, Blocked(1, 0, 2, 2));
    if let Blocked(_, _, retry, _) = early {
        std::thread::sleep(Duration::from_secs(retry));
    }
    checks.expect("after the wait", ask(&carol, &ONE_IN_TWO_SECONDS), Allowed(1, 0, 2));
}

async fn middleware(client: &Client, checks: &mut Checks) {
    let connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let config = RateLimitConfig::new(Rules, |error: Error, _: &&'static str| match error {
        Error::RateLimit(blocked) => {
            let details = blocked.details;
            Blocked(details.total, details.remaining, details.retry_after, details.reset_after)
        }
        error => panic!("{error}"),
    })
    .on_success(|allowed, answer: &mut Answer| {
        let details = allowed.details;
        *answer = Allowed(details.total, details.remaining, details.reset_after);
    });
    let mut service = ServiceBuilder::new()
        .layer(RateLimitLayer::new(config, connection))
        .service(service_fn(|_: &'static str| async { Ok::<_, Infallible>(Unruled) }));
    let mut ask = async |user: &'static str| {
        let ready = service.ready().await.expect("a service");
        ready.call(user).await.expect("an answer")
    };

    checks.expect("request 1 of 3", ask("erin").await, Allowed(3, 2, 60));
    checks.expect("request 2 of 3", ask("erin").await, Allowed(3, 1, 120));
    checks.expect("request 3 of 3", ask("erin").await, Allowed(3, 0, 180));
    checks.expect("one too many", ask("erin").await, Blocked(3, 0, 60, 180));
    checks.expect("another key", ask("frank").await, Allowed(3, 2, 60));
    checks.expect("a caller without a limit", ask("root").await, Unruled);
    checks.expect("one in two seconds", ask("slow").await, Allowed(1, 0, 2));
    let early = ask("slow").await;
    checks.expect("too early", early, Blocked(1, 0, 2, 2));
    if let Blocked(_, _, retry, _) = early {
        // Tokio's timers count in milliseconds and may round down.
        tokio::time::sleep(Duration::from_secs(retry) + Duration::from_millis(10)).await;
    }
    checks.expect("after the wait", ask("slow").await, Allowed(1, 0, 2));
}

#[derive(Clone)]
struct Rules;

impl ProvideRule<&'static str> for Rules {
    fn provide<'a>(&self, user: &'a &'static str) -> ProvideRuleResult<'a> {
        Ok(match *user {
            "root" => None,
            "slow" => Some(Rule::new("tower:slow", ONE_IN_TWO_SECONDS)),
            user => Some(Rule::new(Key::pair("tower", user), SLOW)),
        })
    }
}

/// A verdict that can be compared. Allowed: limit, remaining, reset. Blocked: limit, remaining, retry, reset.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Allowed(usize, usize, u64),
    Blocked(usize, usize, u64, u64),
    Unruled,
}
use Answer::{Allowed, Blocked, Unruled};

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Answer {
        match verdict {
            Verdict::Allowed(details) => Allowed(details.total, details.remaining, details.reset_after),
            Verdict::Blocked(details) => {
                Blocked(details.total, details.remaining, details.retry_after, details.reset_after)
            }
        }
    }
}

impl Answer {
    /// Whether this is `wanted`, with times that are less by at most `late` seconds.
    fn is(self, wanted: Answer, late: u64) -> bool {
        let close = |time: u64, wanted: u64| time <= wanted && wanted - time <= late;
        match (self, wanted) {
            (Allowed(.., reset), Allowed(limit, remaining, most)) => {
                self == Allowed(limit, remaining, reset) && close(reset, most)
            }
            (Blocked(.., retry, reset), Blocked(limit, remaining, longest, most)) => {
                self == Blocked(limit, remaining, retry, reset) && close(retry, longest) && close(reset, most)
            }
            (answer, wanted) => answer == wanted,
        }
    }
}

struct Checks {
    start: Instant,
    passed: u32,
    total: u32,
}

impl Checks {
    /// Times may be less than wanted by the whole seconds that this machine stood still.
    fn expect(&mut self, what: &str, got: Answer, wanted: Answer) {
        let right = got.is(wanted, self.start.elapsed().as_secs());
        self.total += 1;
        self.passed += u32::from(right);
        if !right {
            eprintln!("{what}: got {got:?}, wanted {wanted:?}");
        }
    }
}
