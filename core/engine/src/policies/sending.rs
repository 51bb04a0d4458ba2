//! What a node has still to send of its whole table, and to whom.
//!
//! A large table reaches replicas in pieces, one at a time, so that no event sends several: they would be a transaction, of which a
//! full replica may refuse all. The AOF gets all pieces at once.

use std::mem::take;

use super::{Effect, begun};
use crate::node::Node;

/// Who gets an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    Both,
    Replicas,
    Aof,
}

/// What is still to be sent.
pub struct Sending {
    is_owed_to_aof: bool,
    is_owed_to_replicas: bool,
    /// Whether replicas are to get the table once more, after the one that is being sent.
    is_owed_again: bool,
    /// The last policy that replicas got of the table that is being sent.
    sent: Option<Box<str>>,
}

impl Sending {
    pub const NOTHING: Sending =
        Sending { is_owed_to_aof: false, is_owed_to_replicas: false, is_owed_again: false, sent: None };

    /// Both are to get the whole table. It is another than the one that is being sent.
    pub const ALL: Sending =
        Sending { is_owed_to_aof: true, is_owed_to_replicas: true, is_owed_again: false, sent: None };

    /// The node has another table. Returns the effect that brings it to both, if it is one piece; else it is owed.
    pub fn replace(&mut self, node: &Node) -> Option<Effect> {
        let (piece, _) = node.policies().piece(None);
        *self = if piece.goes_on() { Sending::ALL } else { Sending::NOTHING };
        (!piece.goes_on()).then_some(piece)
    }

    /// A replica has come online. It gets a whole table: one that is being sent began without it.
    pub fn replica_came(&mut self) {
        self.is_owed_again = self.sent.is_some();
        self.is_owed_to_replicas = true;
    }

    /// The AOF begins anew, without the policies.
    pub fn aof_lacks_policies(&mut self) {
        self.is_owed_to_aof = true;
    }

    /// Whether anything is to be sent.
    pub fn is_owed(&self) -> bool {
        self.is_owed_to_aof || self.is_owed_to_replicas
    }

    /// What is to be sent next, in one event, and to whom.
    pub fn next(&mut self, node: &Node, is_primary: bool) -> Option<(Vec<Effect>, To)> {
        let policies = node.policies();
        if take(&mut self.is_owed_to_aof) {
            let pieces = policies.pieces();
            if pieces.len() == 1 && self.is_owed_to_replicas && self.sent.is_none() && is_primary {
                self.is_owed_to_replicas = false;
                return Some((pieces, To::Both));
            }
            return Some((pieces.into_iter().chain(begun(node)).collect(), To::Aof));
        }
        if !is_primary {
            *self = Sending::NOTHING;
        }
        if !self.is_owed_to_replicas {
            return None;
        }
        let (piece, last) = policies.piece(self.sent.as_deref());
        let goes_on = piece.goes_on();
        self.sent = last.filter(|_| goes_on);
        self.is_owed_to_replicas = goes_on || take(&mut self.is_owed_again);
        Some((vec![piece], To::Replicas))
    }
}
