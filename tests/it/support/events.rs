//! Keyspace events of the module, as a subscriber reads them.

use std::time::Duration;

use redis::{Connection, PubSub};

use crate::support::{Server, call};

/// Subscribes to the events of this module, and to the mark at which [`until_now`] ends.
pub fn subscribed(con: &mut Connection) -> PubSub<'_> {
    let mut pubsub = con.as_pubsub();
    pubsub.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    pubsub.psubscribe("__keyevent@0__:rl.*").unwrap();
    pubsub.subscribe("end").unwrap();
    pubsub
}

/// The events until now, each with its key, that have not been read yet.
pub fn until_now(server: &Server, pubsub: &mut PubSub<'_>) -> Vec<String> {
    call(&mut server.connection(), &["PUBLISH", "end", ""]).unwrap();
    let mut events = Vec::new();
    loop {
        let message = pubsub.get_message().unwrap();
        if message.get_channel_name() == "end" {
            return events;
        }
        let event = message.get_channel_name().trim_start_matches("__keyevent@0__:").to_string();
        events.push(format!("{event} {}", message.get_payload::<String>().unwrap()));
    }
}
