//! Small histories in the core.

use ratelimit_core::{Span, Time};
use ratelimit_laws::fair::{Call, Comer, Tenant, Wish};

use super::real::{Clock, Real};

#[test]
fn a_hungry_tenant_and_a_waiting_one_in_equal_places_do_not_keep_a_slot_from_each_other() {
    let mut real = Real::new(vec![None]);
    let clock = Clock { steady: Time::from_micros(1_000_000), wall: Time::from_micros(1_000_000) };
    let call = |tenant: Tenant, id| {
        let wish = Wish { limit: 0, tenant, weight: None, cost: 1, most: 1, critical: false };
        Call { wishes: vec![wish], id, ttl: 60_000_000, estimated: false }
    };
    assert_eq!(real.call(&call(1, 1), Comer::Passes, clock), []);
    let poll = call(2, 2);
    assert_eq!(real.call(&poll, Comer::Passes, clock), [0]);
    real.starve(&poll, &[0], Span::from_millis(1000), clock);
    let waits = call(3, 3);
    assert_eq!(real.call(&waits, Comer::Arrives, clock), [0]);
    real.enter(&waits, 1, Time::from_micros(100_000_000), clock);
    assert!(real.act(0, 1, None, clock));
    let (caller, waits) = real.due(clock).expect("it is due");
    let kept = real.call(&waits, Comer::Waits(caller), clock);
    let refused = real.call(&poll, Comer::Passes, clock);
    assert_eq!((kept, refused), (vec![0], vec![]));
}
