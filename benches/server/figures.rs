//! Which rows are measured, and how their figures are written.

use std::cmp::Ordering;
use std::error::Error;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The rows that were asked for, by parts of their names, or by `=` and a whole name; all if there are none.
pub struct Selection<'a>(pub &'a [String]);

impl Selection<'_> {
    pub fn has(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let is_meant = |word: &String| match word.to_lowercase().strip_prefix('=') {
            Some(whole) => name == whole,
            None => name.contains(&word.to_lowercase()),
        };
        self.0.is_empty() || self.0.iter().any(is_meant)
    }
}

/// A figure against its target, as one column of a table.
pub fn against(figure: u64, target: Option<u64>) -> String {
    match target {
        None => String::new(),
        Some(target) if figure <= target => format!("<= {}: met", grouped(target)),
        Some(target) => format!("<= {}: missed by {}", grouped(target), grouped(figure - target)),
    }
}

/// The median, the lowest, the highest; there is at least one.
pub fn spread<T: PartialOrd + Copy>(mut numbers: Vec<T>) -> (T, T, T) {
    numbers.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    (numbers[numbers.len() / 2], numbers[0], numbers[numbers.len() - 1])
}

/// `3 (2 to 5)`, or a single figure as it is.
pub fn median_and_range<T: PartialOrd + Copy>(numbers: Vec<T>, written: impl Fn(T) -> String) -> String {
    let single = numbers.len() == 1;
    let (median, lowest, highest) = spread(numbers);
    let [median, lowest, highest] = [median, lowest, highest].map(written);
    if single { median } else { format!("{median} ({lowest} to {highest})") }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
