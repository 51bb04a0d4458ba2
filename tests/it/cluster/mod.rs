//! A cluster of three primaries and three replicas: redirections, slots that move, and a killed primary.

mod promotion;
mod redirections;
mod slot_moves_at_once;
mod slot_moves_key_by_key;
