//! Tenants of a rate that estimate their costs, and settle them later: their turns are as if they had asked for what they used.

use ratelimit_core::Span;

use super::shop::*;

/// A tenant whose callers always wait.
#[derive(Clone, Copy)]
struct Client {
    weight: u64,
    estimate: u64,
    uses: u64,
    /// The number of its callers that wait or work.
    callers: usize,
    /// After how many grants a caller settles, and comes again.
    works: usize,
}

const PLAIN: Client = Client { weight: 1, estimate: 2, uses: 2, callers: 20, works: 0 };
const LIMIT: &str = "TOKENBUCKET 80 1 1ms";

/// A caller asks for tokens, and waits.
fn come(shop: &mut Shop, tenant: u64, client: Client) {
    let (Client { weight, estimate: cost, .. }, id) = (client, shop.id());
    let (limiter, parameters) = LIMIT.split_once(' ').expect("a limiter");
    let line = format!(
        "RL.{limiter} share {parameters} COST {cost} TENANT t{tenant} WEIGHT {weight} HOLD h{id} 1d BLOCK 1d"
    );
    let reply = shop.call(&line, (id, Customer { tenant, weight, cost }));
    assert!(reply.is_none_or(|reply| tenant == 99 && reply.is_admission()));
}

fn settle(shop: &mut Shop, (id, customer): Grant, used: u64) {
    let line = format!("RL.SETTLE share h{id} {LIMIT} COST {used} TENANT t{}", customer.tenant);
    shop.call(&line, (id, customer)).expect("a reply");
}

/// A rate that has given all away.
fn begin() -> Shop {
    let mut shop = Shop::new(1);
    come(&mut shop, 99, Client { estimate: 80, ..PLAIN });
    shop
}

/// The next grants, of which there is one in a millisecond at most.
fn next(shop: &mut Shop) -> Vec<Grant> {
    (0..500)
        .map(|_| shop.pass(Span::from_millis(1)))
        .find(|grants| !grants.is_empty())
        .expect("somebody waits")
}

/// The thousandths of what is used that each of some tenants uses, in 3000 grants.
fn used(clients: &[Client]) -> Vec<u64> {
    let mut shop = begin();
    let of = |tenant: u64| clients[usize::try_from(tenant - 1).expect("a few")];
    for (tenant, client) in (1..).zip(clients) {
        (0..client.callers).for_each(|_| come(&mut shop, tenant, *client));
    }
    let mut working: Vec<(usize, Grant)> = Vec::new();
    while shop.grants.len() < 3000 {
        for grant in next(&mut shop) {
            working.push((shop.grants.len() + of(grant.1.tenant).works, grant));
        }
        let now = shop.grants.len();
        for (_, grant) in working.extract_if(.., |(end, _)| *end <= now) {
            settle(&mut shop, grant, of(grant.1.tenant).uses);
            come(&mut shop, grant.1.tenant, of(grant.1.tenant));
        }
    }
    let used: Vec<u64> =
        (1..).zip(clients).map(|(tenant, client)| shop.granted(tenant) as u64 * client.uses).collect();
    used.iter().map(|used_by| (used_by * 1000 + 500) / used.iter().sum::<u64>()).collect()
}

#[test]
fn an_estimate_that_is_settled_costs_no_turn() {
    let large = Client { estimate: 8, ..PLAIN };
    for (title, clients, shares) in [
        ("8 and uses 2, settled at once", vec![large, PLAIN], vec![500, 500]),
        ("8 and uses 2, after 10 grants", vec![Client { works: 10, ..large }, PLAIN], vec![500, 500]),
        ("8 and uses 2, after 50", vec![Client { works: 50, callers: 60, ..large }, PLAIN], vec![500, 500]),
        ("8 and uses 2, one caller", vec![Client { callers: 1, ..large }, PLAIN], vec![500, 500]),
        ("2 and uses 8", vec![Client { uses: 8, ..PLAIN }, PLAIN], vec![500, 500]),
        ("80 and uses 2, weight 3", vec![Client { estimate: 80, weight: 3, ..PLAIN }, PLAIN], vec![750, 250]),
        ("8 and uses 2", vec![large, PLAIN, Client { estimate: 4, uses: 4, ..PLAIN }], vec![333; 3]),
    ] {
        let used = used(&clients);
        let is_about = used.iter().zip(&shares).all(|(used, share)| used.abs_diff(*share) <= 25);
        assert!(is_about, "the first estimates {title}: {used:?} thousandths of the use");
    }
}

#[test]
fn what_was_granted_comes_back_once_and_by_the_weight_it_was_charged_by() {
    let wide = Client { estimate: 10, callers: 500, ..PLAIN };
    let in_a_row = |shop: &mut Shop| (0..500).take_while(|_| next(shop)[0].1.tenant == 1).count();
    // Charged by a large weight, and settled by a small one.
    let mut shop = begin();
    (0..3).for_each(|_| come(&mut shop, 1, Client { weight: 1000, ..wide }));
    (0..500).for_each(|_| come(&mut shop, 2, wide));
    let grants: Vec<Grant> = (0..3).flat_map(|_| next(&mut shop)).collect();
    assert!(grants.iter().all(|(_, customer)| customer.tenant == 1));
    (0..500).for_each(|_| come(&mut shop, 1, wide));
    for grant in grants {
        settle(&mut shop, grant, 1);
    }
    assert!(in_a_row(&mut shop) <= 1);
}
