//! What tenants get of a limit, beside their fair shares in rational numbers, and beside what they get in order of arrival.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use num_rational::BigRational;
use ratelimit_laws::{Want, fill, ratio};
use ratelimit_testing::client::Client as Connection;
use ratelimit_testing::pool::{Caller, Limit, Pool, waits};
use ratelimit_testing::{Server, connect, ints, wait_for};

/// A tenant with its weight, the cost of its calls and the number of its callers.
#[derive(Clone, Copy)]
struct Tenant {
    weight: u64,
    cost: u64,
    callers: usize,
}

#[derive(Clone, Copy)]
enum Order {
    Fair,
    /// Without `TENANT`.
    Arrival,
}

const fn tenant(weight: u64, callers: usize) -> Tenant {
    Tenant { weight, cost: 1, callers }
}

const fn costs(cost: u64, callers: usize) -> Tenant {
    Tenant { weight: 1, cost, callers }
}

/// All wait for leases that another tenant holds, which then ends all of them.
const FILLED: [(&str, usize, &[Tenant]); 5] = [
    ("120 leases, wants 1000, 60, 10", 120, &[tenant(1, 1000), tenant(1, 60), tenant(1, 10)]),
    ("120 leases, wants 1000, 50, 10", 120, &[tenant(1, 1000), tenant(1, 50), tenant(1, 10)]),
    ("120 leases, weights 6, 4, 2", 120, &[tenant(6, 200), tenant(4, 200), tenant(2, 200)]),
    ("10 leases, weights 5, 3, 2", 10, &[tenant(5, 20), tenant(3, 20), tenant(2, 20)]),
    ("8 leases, weights 3, 1", 8, &[tenant(3, 20), tenant(1, 20)]),
];

/// Each grant of a window of one goes to a caller.
const RATES: [(&str, usize, &[Tenant]); 2] = [
    ("rate, 10 grants, weights 5, 3, 2", 10, &[tenant(5, 20), tenant(3, 20), tenant(2, 20)]),
    ("rate, 8 grants, weights 3, 1", 8, &[tenant(3, 20), tenant(1, 20)]),
];

/// A rule that only counts what is held never grants the last of these, while callers of the others come again and again.
const STARVED: [(&str, usize, &[Tenant], usize); 4] = [
    ("cost 10 of 10 beside two of cost 1", 10, &[tenant(1, 12), tenant(1, 12), costs(10, 1)], 210),
    ("weight 1 beside eleven of 2, on 10", 10, &beside::<12>(tenant(2, 2), tenant(1, 1)), 230),
    ("cost 2 beside ten of cost 1, on 10", 10, &beside::<11>(tenant(1, 2), costs(2, 1)), 210),
    ("weight 1 beside one of 100, on 1", 1, &[tenant(100, 2), tenant(1, 1)], 202),
];

const fn beside<const N: usize>(others: Tenant, last: Tenant) -> [Tenant; N] {
    let mut tenants = [others; N];
    tenants[N - 1] = last;
    tenants
}

/// Prints the tables; returns how many rows are not as expected.
pub fn run(seconds: u64) -> usize {
    println!("{:<40} {:>16} {:>16} {:>16}", "what tenants get", "fair shares", "TENANT", "without");
    let mut failed = 0;
    for (name, capacity, tenants) in FILLED {
        let got = each(|order| filled(capacity, tenants, order));
        failed += row(name, &shares(capacity, tenants), got, 0);
    }
    for (name, grants, tenants) in RATES {
        let got = each(|order| granted(grants, tenants, order));
        failed += row(name, &shares(grants, tenants), got, 0);
    }
    failed += row("100 grants alone, then 10 beside another", &[ratio(5), ratio(5)], each(joined), 0);
    failed += row("15 of 15 held, 100 wait: the next one", &[ratio(0), ratio(1)], each(newcomer), 0);
    for (name, capacity, tenants, grants) in STARVED {
        let got = each(|order| turned_over(capacity, tenants, grants, order));
        // While a large cost waits for its room, the others are served. So it gets less than its part, and half at least.
        let off = got[0][0];
        failed += row(&format!("{name}, of {grants}"), &[grants_to_last(tenants, grants)], got, off);
    }
    failed + settlements() + pollers(seconds)
}

fn each(got: impl Fn(Order) -> Vec<u64>) -> [Vec<u64>; 2] {
    [Order::Fair, Order::Arrival].map(got)
}

/// Prints what was expected and what tenants got; returns 1 if the fair order is off by more than this.
fn row(name: &str, expected: &[BigRational], got: [Vec<u64>; 2], off: u64) -> usize {
    let differs = |(expected, got): (&BigRational, &u64)| {
        *expected > ratio(got + off) || expected + ratio(off) < ratio(*got)
    };
    let wrong = expected.len() != got[0].len() || expected.iter().zip(&got[0]).any(differs);
    let [fair, arrival] = got.map(|got| written(&got));
    let mark = if wrong { "  NOT AS EXPECTED" } else { "" };
    println!("{name:<40} {:>16} {fair:>16} {arrival:>16}{mark}", written(expected));
    usize::from(wrong)
}

fn written<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" : ")
}

/// The fair shares of what each wants.
fn shares(capacity: usize, tenants: &[Tenant]) -> Vec<BigRational> {
    let want = |tenant: &Tenant| Want { want: tenant.callers as u64, weight: tenant.weight };
    fill(capacity as u64, &tenants.iter().map(want).collect::<Vec<_>>())
}

/// The grants to the last, if all get the same in proportion to their weights.
fn grants_to_last(tenants: &[Tenant], grants: usize) -> BigRational {
    let speed = |tenant: &Tenant| ratio(tenant.weight) / ratio(tenant.cost);
    ratio(grants as u64) * tenants.last().map(speed).expect("a tenant")
        / tenants.iter().map(speed).sum::<BigRational>()
}

fn name(index: usize) -> String {
    format!("tenant-{index}")
}

fn options(tenant: &str, Tenant { weight, cost, .. }: Tenant, order: Order) -> String {
    match order {
        Order::Fair => format!("COST {cost} TENANT {tenant} WEIGHT {weight}"),
        Order::Arrival => format!("COST {cost}"),
    }
}

/// The number of these callers, by tenant.
fn count(callers: &[Caller], tenants: usize) -> Vec<u64> {
    let of = |tenant: String| callers.iter().filter(|caller| caller.tenant == tenant).count() as u64;
    (0..tenants).map(|index| of(name(index))).collect()
}

/// A limit that another one has filled, for which these callers wait in turn.
fn awaited(limit: Limit, capacity: usize, tenants: &[Tenant], order: Order) -> Pool {
    let before = options("before", tenant(1, 0), order);
    let mut pool = Pool::full(limit, capacity, "before", &before);
    for (index, tenant) in tenants.iter().enumerate() {
        pool.wait(&name(index), &options(&name(index), *tenant, order), tenant.callers);
    }
    pool
}

fn filled(capacity: usize, tenants: &[Tenant], order: Order) -> Vec<u64> {
    let mut pool = awaited(Limit::Leases, capacity, tenants, order);
    (0..capacity).for_each(|_| _ = pool.end_first());
    count(&pool.held, tenants.len())
}

fn granted(grants: usize, tenants: &[Tenant], order: Order) -> Vec<u64> {
    let mut rate = awaited(Limit::Rate, 1, tenants, order);
    let granted: Vec<Caller> = (0..grants).flat_map(|_| rate.end_first()).collect();
    count(&granted, tenants.len())
}

/// One is served alone. Then another one joins.
fn joined(order: Order) -> Vec<u64> {
    let mut rate = awaited(Limit::Rate, 1, &[tenant(1, 120)], order);
    (0..100).for_each(|_| _ = rate.end_first());
    rate.wait(&name(1), &options(&name(1), tenant(1, 1), order), 10);
    let granted: Vec<Caller> = (0..10).flat_map(|_| rate.end_first()).collect();
    count(&granted, 2)
}

/// One holds everything, and more of its callers wait than of another.
fn newcomer(order: Order) -> Vec<u64> {
    let own = options(&name(0), tenant(1, 1), order);
    let mut pool = Pool::full(Limit::Leases, 15, &name(0), &own);
    pool.wait(&name(0), &own, 100);
    pool.wait(&name(1), &options(&name(1), tenant(1, 1), order), 1);
    count(&pool.end_first(), 2)
}

fn turned_over(capacity: usize, tenants: &[Tenant], grants: usize, order: Order) -> Vec<u64> {
    let options = |index: usize| options(&name(index), tenants[index], order);
    let options: BTreeMap<String, String> =
        (0..tenants.len()).map(|index| (name(index), options(index))).collect();
    let mut pool = awaited(Limit::Leases, capacity, tenants, order);
    (0..capacity).for_each(|_| _ = pool.end_first());
    vec![pool.turn_over(grants, &name(tenants.len() - 1), |tenant| &options[tenant]) as u64]
}

/// A tenant that estimates what its calls to a rate cost.
#[derive(Clone, Copy)]
struct Client {
    estimate: u64,
    uses: u64,
    weight: u64,
}

const fn estimates(estimate: u64, uses: u64, weight: u64) -> Client {
    Client { estimate, uses, weight }
}

const SETTLED: [(&str, &[Client], &[u64]); 4] = [
    ("estimates 8, uses 2 beside 2, 2", &[estimates(8, 2, 1), estimates(2, 2, 1)], &[50, 50]),
    ("estimates 2, uses 8 beside 2, 2", &[estimates(2, 8, 1), estimates(2, 2, 1)], &[50, 50]),
    ("estimates 80, uses 2, weight 3, beside 2, 2", &[estimates(80, 2, 3), estimates(2, 2, 1)], &[75, 25]),
    (
        "estimates 8, uses 2 beside 2, 2 and 4, 4",
        &[estimates(8, 2, 1), estimates(2, 2, 1), estimates(4, 4, 1)],
        &[33, 33, 33],
    ),
];
const GRANTS: usize = 400;

/// Prints what each tenant uses of a rate, in percent. Returns how many rows are not as expected.
fn settlements() -> usize {
    println!("\n{:<44} {:>14} {:>14}", format!("percent of the use, {GRANTS} grants"), "by weight", "TENANT");
    let mut failed = 0;
    for (name, clients, shares) in SETTLED {
        let used = used(clients);
        let is_fair = used.iter().zip(shares).all(|(used, share)| used.abs_diff(*share) <= 3);
        let mark = if is_fair { "" } else { "  NOT AS EXPECTED" };
        println!("{name:<44} {:>14} {:>14}{mark}", written(shares), written(&used));
        failed += usize::from(!is_fair);
    }
    failed
}

/// The percent of what is used that each tenant uses. Each has four callers, which settle at once and come again.
fn used(clients: &[Client]) -> Vec<u64> {
    let server = Server::start(&["--ratelimit.max-block", "86400000"]);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW llm 1 1h COST 1");
    let mut ids = 0;
    let mut ask = |tenant: usize, connection: &mut Connection| {
        ids += 1;
        let Client { estimate, weight, .. } = clients[tenant];
        // With a limit that is the cost, it is granted only if nothing else is charged.
        connection.send(&format!(
            "RL.FIXEDWINDOW llm {estimate} 1h COST {estimate} HOLD {ids} 1h BLOCK 1d TENANT {} WEIGHT {weight}",
            name(tenant)
        ));
        ids
    };
    let mut callers: Vec<(usize, Connection, usize)> = Vec::new();
    for tenant in (0..4).flat_map(|_| 0..clients.len()) {
        let mut connection = Connection::connect(server.port);
        let id = ask(tenant, &mut connection);
        callers.push((tenant, connection, id));
        wait_for("a caller that waits", || waits(con) == callers.len());
    }
    ints(con, "RL.REFUND llm FIXEDWINDOW 1 1h COST 1");
    let mut used = vec![0; clients.len()];
    for _ in 0..GRANTS {
        let mut granted = None;
        wait_for("a grant", || {
            granted = callers.iter_mut().position(|(_, connection, _)| connection.poll().is_some());
            granted.is_some()
        });
        let (tenant, connection, id) = &mut callers[granted.expect("a grant")];
        let Client { uses, .. } = clients[*tenant];
        used[*tenant] += uses;
        let settle = format!("RL.SETTLE llm {id} FIXEDWINDOW {uses} 1h COST {uses} TENANT {}", name(*tenant));
        assert_eq!(ints(con, &settle)[5], 1);
        *id = ask(*tenant, connection);
        wait_for("it waits again", || waits(con) == clients.len() * 4);
        ints(con, &format!("RL.REFUND llm FIXEDWINDOW {uses} 1h COST {uses}"));
    }
    let all: u64 = used.iter().sum();
    used.iter().map(|used| (used * 100 + all / 2) / all).collect()
}

/// The callers of three tenants that poll for ten leases, each for a second.
const POLLERS: [usize; 3] = [100, 5, 1];
const SLOTS: u64 = 10;
const JOB: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);

/// Prints how many leases each of three tenants is granted in a second, whose clients poll.
fn pollers(seconds: u64) -> usize {
    println!(
        "\n{POLLERS:?} clients poll each {} ms for {SLOTS} leases, jobs of a second:",
        INTERVAL.as_millis()
    );
    let wants = POLLERS.map(|clients| Want { want: clients as u64, weight: 1 });
    println!("{:<40} {}", "fair shares", written(&fill(SLOTS, &wants)));
    let mut failed = 0;
    for (name, order) in [("TENANT", Order::Fair), ("without", Order::Arrival)] {
        let server = Server::start(&[]);
        let port = server.port;
        let begin = Instant::now() + JOB;
        let end = begin + Duration::from_secs(seconds);
        let clients = POLLERS.iter().enumerate().flat_map(|(tenant, count)| vec![tenant; *count]);
        let clients: Vec<_> = clients
            .enumerate()
            .map(|(id, tenant)| (tenant, thread::spawn(move || poll(port, id, tenant, order, begin..end))))
            .collect();
        let mut grants = [0; 3];
        for (tenant, client) in clients {
            grants[tenant] += client.join().expect("a client");
        }
        let tenths = grants.map(|grants| grants * 10 / seconds);
        let [a, b, c] = tenths.map(|tenths| format!("{}.{}", tenths / 10, tenths % 10));
        // A lease that is kept for one who does not ask at once lies idle for a while.
        let is_fair =
            tenths[0].abs_diff(50) <= 10 && tenths[1].abs_diff(40) <= 10 && tenths[2].abs_diff(10) <= 3;
        failed += usize::from(matches!(order, Order::Fair) && !is_fair);
        println!("{name:<40} {a} : {b} : {c}");
    }
    failed
}

/// Returns the number of grants to a client within this time.
fn poll(port: u16, id: usize, tenant: usize, order: Order, time: Range<Instant>) -> u64 {
    let mut con = connect(port).expect("a connection");
    let options = options(&name(tenant), Tenant { weight: 1, cost: 1, callers: 1 }, order);
    let mut grants = 0;
    // So they do not ask all at once.
    sleep(INTERVAL * u32::try_from(id).expect("a number") / 106);
    while Instant::now() < time.end {
        if ints(&mut con, &format!("RL.CONCURRENT slots {SLOTS} 1m {id} {options}"))[0] == 0 {
            grants += u64::from(time.contains(&Instant::now()));
            sleep(JOB);
            ints(&mut con, &format!("RL.RELEASE slots {id}"));
        } else {
            sleep(INTERVAL);
        }
    }
    grants
}
