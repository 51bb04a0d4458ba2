//! Traffic from a seed: which item comes next.

use super::common::number;
use super::exact::ITEMS;
use ratelimit_testing::dice::Dice;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Each item comes equally often.
    Uniform,
    /// The item of rank r comes in proportion to 1/r.
    Zipf,
}

/// Draws items.
///
/// A column of equal height stands for each item. It belongs to the item below a threshold, and to another item above
/// it. So a draw is one column and one height. Source: Walker, "An Efficient Method for Generating Discrete Random
/// Variables with General Distributions", ACM TOMS 3(3), 1977; the table is made as in Vose, IEEE TSE 17(9), 1991.
pub struct Traffic {
    dice: Dice,
    /// The threshold, of 2^32, and the item above it.
    columns: Vec<(u32, u32)>,
}

/// The chance of each item.
pub fn chances(spread: Spread) -> impl Iterator<Item = f64> {
    let weight = move |rank| if spread == Spread::Zipf { 1.0 / number(rank) } else { 1.0 };
    let sum: f64 = (1..=ITEMS).map(weight).sum();
    (1..=ITEMS).map(move |rank| weight(rank) / sum)
}

impl Traffic {
    pub fn new(spread: Spread, seed: u64) -> Traffic {
        let mut heights: Vec<f64> = chances(spread).map(|chance| chance * number(ITEMS)).collect();
        let mut columns: Vec<(u32, u32)> = (0..heights.len()).map(|item| (u32::MAX, short(item))).collect();
        let (mut low, mut high): (Vec<usize>, Vec<usize>) =
            (0..heights.len()).partition(|item| heights[*item] < 1.0);
        while let (Some(short_one), Some(tall)) = (low.pop(), high.last().copied()) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^32 - 1")]
            let threshold = (heights[short_one] * 4_294_967_295.0) as u32;
            columns[short_one] = (threshold, short(tall));
            heights[tall] -= 1.0 - heights[short_one];
            if heights[tall] < 1.0 {
                low.extend(high.pop());
            }
        }
        Traffic { dice: Dice::new(seed), columns }
    }

    /// The item of the next request.
    #[inline(always)]
    pub fn next(&mut self) -> usize {
        let number = self.dice.any();
        let (column, height) = (number >> 32, number & u64::from(u32::MAX));
        let column = usize::try_from((column * ITEMS) >> 32).expect("an item");
        let (threshold, other) = self.columns[column];
        if height <= u64::from(threshold) { column } else { other as usize }
    }
}

fn short(item: usize) -> u32 {
    u32::try_from(item).expect("an item")
}
