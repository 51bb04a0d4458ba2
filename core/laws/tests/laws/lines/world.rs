//! Limits with callers that wait for them, and the same lines in plain vectors.

use std::collections::BTreeSet;

use ratelimit_core::line::{Caller, Claim, Comer};
use ratelimit_core::state::{Leases, Log};
use ratelimit_core::{Length, Lines, Name, Span, Stand, Time, Verdict};

use super::super::T0;

/// The number of keys. Each has leases and a bucket.
pub const KEYS: u8 = 3;
pub const LIMITS: usize = 2 * KEYS as usize;

/// What a call asks of a limit.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// The index of the limit. An even one has leases.
    pub limit: usize,
    /// At most [`Limit::capacity`].
    pub cost: u64,
    pub critical: bool,
}

/// What a limit has admitted and not got back.
#[derive(Clone, Debug)]
pub enum Limit {
    /// Each lease: its cost, and when it ends. Without a `ttl` they end only when they are released.
    Leases { capacity: u64, ttl: Option<Span>, held: Vec<(u64, Time)> },
    /// Pays off a cost of 1 in each interval. At `full`, nothing is owed.
    Bucket { capacity: u64, interval: Span, full: Time },
}

impl Limit {
    pub fn leases(capacity: u64, ttl: Option<u64>) -> Limit {
        Limit::Leases { capacity, ttl: ttl.map(Span::from_micros), held: Vec::new() }
    }

    pub fn bucket(capacity: u64, interval: u64) -> Limit {
        Limit::Bucket { capacity, interval: Span::from_micros(interval), full: T0 }
    }

    pub fn capacity(&self) -> u64 {
        match self {
            Limit::Leases { capacity, .. } | Limit::Bucket { capacity, .. } => *capacity,
        }
    }

    /// The verdict if no caller waited. Without a retry, time alone makes no room.
    fn judge(&self, now: Time, cost: u64) -> Verdict {
        match self {
            Limit::Leases { capacity, held, .. } => {
                let mut held: Vec<_> = held.iter().filter(|(_, ends)| *ends > now).collect();
                held.sort_by_key(|(_, ends)| *ends);
                let mut used: u64 = held.iter().map(|(cost, _)| *cost).sum();
                let mut last = now;
                for (of_lease, ends) in held {
                    if used + cost <= *capacity {
                        break;
                    }
                    used -= of_lease;
                    last = *ends;
                }
                match last {
                    last if last == now => Verdict::ADMIT,
                    Time::END => Verdict::NEVER,
                    last => Verdict::refuse(last.since(now)),
                }
            }
            Limit::Bucket { capacity, interval, full } => {
                let room = now.plus(interval.times(*capacity));
                let after = (*full).max(now).plus(interval.times(cost));
                if after <= room { Verdict::ADMIT } else { Verdict::refuse(after.since(room)) }
            }
        }
    }

    fn charge(&mut self, now: Time, cost: u64) {
        match self {
            Limit::Leases { ttl, held, .. } => {
                held.push((cost, ttl.map_or(Time::END, |ttl| now.plus(ttl))));
            }
            Limit::Bucket { interval, full, .. } => *full = (*full).max(now).plus(interval.times(cost)),
        }
    }

    /// Ends all leases that time does not end.
    fn give_back(&mut self) -> bool {
        match self {
            Limit::Leases { held, .. } => {
                let before = held.len();
                held.retain(|(_, ends)| *ends < Time::END);
                held.len() < before
            }
            Limit::Bucket { .. } => false,
        }
    }
}

/// What happens. Numbers of leases and callers are taken modulo how many there are.
#[derive(Clone, Debug)]
pub enum Event {
    /// A call. Without a timeout it waits for ever.
    Arrive {
        wishes: Vec<Wish>,
        blocks: bool,
        timeout: Option<u64>,
    },
    /// A lease ends before its time.
    Release {
        limit: usize,
        lease: usize,
    },
    /// A lease lasts longer.
    Renew {
        limit: usize,
        lease: usize,
        micros: u64,
    },
    /// A bucket is charged without a decision.
    Force {
        limit: usize,
        cost: u64,
    },
    /// A bucket gets a cost back.
    Refund {
        limit: usize,
        cost: u64,
    },
    Pass(u64),
    /// A caller disconnects.
    Leave(usize),
    Mark(u8),
    MarkAll,
    Nudge(usize),
    /// At most this many callers are tried.
    Serve(usize),
}

/// A caller that waits, as the test knows it.
#[derive(Debug)]
struct Waiting {
    caller: Caller,
    wishes: Vec<Wish>,
    deadline: Option<Time>,
    /// The limits that refused when the caller was last tried, and when they may have room.
    stands: Vec<(usize, Option<Time>)>,
}

/// The deadline of a caller that waits for ever.
const NEVER: Time = T0.plus(Span::CENTURY);

/// The key and the name of a limit.
pub fn place(limit: usize) -> (u8, Name) {
    let key = u8::try_from(limit / 2).expect("a few keys");
    let leases = Name::of::<Leases>(Length::NONE);
    let bucket = Name::of::<Log>(Length::of(Span::from_millis(1)));
    (key, if limit.is_multiple_of(2) { leases } else { bucket })
}

pub struct World {
    pub now: Time,
    pub lines: Lines<u8>,
    limits: Vec<Limit>,
    waiting: Vec<Waiting>,
    /// The callers that were admitted after a wait.
    pub admitted: Vec<Caller>,
    /// The callers whose time passed.
    pub timed_out: Vec<Caller>,
    /// How often a caller that waits was tried.
    pub tries: usize,
    /// How often a caller may have been tried: once for each line that was marked, that woke, or whose first caller left.
    may_try: usize,
    /// The lines for which that was counted, and whose first callers have not been tried since.
    due: BTreeSet<usize>,
}

impl World {
    pub fn new(limits: Vec<Limit>) -> World {
        World {
            now: T0,
            lines: Lines::new(),
            limits,
            waiting: Vec::new(),
            admitted: Vec::new(),
            timed_out: Vec::new(),
            tries: 0,
            may_try: 0,
            due: BTreeSet::new(),
        }
    }

    pub fn happen(&mut self, event: &Event) {
        match event {
            Event::Arrive { wishes, blocks, timeout } => {
                self.arrive(wishes, *blocks, *timeout);
            }
            Event::Release { limit, lease } => self.release(*limit, *lease),
            Event::Renew { limit, lease, micros } => {
                if let Some(Limit::Leases { held, .. }) = self.limits.get_mut(*limit)
                    && let Some((_, ends)) = pick(held, *lease)
                    && *ends > self.now
                {
                    *ends = ends.plus(Span::from_micros(*micros)).min(Time::END);
                }
            }
            Event::Force { limit, cost } => {
                if matches!(self.limits[*limit], Limit::Bucket { .. }) {
                    self.limits[*limit].charge(self.now, *cost);
                }
            }
            Event::Refund { limit, cost } => {
                if let Some(Limit::Bucket { interval, full, .. }) = self.limits.get_mut(*limit) {
                    *full = full.minus(interval.times(*cost));
                    self.mark(place(*limit).0);
                }
            }
            Event::Pass(micros) => self.now = self.now.plus(Span::from_micros(*micros)),
            Event::Leave(nth) => {
                if let Some(caller) = pick(&mut self.waiting, *nth).map(|waiting| waiting.caller) {
                    self.leave(caller);
                }
            }
            Event::Mark(key) => self.mark(*key),
            Event::MarkAll => {
                self.may_mark(0..LIMITS);
                self.lines.mark_all();
            }
            Event::Nudge(count) => {
                // Any keys may be the next ones.
                self.may_mark(0..LIMITS);
                self.lines.nudge(*count);
            }
            Event::Serve(most) => {
                self.serve(*most);
            }
        }
        self.compare();
    }

    /// Makes a call. Returns its number if it waits.
    pub fn arrive(&mut self, wishes: &[Wish], blocks: bool, timeout: Option<u64>) -> Option<Caller> {
        let refusing = self.refusing(wishes, None);
        if refusing.is_empty() {
            self.charge(wishes, Caller::MAX);
            return None;
        }
        if !blocks {
            return None;
        }
        let deadline = timeout.map(|micros| self.now.plus(Span::from_micros(micros)));
        let stands = stands(wishes, &refusing);
        let caller = self.lines.enter(self.now, deadline.unwrap_or(NEVER), stands);
        assert!(self.waiting.iter().all(|waiting| waiting.caller < caller), "numbers grow");
        let stands = self.wakes(&refusing);
        self.waiting.push(Waiting { caller, wishes: wishes.to_vec(), deadline, stands });
        Some(caller)
    }

    /// Ends a lease and marks its key.
    pub fn release(&mut self, limit: usize, lease: usize) {
        if let Some(Limit::Leases { held, .. }) = self.limits.get_mut(limit)
            && !held.is_empty()
        {
            held.remove(lease % held.len());
            self.mark(place(limit).0);
        }
    }

    pub fn mark(&mut self, key: u8) {
        self.may_mark((0..LIMITS).filter(|limit| place(*limit).0 == key));
        self.lines.mark(&key);
    }

    /// Tries callers until none is due, but at most `most`. Returns how many were tried.
    pub fn serve(&mut self, most: usize) -> usize {
        let before = self.tries;
        for _ in 0..most {
            if let Some(caller) = self.lines.timed_out(self.now) {
                self.time_out(caller);
                continue;
            }
            self.count_wakes();
            let Some(caller) = self.lines.due(self.now) else {
                self.is_at_rest();
                self.due.clear();
                self.may_try = self.tries;
                break;
            };
            self.tries += 1;
            assert!(self.tries <= self.may_try, "nothing happened to the lines of {caller}");
            let is_first =
                |limit: &usize| self.line(*limit).first().is_some_and(|(_, first)| *first == caller);
            let lines: Vec<usize> = (0..LIMITS).filter(is_first).collect();
            assert_ne!(lines, [], "{caller} is not the first of a line");
            for limit in lines {
                self.due.remove(&limit);
            }
            self.try_again(caller);
        }
        self.tries - before
    }

    /// Lets time pass, and releases the leases that time does not end, until no caller waits.
    pub fn finish(&mut self) {
        for _ in 0..10_000 {
            for limit in 0..LIMITS {
                if self.limits[limit].give_back() {
                    self.mark(place(limit).0);
                }
            }
            let before = self.admitted.len();
            self.serve(usize::MAX);
            self.compare();
            if self.admitted.len() > before {
                continue;
            }
            let Some(next) = self.lines.next_due().into_iter().chain(self.lines.next_deadline()).min() else {
                break;
            };
            self.now = self.now.max(next);
        }
        assert_eq!(self.waiting.len(), 0);
        self.serve(usize::MAX);
        assert!(self.lines.is_empty());
        assert_eq!((self.lines.next_due(), self.lines.next_deadline()), (None, None));
    }

    /// The first of the callers whose time has passed is out.
    fn time_out(&mut self, caller: Caller) {
        let deadlines =
            self.waiting.iter().map(|waiting| (waiting.deadline.unwrap_or(NEVER), waiting.caller));
        let (first, of) = deadlines.min().expect("somebody waits");
        assert!(first <= self.now && of == caller, "{caller} was too early");
        let wishes = self.find(caller).wishes.clone();
        if self.refusing(&wishes, Some(caller)).is_empty() {
            self.admit(caller);
        } else {
            assert!(self.find(caller).deadline.is_some(), "{caller} would have waited for ever");
            self.timed_out.push(caller);
            self.leave(caller);
        }
    }

    fn try_again(&mut self, caller: Caller) {
        let wishes = self.find(caller).wishes.clone();
        let refusing = self.refusing(&wishes, Some(caller));
        if refusing.is_empty() {
            self.admit(caller);
            return;
        }
        let stays = |limit: &usize| refusing.iter().any(|(refuses, _)| refuses == limit);
        let left: Vec<usize> =
            self.find(caller).stands.iter().map(|(limit, _)| *limit).filter(|limit| !stays(limit)).collect();
        self.step_out(caller, &left);
        let wakes = self.wakes(&refusing);
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.caller == caller).expect("a caller");
        waiting.stands = wakes;
        self.lines.stay(caller, self.now, stands(&wishes, &refusing));
    }

    fn admit(&mut self, caller: Caller) {
        let wishes = self.find(caller).wishes.clone();
        self.charge(&wishes, caller);
        self.admitted.push(caller);
        self.leave(caller);
    }

    /// Charges the wishes of a call that is admitted. Checks that no caller comes before it.
    fn charge(&mut self, wishes: &[Wish], caller: Caller) {
        for Wish { limit, cost, critical } in wishes {
            let rank = (!critical, caller);
            let before: Vec<_> = self.line(*limit).into_iter().filter(|other| *other < rank).collect();
            assert_eq!(before, [], "{caller} was admitted to {limit} before others");
            assert!(self.limits[*limit].judge(self.now, *cost).admits());
            self.limits[*limit].charge(self.now, *cost);
        }
    }

    fn leave(&mut self, caller: Caller) {
        let left: Vec<usize> = self.find(caller).stands.iter().map(|(limit, _)| *limit).collect();
        self.step_out(caller, &left);
        self.waiting.retain(|waiting| waiting.caller != caller);
        assert!(self.lines.leave(caller) && !self.lines.waits(caller) && !self.lines.leave(caller));
    }

    /// Notes that a caller leaves lines. The next one of each may be tried.
    fn step_out(&mut self, caller: Caller, limits: &[usize]) {
        for limit in limits {
            match self.line(*limit)[..] {
                [(_, first), (_, second), ..] if first == caller => {
                    self.may_be_due(*limit);
                    self.take_wake(second, *limit);
                }
                [_] => _ = self.due.remove(limit),
                _ => (),
            }
        }
    }

    /// The limits that refuse a call, each with its retry: zero if it has room but others come first.
    fn refusing(&self, wishes: &[Wish], caller: Option<Caller>) -> Vec<(usize, Option<Span>)> {
        let refuses = |wish: &Wish| {
            let (key, name) = place(wish.limit);
            let ahead = self.ahead(key, name, wish.critical, caller);
            match self.limits[wish.limit].judge(self.now, wish.cost) {
                Verdict::Admit { .. } => ahead.map(|_| (wish.limit, Some(Span::ZERO))),
                Verdict::Refuse { retry } => Some((wish.limit, retry)),
            }
        };
        wishes.iter().filter_map(refuses).collect()
    }

    fn ahead(&self, key: u8, name: Name, critical: bool, caller: Option<Caller>) -> Option<Span> {
        let comer = caller.map_or(Comer::Passes, Comer::Waits);
        self.lines.ahead(&key, name, &Claim::plain(1, critical), comer, self.now)
    }

    fn wakes(&self, refusing: &[(usize, Option<Span>)]) -> Vec<(usize, Option<Time>)> {
        refusing.iter().map(|(limit, retry)| (*limit, retry.map(|retry| self.now.plus(retry)))).collect()
    }

    fn find(&self, caller: Caller) -> &Waiting {
        self.waiting.iter().find(|waiting| waiting.caller == caller).expect("a caller that waits")
    }

    /// The callers in the line of a limit, in order: whether each is not critical, and its number.
    fn line(&self, limit: usize) -> Vec<(bool, Caller)> {
        let stands = |waiting: &&Waiting| waiting.stands.iter().any(|(other, _)| *other == limit);
        let rank = |waiting: &Waiting| {
            let wish = waiting.wishes.iter().find(|wish| wish.limit == limit).expect("a wish");
            (!wish.critical, waiting.caller)
        };
        let mut line: Vec<_> = self.waiting.iter().filter(stands).map(rank).collect();
        line.sort_unstable();
        line
    }

    /// Notes that the lines of these limits may be marked.
    fn may_mark(&mut self, limits: impl Iterator<Item = usize>) {
        for limit in limits.filter(|limit| !self.line(*limit).is_empty()).collect::<Vec<_>>() {
            self.may_be_due(limit);
        }
    }

    fn may_be_due(&mut self, limit: usize) {
        self.may_try += usize::from(self.due.insert(limit));
    }

    /// Notes the lines whose wake has come, each once.
    fn count_wakes(&mut self) {
        for limit in 0..LIMITS {
            if let Some((_, first)) = self.line(limit).first()
                && self.wake_of(*first, limit).is_some_and(|wake| wake <= self.now)
            {
                self.may_be_due(limit);
                self.take_wake(*first, limit);
            }
        }
    }

    fn wake_of(&self, caller: Caller, limit: usize) -> Option<Time> {
        let stands = &self.find(caller).stands;
        stands.iter().find(|(other, _)| *other == limit).and_then(|(_, wake)| *wake)
    }

    fn take_wake(&mut self, caller: Caller, limit: usize) {
        let of = self.waiting.iter_mut().filter(|waiting| waiting.caller == caller);
        for (_, wake) in of.flat_map(|waiting| &mut waiting.stands).filter(|(other, _)| *other == limit) {
            *wake = None;
        }
    }

    /// No caller is due: the first of each line is refused by the limit itself, and will be tried when it has room.
    fn is_at_rest(&self) {
        let next = self.lines.next_due();
        assert!(next.is_none_or(|next| next > self.now), "due again at {next:?}, and now is {:?}", self.now);
        for limit in 0..LIMITS {
            let Some((ordinary, first)) = self.line(limit).first().copied() else { continue };
            let wish = self.find(first).wishes.iter().find(|wish| wish.limit == limit).expect("a wish");
            let Verdict::Refuse { retry } = self.limits[limit].judge(self.now, wish.cost) else {
                panic!("{first} waits for {limit}, which has room");
            };
            let wake = self.wake_of(first, limit);
            if let Some(retry) = retry {
                assert!(wake.is_some_and(|wake| wake <= self.now.plus(retry)), "{first} in {limit}");
                assert!(next.is_some() && next <= wake, "{first} in {limit} is tried at {next:?}");
            }
            let (key, name) = place(limit);
            let told = self.ahead(key, name, !ordinary, None);
            assert_eq!(
                told,
                Some(wake.map_or(Span::ZERO, |wake| wake.since(self.now))),
                "{first} in {limit}"
            );
        }
    }

    /// What the lines say is what the vectors say.
    fn compare(&self) {
        assert_eq!(self.lines.len(), self.waiting.len());
        assert_eq!(self.lines.is_empty(), self.waiting.is_empty());
        for key in 0..KEYS {
            let stands = |waiting: &&Waiting| waiting.stands.iter().any(|(limit, _)| place(*limit).0 == key);
            assert_eq!(self.lines.at_key(&key), self.waiting.iter().filter(stands).count());
        }
        let deadline = |waiting: &Waiting| waiting.deadline.unwrap_or(NEVER);
        assert_eq!(self.lines.next_deadline(), self.waiting.iter().map(deadline).min());
        for waiting in &self.waiting {
            assert!(!waiting.stands.is_empty(), "{} waits for nothing", waiting.caller);
            let left = deadline(waiting).since(self.now);
            assert_eq!(self.lines.time_left(waiting.caller, self.now), Some(left));
        }
        let callers: BTreeSet<Caller> = self.waiting.iter().map(|waiting| waiting.caller).collect();
        let last = callers.last().copied().unwrap_or(0);
        for limit in 0..LIMITS {
            let (key, name) = place(limit);
            let line = self.line(limit);
            for caller in callers.iter().copied().chain([0, last + 1]) {
                assert_eq!(self.lines.waits(caller), callers.contains(&caller));
                for critical in [false, true] {
                    let ahead = line.first().is_some_and(|first| *first < (!critical, caller));
                    let told = self.ahead(key, name, critical, Some(caller));
                    assert_eq!(told.is_some(), ahead, "before {caller} in {limit}");
                }
            }
            for critical in [false, true] {
                let ahead = line.first().is_some_and(|(ordinary, _)| !critical || !ordinary);
                let told = self.ahead(key, name, critical, None);
                assert_eq!(told.is_some(), ahead, "before a newcomer in {limit}");
            }
        }
    }
}

/// Where a caller stands that these limits refuse.
fn stands(wishes: &[Wish], refusing: &[(usize, Option<Span>)]) -> Vec<Stand<u8>> {
    let stand = |(limit, retry): &(usize, Option<Span>)| {
        let (key, name) = place(*limit);
        let critical = wishes.iter().any(|wish| wish.limit == *limit && wish.critical);
        Stand { key, name, claim: Claim::plain(1, critical).into_owned(), retry: *retry }
    };
    refusing.iter().map(stand).collect()
}

fn pick<T>(all: &mut [T], nth: usize) -> Option<&mut T> {
    let index = nth.checked_rem(all.len())?;
    all.get_mut(index)
}
