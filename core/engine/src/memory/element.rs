//! A reply as a client of RESP2 reads it.

use ratelimit_language::Error;

use crate::reply::{Receiver, Reply};

/// A reply, or a part of one. A map is an array of its names and values, in turn.
#[derive(Clone, PartialEq, Debug)]
pub enum Element {
    Array(Vec<Element>),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
    Null,
    Ok,
    Error(Error),
}

impl From<&Reply> for Element {
    fn from(reply: &Reply) -> Element {
        let mut reader = Reader::default();
        reply.send(&mut reader);
        reader.read.unwrap_or(Element::Null)
    }
}

#[derive(Default)]
struct Reader {
    /// The arrays that have begun, each with the number of elements that are to follow.
    begun: Vec<(usize, Vec<Element>)>,
    read: Option<Element>,
}

impl Reader {
    fn add(&mut self, mut element: Element) {
        while let Some((left, mut elements)) = self.begun.pop() {
            elements.push(element);
            if left > 1 {
                return self.begun.push((left - 1, elements));
            }
            element = Element::Array(elements);
        }
        self.read = Some(element);
    }
}

impl Receiver for Reader {
    fn array(&mut self, length: usize) {
        if length == 0 {
            self.add(Element::Array(Vec::new()));
        } else {
            self.begun.push((length, Vec::new()));
        }
    }

    fn map(&mut self, length: usize) {
        self.array(2 * length);
    }

    fn integer(&mut self, integer: i64) {
        self.add(Element::Integer(integer));
    }

    fn real(&mut self, number: f64) {
        self.add(Element::Real(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.add(Element::Bytes(bytes.to_vec()));
    }

    fn null(&mut self) {
        self.add(Element::Null);
    }

    fn ok(&mut self) {
        self.add(Element::Ok);
    }

    fn error(&mut self, error: &Error) {
        self.add(Element::Error(error.clone()));
    }
}
