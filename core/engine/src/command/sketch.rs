//! `RL.SKETCH key item max_burst count period [options]`: a GCRA for each of unboundedly many items.

use ratelimit_core::limiter::Sketched;
use ratelimit_core::state::{Blueprint, Cells};
use ratelimit_core::{Answer, Length, State};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, SketchCall, sketch};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::Key;
use crate::reply::Reply;
use crate::slot::{Access, Slot};

pub struct Sketch;

impl Command for Sketch {
    const DOCUMENTATION: Documentation = docs::SKETCH;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let sketching = call.parse(2.., sketch)?;
        if sketching.cost == 0 {
            return look(call, &sketching).map(Reply::Answer);
        }
        let answer = take(call, &sketching)?;
        call.record(1, Counter::Sketch, Outcome::of(answer.verdict));
        Ok(Reply::Answer(answer))
    }
}

fn take(call: &impl Host, sketching: &SketchCall<'_>) -> Result<Answer, Error> {
    let SketchCall { item, sketch, cost, at, .. } = sketching;
    let clock = call.clock();
    let mut key = Key::open(call, 1, Access::Write)?;
    let begin = || Blueprint { shape: sketching.shape, hash_key: [call.random(), call.random()] };
    let cells = cells(&key, sketching)?;
    let Sketched { answer, change, now, reset } =
        sketch.decide(cells, begin, item, *cost, at.unwrap_or(clock));
    if let Some(change) = change {
        key.change_lone(Length::NONE, Cells::blank, |_, out| Cells::encode_change(&change, out))?;
        key.commit(clock, now, reset);
        key.publish();
    }
    Ok(answer)
}

/// The answer that a request would get. It changes nothing.
pub(super) fn look(call: &impl Host, sketching: &SketchCall<'_>) -> Result<Answer, Error> {
    let SketchCall { item, sketch, cost, at, .. } = sketching;
    let key = Key::open(call, 1, Access::Read)?;
    Ok(sketch.peek(cells(&key, sketching)?, item, *cost, at.unwrap_or_else(|| call.clock())))
}

/// The cells of a key; `None` if it is missing. A sketch of another shape than the call's is an error.
pub(super) fn cells<'k>(
    key: &'k Key<impl Slot>,
    sketching: &SketchCall<'_>,
) -> Result<Option<&'k Cells>, Error> {
    match key.lone::<Cells>()? {
        Some(cells) if !sketching.is_for(cells.blueprint().shape) => {
            Err(sketching.of_other_shape(cells.blueprint().shape))
        }
        cells => Ok(cells),
    }
}
