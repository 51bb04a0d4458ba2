//! Commands whose state has a key to itself: `RL.SHED` and `RL.SKETCH`.

use ratelimit_core::State;
use ratelimit_core::limiter::{Amount, Sketched};
use ratelimit_core::state::{Blueprint, Cells};
use ratelimit_language::{SketchCall, shed, sketch};

use super::{Answered, Memory, Value, first};
use crate::reply::Reply;
use crate::trial::falls;

/// The key of a sketch's hash, which a server draws at random. With any key, the few users of a trial hardly ever share all
/// their cells.
const HASH_KEY: [u64; 2] = [1, 2];

impl Memory {
    /// `RL.SHED key utilization [options]`.
    pub(super) fn shed(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let report = shed(&mut arguments)?;
        let at = self.at(report.at)?;
        let before = match self.keys.get(key) {
            None => report.shed.fresh(at),
            Some(Value::Amount(amount, _)) => *amount,
            Some(other) => return Err(other.is_not::<Amount>()),
        };
        let amount = report.shed.report(&before, at, report.utilization);
        let until = at.max(amount.last()).plus(report.shed.silence());
        self.keys.insert(key.to_vec(), Value::Amount(amount, until));
        let chance = report.shed.chance(&amount);
        Ok(Reply::Chance(falls(&mut self.dice, chance), chance).into())
    }

    /// `RL.SKETCH key item <parameters> [options]`.
    pub(super) fn sketch(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let sketching = sketch(&mut arguments)?;
        let SketchCall { item, cost, at, .. } = sketching;
        if cost == 0 {
            return self.look_at_item(key, &sketching);
        }
        let at = self.at(at)?;
        let begin = || Blueprint { shape: sketching.shape, hash_key: HASH_KEY };
        let cells = self.cells(key, &sketching)?;
        let Sketched { answer, change, now, reset } = sketching.sketch.decide(cells, begin, item, cost, at);
        if let Some(change) = change {
            let blank = || Value::Cells(Cells::blank(), now);
            if let Value::Cells(cells, until) = self.keys.entry(key.to_vec()).or_insert_with(blank) {
                cells.apply(change);
                *until = now.plus(reset);
            }
        }
        Ok(Reply::Five(answer.integers()).into())
    }

    pub(super) fn look_at_item(&self, key: &[u8], sketching: &SketchCall<'_>) -> Answered {
        let SketchCall { item, sketch, cost, at, .. } = sketching;
        let answer = sketch.peek(self.cells(key, sketching)?, item, *cost, self.at(*at)?);
        Ok(Reply::Five(answer.integers()).into())
    }

    /// The cells of a key. A sketch of another shape than the call's is an error.
    fn cells(&self, key: &[u8], sketching: &SketchCall<'_>) -> Answered<Option<&Cells>> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::Cells(cells, _)) if sketching.is_for(cells.blueprint().shape) => Ok(Some(cells)),
            Some(Value::Cells(cells, _)) => Err(sketching.of_other_shape(cells.blueprint().shape).into()),
            Some(other) => Err(other.is_not::<Cells>()),
        }
    }
}
