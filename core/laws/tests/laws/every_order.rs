//! All orders of events in small worlds. `make every-order` searches larger ones.

use ratelimit_laws::every_order::{Size, search};

fn holds(size: Size) {
    match search(size, |_, _| ()) {
        Ok(report) => println!("{report}"),
        Err(failure) => panic!("{}: {failure}", size.title),
    }
}

#[test]
fn every_order_of_two_callers_who_ask_for_leases() {
    holds(Size::TWO);
}

#[test]
fn every_order_of_three_callers_who_ask_for_leases() {
    holds(Size::THREE);
}

#[test]
fn every_order_of_three_tenants_who_poll() {
    holds(Size::POLLS);
}

#[test]
fn every_order_of_three_callers_who_ask_for_a_rate_and_settle() {
    holds(Size::RATE);
}

#[test]
fn every_order_of_three_callers_who_ask_for_both() {
    holds(Size::BOTH);
}
