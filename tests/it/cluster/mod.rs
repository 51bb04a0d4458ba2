//! A cluster of three primaries and three replicas: redirections, slots that move, and a primary that is killed.

mod newer;
mod slots;
