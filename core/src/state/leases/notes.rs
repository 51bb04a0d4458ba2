//! What a change makes a table note beside its leases. Most changes have none of it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::adaptive::{decode_limit, encode_limit};
use super::tenants::{MAX_TENANT, MAX_WEIGHT};
use crate::adapt::Adapted;
use crate::count::MAX_COUNT;
use crate::state::codec::{Reader, put, put_bytes, put_short};

/// The greatest fencing token, which any client can read as a number.
pub const MAX_TOKEN: u64 = MAX_COUNT;

#[derive(Clone, Copy, Default, Debug)]
pub struct Notes<'a> {
    /// The name and the weight of the tenant of the lease that is taken.
    pub tenant: Option<(&'a [u8], u32)>,
    /// Whether the table notes when that lease was taken.
    pub timed: bool,
    /// The fencing token that the lease is given.
    pub token: Option<u64>,
    /// The table's adaptive limit. Its instants are ages at the instant of the change.
    pub limit: Option<Adapted>,
}

// The parts of a change that are notes. All but `LIMIT` need a lease that is held. `TIMED` has no bytes of its own.
const TENANT: u8 = 4;
const TIMED: u8 = 8;
const LIMIT: u8 = 16;
const TOKEN: u8 = 32;

pub(super) fn part(present: bool, bit: u8) -> u8 {
    if present { bit } else { 0 }
}

impl Notes<'_> {
    #[cold]
    pub(super) fn parts(&self) -> u8 {
        part(self.tenant.is_some(), TENANT)
            | part(self.timed, TIMED)
            | part(self.limit.is_some(), LIMIT)
            | part(self.token.is_some(), TOKEN)
    }

    #[cold]
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        if let Some((name, weight)) = self.tenant {
            encode_tenant(out, name, weight);
        }
        if let Some(limit) = &self.limit {
            encode_limit(limit, out);
        }
        if let Some(token) = self.token {
            put(out, token);
        }
    }

    /// Reads the notes of a change with these parts, which holds a lease or does not.
    #[cold]
    pub(super) fn decode<'a>(parts: u8, holds: bool, reader: &mut Reader<'a>) -> Option<Box<Notes<'a>>> {
        let has = |bit: u8| parts & bit != 0;
        if parts > TENANT | TIMED | LIMIT | TOKEN {
            return reader.newer();
        }
        if has(TENANT | TIMED | TOKEN) && !holds {
            return None;
        }
        let tenant = if has(TENANT) { Some(decode_tenant(reader)?) } else { None };
        let limit = if has(LIMIT) { Some(decode_limit(reader)?) } else { None };
        let token =
            if has(TOKEN) { Some(reader.word_up_to(MAX_TOKEN).filter(|token| *token > 0)?) } else { None };
        Some(Box::new(Notes { tenant, timed: has(TIMED), token, limit }))
    }
}

pub(super) fn encode_tenant(out: &mut Vec<u8>, name: &[u8], weight: u32) {
    put_bytes(out, name);
    put_short(out, weight.into());
}

pub(super) fn decode_tenant<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8], u32)> {
    let name = reader.bytes().filter(|name| (1..=MAX_TENANT).contains(&name.len()))?;
    let weight = reader.short_up_to(MAX_WEIGHT.into()).filter(|weight| *weight > 0)?;
    Some((name, u32::try_from(weight).ok()?))
}
