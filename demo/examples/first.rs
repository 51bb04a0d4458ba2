//! Prints what the page shows before its engine has arrived.

use std::error::Error;

use ratelimit_demo::page::first;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", first()?);
    Ok(())
}
