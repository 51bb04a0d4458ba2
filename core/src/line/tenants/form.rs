//! The form of the tenants of a line, for `line/form.rs`.

use alloc::vec::Vec;

use super::{Hunger, Idle, Seen, Table, Tenant, Tenants, Ticket};
use crate::line::claim::Caller;
use crate::line::form::{Turn, Words};
use crate::line::order::{Place, Tag, stretch};
use crate::state::Moment;

impl Tenants {
    /// The numbers of its callers and hungers.
    pub(in crate::line) fn numbers(&self) -> impl Iterator<Item = Caller> {
        let own = |tenant: &Tenant| tenant.hunger.map(|hunger| hunger.caller);
        self.by_name.values().flat_map(move |tenant| tenant.callers.keys().copied().chain(own(tenant)))
    }

    pub(in crate::line) fn turn(&self, name: &[u8]) -> Option<Turn> {
        let Tenant { start, open, .. } = self.by_name.get(name)?;
        Some(Turn { passed: self.passed, start: *start, open: *open })
    }

    /// Writes the form of the line of a key.
    pub(in crate::line) fn form(&self, key: u64, words: &mut Words<'_>) {
        let Tenants {
            passed,
            by_name,
            idle,
            order,
            ends,
            asked,
            table,
            expiring,
            unread,
            unread_again,
            callers,
            holders,
        } = self;
        let far = stretch(words.view.far, 1);
        let starts = Starts::of(self, far, stretch(words.view.moved, 1));
        let unread = [u64::from(unread.is_some()), u64::from(*unread_again)];
        words.put(&[unread[0], unread[1], *callers as u64, *holders as u64]);
        for (name, tenant) in by_name {
            tenant_form(key, name, tenant, &starts, words);
        }
        for (name, Idle { finish, open, weight }) in idle {
            let finish = starts.finish(*finish);
            words.put_of(name, &[key, 1, finish, starts.open(*open), u64::from(*weight)]);
        }
        order.each(&mut |tree, (load, weight), tag, caller, entry| {
            // A tag moves with the start of its tenant.
            let start = by_name.get(&entry.tenant).map_or(*passed, |tenant| tenant.start);
            let above = if tree == 0 { 0 } else { tag.abs_diff(start) };
            let tag = signed(i128::try_from(above).unwrap_or(i128::MAX));
            let (caller, of) = (words.rank(caller), words.rank(entry.caller));
            let until = words.left_of(entry.until);
            let place = [key, 2, tree, load, u64::from(weight), tag, caller];
            words.put_of(&entry.tenant, &place);
            words.put_of(&entry.tenant, &[of, entry.cost, entry.most, until]);
        });
        for (end, name) in ends {
            words.put_of(name, &[key, 3, words.left(*end)]);
        }
        for (id, name) in asked {
            words.put_of(name, &[key, 4, (words.view.id)(*id)]);
        }
        let leases = (words.view.table)(key);
        let left = |moment: Moment| {
            let now = leases.map_or(words.view.now.as_micros(), |leases| leases.micros(words.view.now));
            moment.micros().saturating_sub(now)
        };
        let expiring: Vec<_> = expiring.iter().map(|(moment, name)| (left(*moment), name)).collect();
        for (left, name) in expiring {
            words.put_of(name, &[key, 5, left]);
        }
        let Some(Table { seen, is_shared, held, next_end }) = table else { return words.put(&[0]) };
        words.put(&[1, u64::from(*is_shared), *held, words.left_of(*next_end)]);
        let Some(Seen { changes, moment }) = seen else { return words.put(&[2]) };
        let is_past = leases.is_some_and(|leases| *moment < leases.moment(words.view.now));
        words.put(&[u64::from(is_past), u64::from(changes.is_some())]);
        let changed = changes.and_then(|since| leases?.changed(since));
        words.put(&[u64::from(changed.is_some())]);
        for name in changed.into_iter().flatten() {
            words.put_of(name, &[key, 6]);
        }
    }
}

fn tenant_form(key: u64, name: &[u8], tenant: &Tenant, starts: &Starts, words: &mut Words<'_>) {
    let Tenant {
        start,
        finish,
        open,
        held,
        next_end,
        is_holder,
        weight,
        granted,
        callers,
        is_of_rate,
        critical,
        away,
        hunger,
        place,
    } = tenant;
    // A tenant of leases begins anew wherever its last grant ended, and nothing of it is settled.
    let (finish, open) = if *is_of_rate { (starts.finish(*finish), starts.open(*open)) } else { (0, 0) };
    let next_end = next_end.map_or(u64::MAX, |end| {
        let leases = (words.view.table)(key);
        let now = leases.map_or(words.view.now.as_micros(), |leases| leases.micros(words.view.now));
        end.micros().saturating_sub(now)
    });
    let place = match place {
        None => 0,
        Some((is_hungry, Place::Critical(_))) => 1 + u64::from(*is_hungry),
        Some((is_hungry, Place::Tag(..))) => 3 + u64::from(*is_hungry),
        Some((is_hungry, Place::Without(..))) => 5 + u64::from(*is_hungry),
        Some((is_hungry, Place::With(..))) => 7 + u64::from(*is_hungry),
    };
    words.put_of(name, &[key, 0, starts.start(*start), finish, open, *held, next_end, place]);
    let [is_holder, is_of_rate] = [u64::from(*is_holder), u64::from(*is_of_rate)];
    let counts = [*critical as u64, *away as u64, callers.len() as u64];
    words.put_of(name, &[u64::from(*weight), u64::from(*granted), is_holder, is_of_rate]);
    words.put_of(name, &counts);
    for (caller, ticket) in callers {
        words.put_of(name, &[words.rank(*caller)]);
        words.put_of(name, &ticket.words());
    }
    if let Some(Hunger { caller, id, ticket, critical, until }) = hunger {
        let (caller, id, until) = (words.rank(*caller), (words.view.id)(*id), words.left(*until));
        words.put_of(name, &[caller, id, u64::from(*critical), until]);
        words.put_of(name, &ticket.words());
    }
}

impl Ticket {
    fn words(self) -> [u64; 3] {
        let Ticket { cost, weight, most } = self;
        [cost, weight.map_or(0, u64::from), most.unwrap_or(u64::MAX)]
    }
}

/// The starts of the tenants below V, each with how far below V it is taken to be.
struct Starts {
    passed: Tag,
    moved: Tag,
    below: Vec<(Tag, Tag)>,
}

impl Starts {
    /// Only the order of tags below V matters, and tags are not far from starts. So a wide gap is as good as another one.
    fn of(tenants: &Tenants, far: Tag, moved: Tag) -> Starts {
        let starts = tenants.by_name.values().map(|tenant| tenant.start);
        let mut starts: Vec<Tag> = starts.filter(|start| *start < tenants.passed).collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        let (mut next, mut depth) = (tenants.passed, 0);
        let below = starts.into_iter().map(|start| {
            depth += (next - start).min(far);
            next = start;
            (start, depth)
        });
        Starts { passed: tenants.passed, moved, below: below.collect() }
    }

    /// Where a start is taken to be, from V on.
    fn start(&self, start: Tag) -> u64 {
        match self.below.iter().find(|(below, _)| *below == start) {
            Some((_, depth)) => signed(-i128::try_from(*depth).unwrap_or(i128::MAX)),
            None => signed(i128::try_from(start - self.passed).unwrap_or(i128::MAX)),
        }
    }

    /// Where a grant ended. It counts only if it is above V once settlements have moved it.
    fn finish(&self, finish: Tag) -> u64 {
        let above = (finish + self.moved).saturating_sub(self.passed);
        signed(i128::try_from(above).unwrap_or(i128::MAX))
    }

    /// No more of it is used than settlements move.
    fn open(&self, open: Tag) -> u64 {
        u64::try_from(open.min(self.moved)).unwrap_or(u64::MAX)
    }
}

fn signed(number: i128) -> u64 {
    i64::try_from(number).unwrap_or(i64::MAX).cast_unsigned()
}
