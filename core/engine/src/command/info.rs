//! `RL.INFO key [LEASES [count]]`: shows what a key holds, or who holds its leases.

use std::collections::BTreeMap;

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::{Leases, Share};
use ratelimit_core::{Figure, Length, Limits, Name, Span};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, info};

use super::entry::Command;
use crate::host::Host;
use crate::key::{Description, Key, describe};
use crate::reply::{FieldValue, Fields, Reply};
use crate::slot::Access;
use crate::waiting::{Turns, Waits};

pub struct Info;

/// The most tenants in a reply.
const MOST_TENANTS: usize = 100;
/// The most tenants that are read and put in order. Of more, those that wait or are hungry come first, then some of the others.
const MOST_IN_ORDER: usize = 1000;

impl Command for Info {
    const DOCUMENTATION: Documentation = docs::INFO;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let most_leases = call.parse(2.., info)?;
        let Some(key) = describe(call, 1, call.clock())? else {
            return missing(call);
        };
        let mut fields = fields(key.value);
        if !key.limits.is_empty() {
            let limits = key.limits.into_iter().map(self::fields);
            fields.push(("limits".into(), FieldValue::Maps(limits.collect())));
        }
        fields.extend(shared(call)?);
        if let Some(most) = most_leases {
            let leases = leases(call, 1, most)?.into_iter().map(Lease::fields);
            fields.push(("leases".into(), FieldValue::Maps(leases.collect())));
        }
        // -1 as in `PEXPIRETIME`: the key does not expire, for example after `PERSIST`.
        let expires = key.expiry.map_or(-1, u64::cast_signed);
        fields.push(("expires_at_ms".into(), FieldValue::Integer(expires)));
        fields.push(("waiting".into(), number(Figure::Count(call.waiting(1) as u64))));
        Ok(Reply::Map(fields))
    }
}

/// A missing key for whose limits callers wait or tenants are hungry has the fields of those, and nothing else.
fn missing(call: &impl Host) -> Result<Reply, Error> {
    let mut fields = shared(call)?;
    let waiting = call.waiting(1);
    if fields.is_empty() && waiting == 0 {
        return Ok(Reply::Null);
    }
    fields.push(("waiting".into(), number(Figure::Count(waiting as u64))));
    Ok(Reply::Map(fields))
}

/// The fields of the tenants that share the key; none if there are no tenants.
fn shared(call: &impl Host) -> Result<Fields, Error> {
    let (tenants, count) = tenants(call, 1)?;
    if tenants.is_empty() {
        return Ok(Fields::new());
    }
    let tenants = tenants.into_iter().map(|(name, tenant)| tenant.fields(name)).collect();
    Ok(vec![
        ("tenants".into(), FieldValue::Maps(tenants)),
        ("tenants_count".into(), number(Figure::Count(count))),
    ])
}

/// Tenants with their names.
pub(super) type Tenants = Vec<(Vec<u8>, Tenant)>;

/// What a tenant holds, and who waits for it.
#[derive(Default)]
pub(super) struct Tenant {
    pub(super) weight: u32,
    pub(super) held: u64,
    pub(super) waiting: usize,
    /// Whether it waits or is hungry.
    is_in_line: bool,
}

/// Lists tenants that hold leases of the key, wait or are hungry, and counts all of them. Those that hold most for their weight
/// come first.
pub(super) fn tenants(call: &impl Host, place: usize) -> Result<(Tenants, u64), Error> {
    let mut tenants: BTreeMap<Vec<u8>, Tenant> = BTreeMap::new();
    let (in_line, _) = call.count_tenants(place);
    // They come first, so of more no others are shown.
    let most = if in_line > MOST_IN_ORDER { MOST_TENANTS } else { MOST_IN_ORDER };
    for waiting in call.tenants(place, most) {
        let tenant = tenants.entry(waiting.name).or_default();
        tenant.weight = waiting.weight;
        tenant.waiting += waiting.callers;
        tenant.is_in_line = true;
    }
    // Up to this many are all here, each once, in however many lines it is.
    let (now, mut count) =
        (call.clock(), if in_line <= MOST_IN_ORDER { tenants.len() } else { in_line } as u64);
    let key = Key::open(call, place, Access::Read)?;
    if let Some(stored) = key.state::<Leases>(Length::NONE) {
        when_decided(&Concurrent::READER, stored, now, |stored, now, _| {
            call.follow(place, Name::of::<Leases>(Length::NONE), Some((stored, now)));
            for (name, tenant) in &mut tenants {
                tenant.held = stored.share(name, now).held;
            }
            let unnamed = Some((&[][..], stored.share(&[], now))).filter(|(_, share)| share.held > 0);
            let both = if in_line <= MOST_IN_ORDER {
                tenants.values().filter(|tenant| tenant.held > 0).count()
            } else {
                call.count_tenants(place).1
            };
            count = (stored.holders(now) + u64::from(unnamed.is_some()) + count).saturating_sub(both as u64);
            let holders = stored.some_shares(now, MOST_IN_ORDER, MOST_TENANTS).into_iter().chain(unnamed);
            let mut holders: Vec<_> = holders.filter(|(name, _)| !tenants.contains_key(*name)).collect();
            holders.sort_unstable_by(|(a, one), (b, other)| other.cmp_load(one).then(a.cmp(b)));
            for (name, Share { held, weight }) in holders.into_iter().take(MOST_TENANTS) {
                tenants.insert(name.to_vec(), Tenant { weight, held, ..Tenant::default() });
            }
        });
    }
    // Without a name, there are no tenants.
    if tenants.last_key_value().is_none_or(|(name, _)| name.is_empty()) {
        return Ok((Vec::new(), 0));
    }
    let mut tenants: Tenants = tenants.into_iter().collect();
    let share = |tenant: &Tenant| Share { held: tenant.held, weight: tenant.weight };
    let is_first = |tenant: &Tenant| tenant.is_in_line && count > MOST_IN_ORDER as u64;
    // The sort is stable, so equals stay in the order of their names.
    tenants.sort_by(|(_, a), (_, b)| is_first(b).cmp(&is_first(a)).then(share(b).cmp_load(&share(a))));
    tenants.truncate(MOST_TENANTS);
    // Of more tenants in the line than are put in order, some come as holders only.
    for (name, tenant) in
        tenants.iter_mut().filter(|(_, tenant)| !tenant.is_in_line && in_line > MOST_IN_ORDER)
    {
        tenant.waiting = call.waiting_of(place, name);
    }
    Ok((tenants, count))
}

impl Tenant {
    fn fields(self, name: Vec<u8>) -> Fields {
        vec![
            ("name".into(), FieldValue::Bytes(name)),
            ("weight".into(), number(Figure::Count(self.weight.into()))),
            ("held".into(), number(Figure::Count(self.held))),
            ("waiting".into(), number(Figure::Count(self.waiting as u64))),
        ]
    }
}

/// A lease that is held.
pub(super) struct Lease {
    pub(super) id: Vec<u8>,
    pub(super) cost: u64,
    pub(super) left: Span,
    fence: Option<u64>,
    pub(super) is_shadow: bool,
}

/// Lists the leases of the key's limit and of its shadow, at most `most`. Those that end first come first.
pub(super) fn leases(call: &impl Host, place: usize, most: usize) -> Result<Vec<Lease>, Error> {
    let now = call.clock();
    let key = Key::open(call, place, Access::Read)?;
    let mut leases = Vec::new();
    for table in [Length::NONE, Length::NONE.in_shadow()] {
        let Some(stored) = key.state::<Leases>(table) else { continue };
        when_decided(&Concurrent::READER, stored, now, |stored, now, lag| {
            leases.extend(stored.soonest(now, most).map(|(id, held)| Lease {
                id: id.to_vec(),
                cost: held.cost,
                left: held.left.plus(lag),
                fence: stored.token(id),
                is_shadow: table.is_shadow(),
            }));
        });
    }
    // Each table is in order already, and the sort is stable.
    leases.sort_by_key(|lease| lease.left);
    leases.truncate(most);
    Ok(leases)
}

impl Lease {
    fn fields(self) -> Fields {
        let mut fields: Fields = vec![
            ("id".into(), FieldValue::Bytes(self.id)),
            ("cost".into(), number(Figure::Count(self.cost))),
            ("left_ms".into(), number(Figure::Length(self.left))),
        ];
        if let Some(token) = self.fence {
            fields.push(("fence".into(), token.into()));
        }
        if self.is_shadow {
            fields.push(("shadow".into(), FieldValue::Integer(1)));
        }
        fields
    }
}

/// The fields of a value or a limit: its name, then its figures.
fn fields(description: Description) -> Fields {
    let (limiter, mode) = description.name.kind.title();
    let mut fields = vec![
        ("limiter".into(), FieldValue::Text(limiter.into())),
        ("mode".into(), FieldValue::Text(mode.into())),
    ];
    let length = description.name.length;
    if length.span() > Span::ZERO {
        fields.push(("length_ms".into(), number(Figure::Length(length.span()))));
    }
    if length.is_shadow() {
        fields.push(("shadow".into(), FieldValue::Integer(1)));
    }
    fields.extend(description.figures.into_iter().map(|(name, figure)| (name.into(), number(figure))));
    fields
}

fn number(figure: Figure) -> FieldValue {
    FieldValue::Integer(match figure {
        Figure::Real(number) => return FieldValue::Real(number),
        Figure::Signed(number) => number,
        Figure::Count(number) => number.cast_signed(),
        Figure::Length(span) => span.as_millis_up().cast_signed(),
        Figure::At(time) => time.as_micros().cast_signed(),
    })
}
