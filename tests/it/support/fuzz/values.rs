//! What values make sense for an argument, by its name, or else by its type.

use ratelimit_language::syntax::Kind;

use super::caller::Caller;
use crate::support::SECOND;
use crate::support::fuzz::request::Request;

impl Caller {
    pub(super) fn value(&mut self, request: &Request, name: &str, kind: Kind) -> Vec<u8> {
        let dice = &mut self.dice;
        let number = match name {
            "numkeys" => 1 + dice.below(3),
            "capacity" | "limit" | "maxlen" => 2 + dice.below(8),
            "max_burst" | "reserved" | "quantity" => dice.below(4),
            "period" if request.name().ends_with("THROTTLE") => 1 + dice.below(9),
            "window" => return dice.pick(&["1000ms", "1s", "2s", "60s", "1h"]).as_bytes().to_vec(),
            "precision" => return dice.pick(&["100ms", "250ms", "1s"]).as_bytes().to_vec(),
            "period" | "interval" | "ttl" | "burst" | "warmup" | "delay" | "ramp" => {
                return dice.pick(&["1000ms", "1s", "700ms", "7ms", "90s", "1h"]).as_bytes().to_vec();
            }
            "timeout" => return dice.pick(&["1ms", "2ms", "1ms", "4ms"]).as_bytes().to_vec(),
            "gap" | "maxwait" => return format!("{}ms", dice.below(700)).into_bytes(),
            "cost" => dice.pick(&["0", "1", "1", "2", "3", "4", "30"]).parse().unwrap(),
            "at" => self.instant(),
            "tier" | "index" => 1 + dice.below(2),
            "width" => 1 << dice.below(6),
            "item" => return dice.pick(&["ann", "bob", ""]).as_bytes().to_vec(),
            "tiers" => 2 + dice.below(3),
            "utilization" | "good" | "bad" | "factor" => {
                let texts = match name {
                    "utilization" => ["0.95", "0.75", "1", "0"],
                    "good" => ["0.1", "0.3", "0.5", "0.6"],
                    "bad" => ["0.65", "0.7", "0.8", "0.99"],
                    _ => ["1", "1.5", "3", "1000"],
                };
                return dice.pick(&texts).as_bytes().to_vec();
            }
            "id" if request.name() == "RL.XADD" => return b"*".to_vec(),
            "id" => {
                // Holds are on more kinds of keys than leases, and of few ids some are held twice.
                let ids = if request.says("HOLD") || request.name().ends_with("SETTLE") { 3 } else { 9 };
                return format!("lease:{}", dice.below(ids)).into_bytes();
            }
            "policy" | "set" | "get" | "del" | "stats" => {
                return dice.pick(&["api", "login", "plan:1"]).as_bytes().to_vec();
            }
            "payload" => {
                return dice
                    .pick(&[&b"\x01\0\0"[..], b"\x01\x03\x00", b"\x02", b"\x01\x0f\x02\0\0\0\0\0\0\0\0"])
                    .to_vec();
            }
            _ if kind == Kind::Real => return b"0.5".to_vec(),
            _ if kind == Kind::Text => return b"word".to_vec(),
            _ => 1 + dice.below(5),
        };
        number.to_string().into_bytes()
    }

    fn instant(&mut self) -> u64 {
        let dice = &mut self.dice;
        self.now += match dice.below(300) {
            0 => dice.below(20_000 * SECOND),
            1..=5 => dice.below(5 * SECOND),
            6..=120 => 0,
            121..=200 => 1,
            _ => dice.below(100_000),
        };
        match dice.below(60) {
            0 => self.now.saturating_sub(dice.below(90_000) * SECOND),
            1..=3 => self.now.saturating_sub(dice.below(300_000)),
            4..=6 => self.now - self.now % 100_000,
            _ => self.now,
        }
    }
}
