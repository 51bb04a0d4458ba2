//! A call that is about to be made, and what its words say.

#[derive(Clone, Debug)]
pub struct Request {
    pub words: Vec<Vec<u8>>,
    /// Where the keys are.
    pub places: Vec<usize>,
}

impl Request {
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.words[0]).into_owned()
    }

    pub fn says(&self, token: &str) -> bool {
        self.words.iter().any(|word| word == token.as_bytes())
    }

    /// The number behind a token.
    pub fn number(&self, token: &str) -> Option<u64> {
        let place = self.words.iter().position(|word| word == token.as_bytes())?;
        std::str::from_utf8(self.words.get(place + 1)?).ok()?.parse().ok()
    }

    pub fn push(&mut self, word: &str) {
        self.words.push(word.as_bytes().to_vec());
    }
}
