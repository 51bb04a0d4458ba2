//! Files and calls that made sense, and do so no more: an error changes nothing, and what is stored can be saved and loaded.

use redis::Connection;

use super::folder::Folder;
use super::policies;
use super::random::RandomPolicy;
use crate::support::dice::Dice;
use crate::support::fuzz::garble;
use crate::support::{call, call_bytes, text};

const ROUNDS: usize = 1500;

#[test]
fn a_garbled_file_is_loaded_as_a_whole_or_not_at_all() {
    let folder = Folder::new();
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(52);
    let (mut loaded, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let mut file = file(&mut dice).into_bytes();
        let others = [self::file(&mut dice).into_bytes(), b"\n# \r\n VERSION SHADOW LIMIT ".to_vec()];
        if !dice.one_in(3) {
            garble(&mut file, &others, &mut dice);
        }
        folder.write(&file);
        let before = policies(con);
        if call(con, &["RL.POLICY", "LOAD"]).is_err() {
            refused += 1;
            assert_eq!(policies(con), before, "{}", file.escape_ascii());
        } else {
            loaded += 1;
            comes_back(con, &file);
        }
    }
    println!("{loaded} loaded, {refused} refused");
    assert!(loaded > 100 && refused > 100, "{loaded} loaded, {refused} refused");
}

#[test]
fn a_garbled_call_stores_what_can_be_loaded_or_nothing() {
    let folder = Folder::new();
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(53);
    let (mut stored, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        text(con, "RL.POLICY DEL api");
        let line = format!("RL.POLICY SET api {}", RandomPolicy::new(&mut dice).words());
        let mut words: Vec<Vec<u8>> = line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        let place = dice.index(words.len() - 3) + 3;
        garble(&mut words[place], &[b"europe/paris".to_vec(), b"1h".to_vec()], &mut dice);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let before = policies(con);
        if call_bytes(con, &words).is_err() {
            refused += 1;
            assert_eq!(policies(con), before, "{line}");
        } else {
            stored += 1;
            comes_back(con, line.as_bytes());
        }
    }
    println!("{stored} stored, {refused} refused");
    assert!(stored > 100 && refused > 100, "{stored} stored, {refused} refused");
}

/// Saves all policies, and loads the same ones.
fn comes_back(con: &mut Connection, from: &[u8]) {
    let before = policies(con);
    let count = text(con, "RL.POLICY SAVE");
    assert_eq!(text(con, "RL.POLICY LOAD"), count, "{}", from.escape_ascii());
    assert_eq!(policies(con), before, "{}", from.escape_ascii());
}

/// A file of a few policies. Some have a limit twice.
fn file(dice: &mut Dice) -> String {
    let line = |dice: &mut Dice, number: u64| {
        let words = RandomPolicy::new(dice).words();
        match dice.below(4) {
            0 => format!("# a comment\npolicy{number} {words} # another one\n"),
            1 => format!("\tpolicy{number}  VERSION {} {words}\r\n", 1 + dice.below(9)),
            _ => format!("policy{number} {words}\n"),
        }
    };
    (0..=dice.below(3)).map(|number| line(dice, number)).collect()
}
