//! What must hold after each event, and in each state.

use ratelimit_core::line::Turn;

use super::event::{Broken, CAPACITY, Effect, Event, HUNGER, TURNS, holds};
use super::node::{Node, key_of, name_of};
use super::size::{POOL, RATE};

/// A cost of one, by a weight of one.
const UNIT: u128 = 1 << 32;

/// Checks a step.
pub fn of_step(before: &Node, after: &Node, event: Event, effect: &Effect) -> Result<(), Broken> {
    capacity(after)?;
    for limit in [POOL, RATE] {
        for tenant in 0..before.size.tenants {
            let tenant = u8::try_from(tenant).unwrap_or(u8::MAX);
            let turn = |node: &Node| node.lines.turn(&key_of(limit), Node::name(limit), name_of(tenant));
            let grants = effect.grants[limit][usize::from(tenant)];
            if let Some(later) = turn(after) {
                let earlier = turn(before).filter(|earlier| !is_anew(after, *earlier, later));
                moves(limit, earlier, later, grants)?;
                if let Some(earlier) = earlier.filter(|_| limit == RATE && !effect.grants(RATE)) {
                    settles(before, tenant, (earlier, later), event)?;
                }
            }
        }
    }
    Ok(())
}

/// Checks a state.
pub fn of_state(node: &Node) -> Result<(), Broken> {
    node.serves_nobody()?;
    node.is_at_rest()?;
    let hungry = node.model.limits.iter().any(|limit| !limit.hungry.is_empty());
    if node.waiting.is_empty() && !hungry {
        let lines = &node.lines;
        let has_line = [POOL, RATE].iter().any(|limit| lines.has_line(&key_of(*limit), Node::name(*limit)));
        let is_due =
            lines.next_due().is_some() || lines.next_look().is_some() || lines.next_deadline().is_some();
        holds(lines.is_empty() && !has_line && !is_due, HUNGER, || {
            "nobody waits and nobody is hungry, and yet there are lines".to_owned()
        })?;
    }
    Ok(())
}

/// What is held is at most the capacity, and the table counts it alike.
pub fn capacity(node: &Node) -> Result<(), Broken> {
    let held: u64 = node.works.iter().filter_map(|works| works.lease).map(|lease| lease.cost).sum();
    let stored = node.pool.as_ref().map_or(0, |pool| pool.cost(node.now));
    let most = node.size.capacities[POOL];
    holds(held <= most && held == stored, CAPACITY, || {
        format!("{held} are held of {most}, and {stored} in the table")
    })
}

/// Whether a line was forgotten and began anew within one event, as a caller of two limits moved to it.
fn is_anew(after: &Node, earlier: Turn, later: Turn) -> bool {
    let moves = after.waiting.iter().any(|waits| after.asked(waits.call).count() > 1);
    moves && later.passed < earlier.passed
}

/// S - open does not fall, and each grant raises it. Who begins to wait has at least V.
fn moves(limit: usize, earlier: Option<Turn>, later: Turn, grants: u8) -> Result<(), Broken> {
    let rests = |turn: Turn| turn.start.checked_sub(turn.open);
    let at_least = match earlier {
        Some(earlier) if limit == RATE => {
            Some(rests(earlier).map_or(u128::MAX, |rests| rests + UNIT * u128::from(grants)))
        }
        Some(earlier) => Some(earlier.start),
        None => Some(0),
    };
    holds(rests(later) >= at_least, TURNS, || format!("a turn goes back: from {earlier:?} to {later:?}"))?;
    let passed = earlier.map_or(0, |earlier| earlier.passed);
    holds(later.passed >= passed, TURNS, || format!("V falls: from {earlier:?} to {later:?}"))
}

/// What a settlement moves a tenant by, which waits meanwhile.
fn settles(before: &Node, tenant: u8, (earlier, later): (Turn, Turn), event: Event) -> Result<(), Broken> {
    let Event::Settle(place, used) = event else { return Ok(()) };
    let works = &before.works[usize::from(place)];
    let Some(hold) = works.hold.filter(|_| works.tenant == tenant) else { return Ok(()) };
    let (granted, used) = (u128::from(hold.granted), u128::from(used));
    let rise = UNIT * used.saturating_sub(granted);
    let fall = (UNIT * granted.saturating_sub(used.max(1))).min(earlier.open);
    let is_moved = later.start + fall == earlier.start + rise;
    let open = earlier.open.saturating_sub(UNIT * granted.saturating_sub(1));
    holds(is_moved && later.open == open, TURNS, || {
        format!("a settlement of {granted} at {used} moves a turn from {earlier:?} to {later:?}")
    })
}
