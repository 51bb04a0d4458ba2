//! Draws the pictures of the lessons into the folder that is the argument, by the replies of a node in memory.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use ratelimit_demo::lesson::LESSONS;
use ratelimit_demo::memory::Memory;
use ratelimit_demo::trial;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("lessons: in which folder?")?;
    for lesson in &LESSONS {
        let picture = lesson.picture(|settings, strategy, arrivals| {
            trial::run(settings, strategy, arrivals, &mut Memory::new())
        })?;
        fs::write(Path::new(&folder).join(format!("{}.svg", lesson.id)), picture)?;
    }
    Ok(())
}
