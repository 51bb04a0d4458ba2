//! How callers are served whose turn it is.

use ratelimit_core::Span;
use ratelimit_core::line::{Caller, Comer as Comes};

use super::event::{Broken, Effect, HUNGER, NO_WAKE_IS_LOST, ORDER, holds};
use super::node::{Node, Waits};
use super::size::{POOL, RATE};
use super::trial::{costs, limits_of, text};
use crate::fair::Comer;

/// The most trials after one event.
const MOST_TRIALS: usize = 200;
const MILLISECOND: Span = Span::from_millis(1);

impl Node {
    /// Tries the callers whose turn it is, and looks at tables, until nothing is due.
    pub fn serve(&mut self, effect: &mut Effect) -> Result<(), Broken> {
        for _ in 0..MOST_TRIALS {
            if let Some(caller) = self.lines.due(self.now) {
                self.try_again(caller, effect)?;
            } else if let Some((key, name)) = self.lines.look(self.now.plus(MILLISECOND)) {
                self.pool.iter_mut().for_each(|pool| pool.free_ended(9));
                self.lines.follow(&key, name, self.pool.as_ref(), self.now, self.now);
            } else {
                self.lines.rest();
                let hungry: usize = self.model.limits.iter().map(|limit| limit.hungry.len()).sum();
                let shipped = self.lines.hungry();
                return holds(hungry == shipped, HUNGER, || {
                    format!("{shipped} tenants are hungry, and {hungry} in the model")
                });
            }
        }
        Err(Broken::new(NO_WAKE_IS_LOST, "callers are tried again and again"))
    }

    fn try_again(&mut self, caller: Caller, effect: &mut Effect) -> Result<(), Broken> {
        let Some(place) = self.waiting.iter().position(|waits| waits.caller == caller) else {
            return Err(Broken::new(NO_WAKE_IS_LOST, "a caller is tried that does not wait"));
        };
        let Waits { number, call, .. } = self.waiting[place];
        self.model.try_again(number);
        let expected = self.model.find(number).map_or(Vec::new(), |waiting| waiting.stands.clone());
        let stands = self.takes(call, Comes::Waits(caller), effect)?;
        self.agrees(ORDER, call, &expected, &limits_of(&stands))?;
        if stands.is_empty() {
            let asked = costs(&self.of_model(call));
            effect.tell(|| format!("; {} is admitted, who asked for {asked}", text(call.tenant)));
            self.lines.leave(caller);
            self.waiting.remove(place);
        } else {
            self.lines.stay(caller, self.now, stands);
        }
        Ok(())
    }

    /// Nothing is due in the model either: the first caller of each line is refused there.
    pub fn is_at_rest(&self) -> Result<(), Broken> {
        for limit in [POOL, RATE] {
            let Some(first) = self.model.first(limit).and_then(|first| self.model.find(first)) else {
                continue;
            };
            let refusing = self.model.refusing(&first.call, Comer::Waits(first.caller));
            holds(refusing.contains(&limit), NO_WAKE_IS_LOST, || {
                format!("the first of the line could go, who asked for {}", costs(&first.call))
            })?;
        }
        Ok(())
    }
}
