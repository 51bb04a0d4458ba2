//! A sample of every form of limiter: each limiter, each mode, and each option that changes its decisions.
//!
//! Laws, simulation, fuzzers, benchmarks and wire tests take their limiters from this table. So a new limiter with a
//! row here is part of all of them.

use alloc::string::{String, ToString};

use ratelimit_core::Kind;

use crate::number::Duration;

/// A form of a limiter.
pub struct Form {
    /// The kind of its state.
    pub kind: Kind,
    /// The limiter's name and parameters, with placeholders.
    template: &'static str,
}

/// Every form, in the order of the catalog.
pub const FORMS: [Form; 17] = [
    Form { kind: Kind::Level, template: "TOKENBUCKET {limit} {limit} {period}" },
    Form { kind: Kind::Batch, template: "TOKENBUCKET {limit} {limit} {period} BATCH" },
    Form { kind: Kind::Water, template: "LEAKYBUCKET {limit} {limit} {period}" },
    Form { kind: Kind::Arrival, template: "GCRA {burst} {limit} {period}" },
    Form { kind: Kind::Opened, template: "FIXEDWINDOW {limit} {period}" },
    Form { kind: Kind::Tally, template: "FIXEDWINDOW {limit} {period} ALIGNED" },
    Form { kind: Kind::Page, template: "CALENDAR {limit} HOUR TZ +05:45" },
    Form { kind: Kind::Counts, template: "SLIDINGWINDOW {limit} {period}" },
    Form { kind: Kind::Buckets, template: "SLIDINGWINDOW {limit} {period} PRECISION {tenth}" },
    Form { kind: Kind::Log, template: "SLIDINGLOG {limit} {period}" },
    Form { kind: Kind::Log, template: "SLIDINGLOG {limit} {period} GAP {gap}" },
    Form { kind: Kind::Log, template: "SLIDINGLOG {limit} {period} COUNTREFUSED" },
    Form { kind: Kind::Gate, template: "UNIFORM {interval}" },
    Form { kind: Kind::BurstStore, template: "SMOOTH {limit} {period} MAXWAIT 0" },
    Form { kind: Kind::WarmStore, template: "SMOOTH {limit} {period} WARMUP {period} MAXWAIT 0" },
    Form { kind: Kind::Leases, template: "CONCURRENT {limit} {period} {id}" },
    Form { kind: Kind::Strikes, template: "PENALTY {limit} {period} {interval}" },
];

impl Form {
    /// The limiter's name and parameters for `limit` per `period` milliseconds. The period must be a multiple of 10.
    /// `id` is the id of a lease.
    pub fn words(&self, limit: u64, period: u64, id: &str) -> String {
        let interval = (period / limit.max(1)).max(1);
        let mut words = self.template.replace("{id}", id);
        for (placeholder, number) in [("{limit}", limit), ("{burst}", limit.saturating_sub(1))] {
            words = words.replace(placeholder, &number.to_string());
        }
        let durations = [
            ("{period}", period),
            ("{tenth}", (period / 10).max(1)),
            ("{gap}", interval / 2),
            ("{interval}", interval),
        ];
        for (placeholder, millis) in durations {
            words = words.replace(placeholder, &Duration(millis).to_string());
        }
        words
    }

    /// The limiter's name and parameters, with placeholders. No two forms have the same template.
    pub fn template(&self) -> &'static str {
        self.template
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use ratelimit_core::limiter::Capabilities;
    use ratelimit_core::{Limiter, State, with_limiter};

    use super::*;
    use crate::arguments::{Arguments, Bounds};
    use crate::catalog::{CATALOG, Row, find};
    use crate::request::Request;

    fn row_of(form: &Form) -> &'static Row {
        let name = form.template.split(' ').next().expect("a name");
        find(name.as_bytes()).expect("a limiter")
    }

    /// The kind of a form's limiter, and what it can do.
    fn parsed(form: &Form) -> (Kind, Capabilities) {
        fn of<L: Limiter>(limiter: &L) -> (Kind, Capabilities) {
            (L::State::KIND, limiter.capabilities())
        }
        let line = form.words(10, 1000, "one");
        let words: Vec<&[u8]> = line.split(' ').skip(1).map(str::as_bytes).collect();
        let bounds = Bounds { leases: 100, log_entries: 100, ..Bounds::DEFAULT };
        let limiter = (row_of(form).parse)(&mut Arguments::new(&words, bounds), &mut Request::default());
        with_limiter!(&limiter.expect("good parameters"), limiter => of(limiter))
    }

    #[test]
    fn every_form_is_a_limiter_of_its_kind() {
        for form in &FORMS {
            assert_eq!(parsed(form).0, form.kind, "{}", form.template);
            assert_eq!(form.kind.title().0, row_of(form).name());
        }
    }

    #[test]
    fn a_limiter_has_the_options_of_what_a_form_of_it_can_do() {
        for row in &CATALOG {
            let forms = FORMS.iter().filter(|form| row_of(form).name() == row.name());
            let can: Vec<Capabilities> = forms.map(|form| parsed(form).1).collect();
            let any = |is: fn(&Capabilities) -> bool| can.iter().any(is);
            for (option, is_there) in [
                ("PARTIAL", any(|can| can.partial)),
                ("FORCE", any(|can| can.force)),
                ("RESERVE", any(|can| can.reserve)),
                ("HOLD", any(|can| can.hold)),
                ("BLOCK", any(|can| can.block)),
                ("COUNTREFUSED", any(|can| can.counts_refused)),
            ] {
                assert_eq!(row.takes(option), is_there, "{option} of {}", row.name());
            }
        }
    }

    #[test]
    fn every_kind_of_limit_and_every_limiter_has_a_form() {
        for kind in Kind::ALL.iter().filter(|kind| kind.is_limit()) {
            assert!(FORMS.iter().any(|form| form.kind == *kind), "{kind:?} has no form");
        }
        for row in &CATALOG {
            assert!(FORMS.iter().any(|form| row_of(form).name() == row.name()), "{}", row.name());
        }
    }
}
