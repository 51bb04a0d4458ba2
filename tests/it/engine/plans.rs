//! A request that is planned does what one without a plan does.

use ratelimit_core::Time;
use ratelimit_engine::memory::{Called, Memory};

use super::histories::any_call;
use super::node::call;
use super::on_memory;
use crate::support::T0;
use crate::support::dice::Dice;

const CALLS: u64 = 30_000;

#[test]
fn a_request_does_the_same_with_and_without_a_plan() {
    let [plain, planned] = [0; 2].map(Memory::new);
    for memory in [&plain, &planned] {
        memory.set_clock(Time::from_micros(T0));
        call(memory, "RL.UNIFORM elsewhere 30s").expect("a gate");
    }
    // While somebody waits for any key, all requests are planned.
    assert!(matches!(on_memory(&planned, "RL.UNIFORM elsewhere 30s BLOCK 1m"), Called::Waits(_)));
    let mut dice = Dice::new(13);
    for number in 0..CALLS {
        let line = any_call(&mut dice, T0 + 20_000 * number);
        assert_eq!(call(&plain, &line), call(&planned, &line), "call {number}: {line}");
        assert!(number % 100 > 0 || plain.dump() == planned.dump(), "call {number}: {line}");
    }
    assert_eq!([&plain, &planned].map(|memory| memory.node().waiting.is_anybody()), [false, true]);
}
