//! What a call says, as far as the checks must know it.

use ratelimit_core::{Manner, Span, Verdict};
use ratelimit_engine::reply::Reply;

pub(super) struct Told<'c> {
    pub(super) words: Vec<&'c str>,
    pub(super) name: &'c str,
    pub(super) cost: u64,
    pub(super) manner: Manner,
    /// The id of a hold, or of a settlement.
    pub(super) id: Option<&'c str>,
    pub(super) ttl: Option<Span>,
    /// How long it waits at most.
    pub(super) block: Option<Span>,
    /// Whether it has something that no model knows.
    is_odd: bool,
}

impl<'c> Told<'c> {
    pub(super) fn of(line: &'c str) -> Told<'c> {
        let words: Vec<&str> = line.split(' ').collect();
        let name = words.first().copied().unwrap_or("");
        let mut told = Told {
            name,
            cost: 1,
            manner: Manner::Strict,
            id: None,
            ttl: None,
            block: None,
            is_odd: false,
            words,
        };
        for place in 0..told.words.len() {
            let word = |ahead: usize| told.words.get(place + ahead).copied();
            match word(0).unwrap_or("") {
                "COST" => told.cost = word(1).and_then(|word| word.parse().ok()).unwrap_or(0),
                "PARTIAL" => told.manner = Manner::Partial,
                "FORCE" => told.manner = Manner::Force,
                "HOLD" => (told.id, told.ttl) = (word(1), word(2).and_then(duration)),
                "BLOCK" => told.block = word(1).and_then(duration),
                "AT" | "RESERVE" => told.is_odd = true,
                _ => {}
            }
        }
        if name == "RL.SETTLE" {
            told.id = told.words.get(2).copied();
        }
        told
    }

    /// The first key.
    pub(super) fn key(&self) -> &'c str {
        self.words.get(1).copied().unwrap_or("")
    }

    pub(super) fn names(&self, key: &str) -> bool {
        self.words.iter().skip(1).any(|word| *word == key)
    }

    /// Whether it changes nothing.
    pub(super) fn is_look(&self) -> bool {
        let looks = ["RL.EXPLAIN", "RL.PEEK", "RL.MULTIPEEK", "RL.ASKPEEK", "RL.INFO", "RL.TOP", "EXISTS"];
        looks.contains(&self.name)
    }

    /// Whether it is a call of this limit's own command on this key, or settles it. A cost of 0 looks.
    pub(super) fn is_of(&self, key: &str, limit: &str) -> bool {
        let settles = self.name == "RL.SETTLE";
        !self.is_odd
            && self.key() == key
            && (settles || self.cost > 0)
            && (settles || self.name.strip_prefix("RL.") == limit.split(' ').next())
            && self.has_limit(limit, if settles { 3 } else { 1 })
    }

    /// Whether the words from `start` on are those of the limit; the word at place 1 is the key.
    fn has_limit(&self, limit: &str, start: usize) -> bool {
        let own = self.words.iter().skip(start).filter(|word| start > 1 || **word != self.key());
        let mut limit = limit.split(' ').skip(usize::from(start == 1));
        let mut own = own.peekable();
        let is_there = limit.by_ref().all(|word| own.next_if(|own| **own == word).is_some());
        // Another mode of the limiter is another limit.
        is_there && !own.any(|word| ["ALIGNED", "PRECISION", "BATCH", "SHADOW", "GAP"].contains(word))
    }

    /// Whether it has something that no model knows.
    pub(super) fn is_odd(&self) -> bool {
        self.is_odd
    }

    /// Whether it deletes one key.
    pub(super) fn is_deletion(&self) -> bool {
        self.name == "DEL" && self.words.len() == 2
    }

    pub(super) fn is_settlement(&self) -> bool {
        self.name == "RL.SETTLE"
    }

    /// Whether it releases or renews a lease.
    pub(super) fn is_lease_action(&self) -> bool {
        ["RL.RELEASE", "RL.RENEW"].contains(&self.name)
    }

    /// The look of a limiter's own command at its limit. `None` for another command, and for leases with more options.
    pub(super) fn peek(&self) -> Option<String> {
        const OPTIONS: [&str; 10] =
            ["COST", "HOLD", "BLOCK", "PARTIAL", "FORCE", "TENANT", "AT", "RESERVE", "MAXWAIT", "FENCE"];
        let limiter = self.name.strip_prefix("RL.").filter(|name| !["MULTI", "ASK"].contains(name))?;
        if ["RESERVED", "CRITICAL", "ADAPT"].iter().any(|word| self.names(word)) {
            return None;
        }
        let parameters: Vec<&str> =
            self.words.iter().skip(2).take_while(|word| !OPTIONS.contains(word)).copied().collect();
        Some(format!("RL.PEEK {} {limiter} {} COST {}", self.key(), parameters.join(" "), self.cost))
    }

    pub(super) fn duration(&self, place: usize) -> Option<Span> {
        self.words.get(place).copied().and_then(duration)
    }
}

fn duration(word: &str) -> Option<Span> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match word.get(digits.len()..)? {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Span::from_millis(digits.parse::<u64>().ok()? * unit))
}

/// After which time a refused call may be admitted, if ever.
pub(super) fn retry_of(reply: &Reply) -> Option<Span> {
    match reply {
        Reply::Answer(answer)
        | Reply::Six(answer, _)
        | Reply::Answers(answer, _)
        | Reply::SixAndEach(answer, ..) => match answer.verdict {
            Verdict::Refuse { retry } => retry,
            Verdict::Admit { .. } => None,
        },
        _ => None,
    }
}
