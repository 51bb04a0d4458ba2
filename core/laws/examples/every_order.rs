//! All orders of events of four callers of three tenants: `make every-order`.

use std::process::ExitCode;

use ratelimit_laws::every_order::{PROPERTIES, Size, search};

fn main() -> ExitCode {
    let chosen = std::env::args().nth(1);
    let sizes = [Size::TWO, Size::THREE, Size::RATE, Size::BOTH, Size::FOUR];
    let settlements = std::env::args().nth(2).map(|n| n.parse().expect("n"));
    let sizes = sizes.map(|size| Size { settlements: settlements.unwrap_or(size.settlements), ..size });
    for size in sizes.iter().filter(|size| chosen.as_deref().is_none_or(|chosen| size.title.contains(chosen))) {
        match search(*size, |states, depth| if states % 4096 < 30 { eprint!("\r{states} states, depth {depth} ") }) {
            Ok(report) => println!("\r{report}"),
            Err(failure) => {
                println!("\r{}: {failure}", size.title);
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}", PROPERTIES.join("\n"));
    ExitCode::SUCCESS
}
