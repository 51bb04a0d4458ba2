//! Tenants of a rate that estimate their costs, and settle them later: their turns are as if they had asked for what they used.

use std::collections::{BTreeMap, VecDeque};

use ratelimit_laws::fair::{Call, Limit, Outcome, Rule, Tenant, Wish};

use super::dice::Dice;
use super::pair::Pair;
use super::shop::YEARS;

const INTERVAL: u64 = 1000;

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

/// A rate that grants one request at a time.
struct Gateway {
    pair: Pair,
    ids: u64,
    tenants: BTreeMap<u64, Tenant>,
}

impl Gateway {
    fn new() -> Gateway {
        let mut pair = Pair::new(vec![Limit::bucket(INTERVAL)], Rule::Fair);
        pair.model.hunger = 0;
        Gateway { pair, ids: 0, tenants: BTreeMap::new() }
    }

    /// A caller comes. Returns whether it was granted its cost at once.
    fn come(&mut self, tenant: Tenant, client: Client) -> bool {
        self.ids += 1;
        self.tenants.insert(self.ids, tenant);
        let (weight, cost) = (Some(client.weight), client.estimate);
        // So it is granted only if nothing is owed.
        let wish = Wish { limit: 0, tenant, weight, cost, most: cost, critical: false };
        let call = Call { wishes: vec![wish], id: self.ids, ttl: 1, estimated: true };
        self.pair.arrive(&call, true, YEARS) == Outcome::Admitted
    }

    /// What was granted is paid off, and the next caller is granted its cost. Returns its tenant.
    fn grant(&mut self) -> Option<Tenant> {
        self.pair.pass(1000 * INTERVAL);
        let admitted = self.pair.serve();
        assert!(admitted.len() < 2);
        admitted.first().map(|id| self.tenants[id])
    }

    fn settle(&mut self, tenant: Tenant, granted: u64, used: u64) {
        self.pair.settle(0, tenant, granted, used);
    }
}

/// The grants to each of some tenants, of 3000.
fn grants(clients: &[Client]) -> Vec<usize> {
    let mut gateway = Gateway::new();
    let of = |tenant: Tenant| clients[usize::try_from(tenant - 1).expect("a few")];
    gateway.come(99, PLAIN);
    for (tenant, client) in (1..).zip(clients) {
        (0..client.callers).for_each(|_| assert!(!gateway.come(tenant, *client)));
    }
    let mut grants = vec![0; clients.len()];
    let mut working: VecDeque<(usize, Tenant)> = VecDeque::new();
    for step in 0..3000 {
        let granted = gateway.grant();
        if let Some(tenant) = granted {
            grants[usize::try_from(tenant - 1).expect("a few")] += 1;
            working.push_back((step + of(tenant).works, tenant));
        }
        let done: Vec<Tenant> =
            working.iter().filter(|(end, _)| *end <= step).map(|(_, tenant)| *tenant).collect();
        working.retain(|(end, _)| *end > step);
        for tenant in done {
            gateway.settle(tenant, of(tenant).estimate, of(tenant).uses);
            gateway.come(tenant, of(tenant));
        }
    }
    grants
}

/// The thousandths of what is used that each tenant uses.
fn used(clients: &[Client]) -> Vec<u64> {
    let used: Vec<u64> =
        grants(clients).iter().zip(clients).map(|(grants, client)| *grants as u64 * client.uses).collect();
    used.iter().map(|used_by| (used_by * 1000 + 500) / used.iter().sum::<u64>()).collect()
}

fn is_about(measured: &[u64], expected: &[u64]) -> bool {
    measured.iter().zip(expected).all(|(measured, expected)| measured.abs_diff(*expected) <= 25)
}

#[test]
fn an_estimate_that_is_settled_costs_no_turn() {
    let large = Client { estimate: 8, ..PLAIN };
    for (title, clients, shares) in [
        ("8 and uses 2, settled at once", vec![large, PLAIN], vec![500, 500]),
        ("8 and uses 2, after 10 grants", vec![Client { works: 10, ..large }, PLAIN], vec![500, 500]),
        (
            "8 and uses 2, after 50 grants",
            vec![Client { works: 50, callers: 60, ..large }, PLAIN],
            vec![500, 500],
        ),
        ("8 and uses 2, one caller", vec![Client { callers: 1, ..large }, PLAIN], vec![500, 500]),
        ("2 and uses 8", vec![Client { uses: 8, ..PLAIN }, PLAIN], vec![500, 500]),
        (
            "80 and uses 2, weights 3 and 1",
            vec![Client { estimate: 80, weight: 3, ..PLAIN }, PLAIN],
            vec![750, 250],
        ),
        (
            "8 and uses 2, beside 2 and 4",
            vec![large, PLAIN, Client { estimate: 4, uses: 4, ..PLAIN }],
            vec![333; 3],
        ),
    ] {
        let measured = used(&clients);
        println!("a estimates {title}: {:?} grants, {measured:?} thousandths of the use", grants(&clients));
        assert!(is_about(&measured, &shares), "{title}: {measured:?}");
    }
}

/// The grants to the tenant 1 in a row, while the tenant 2 waits.
fn in_a_row(gateway: &mut Gateway) -> usize {
    (0..500).take_while(|_| gateway.grant() == Some(1)).count()
}

#[test]
fn nothing_that_was_not_granted_in_the_line_is_gained() {
    let wide = Client { estimate: 10, callers: 500, ..PLAIN };
    let begin = || {
        let mut gateway = Gateway::new();
        gateway.come(99, PLAIN);
        (0..500).for_each(|_| _ = gateway.come(1, wide));
        (0..500).for_each(|_| _ = gateway.come(2, wide));
        gateway
    };
    // Holds from before the line, or of others.
    let mut gateway = begin();
    (0..400).for_each(|_| gateway.settle(1, 10, 1));
    assert!(in_a_row(&mut gateway) <= 1);
    // What it was granted comes back once, whatever is settled.
    let mut gateway = begin();
    assert_eq!([(); 4].map(|()| gateway.grant()), [Some(1), Some(2), Some(1), Some(2)]);
    (0..400).for_each(|_| gateway.settle(1, 1_000_000, 0));
    assert!(in_a_row(&mut gateway) <= 3);
    // Charged by a large weight, and settled by a small one.
    let mut gateway = Gateway::new();
    gateway.come(99, PLAIN);
    (0..3).for_each(|_| _ = gateway.come(1, Client { weight: 1000, ..wide }));
    (0..500).for_each(|_| _ = gateway.come(2, wide));
    (0..3).for_each(|_| assert_eq!(gateway.grant(), Some(1)));
    (0..500).for_each(|_| _ = gateway.come(1, wide));
    (0..3).for_each(|_| gateway.settle(1, 10, 1));
    assert!(in_a_row(&mut gateway) <= 1);
}

#[test]
fn a_tenant_that_waits_is_passed_finitely_often_whatever_the_others_settle() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let mut gateway = Gateway::new();
        gateway.come(99, PLAIN);
        let mut holds: Vec<(Tenant, u64)> = Vec::new();
        let of = |tenant: Tenant, dice: &mut Dice| Client {
            weight: 1 + u64::from(tenant) % 3,
            estimate: 1 + dice.below(30),
            ..PLAIN
        };
        for tenant in [2, 3, 4, 5, 1] {
            let client = of(tenant, &mut dice);
            (0..3).for_each(|_| _ = gateway.come(tenant, client));
        }
        let mut newcomers = 10;
        let mut passed = 0;
        loop {
            let Some(tenant) = gateway.grant() else { panic!("nobody waits") };
            if tenant == 1 {
                break;
            }
            passed += 1;
            assert!(passed < 200, "it starves");
            holds.push((tenant, 30));
            while let Some((tenant, granted)) = holds.pop() {
                let used = if dice.happens(1, 2) { 0 } else { dice.below(40) };
                gateway.settle(tenant, granted, used);
            }
            // Those that were served come again, and new ones, too.
            newcomers += 1;
            for tenant in [tenant, newcomers] {
                let client = of(tenant, &mut dice);
                gateway.come(tenant, client);
            }
        }
    }
}
