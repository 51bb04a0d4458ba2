//! What a server replied, as a trial understands it.

use ratelimit_demo::reply::Reply;
use redis::Value;

/// None if it is no reply of the module's.
pub fn read(reply: &Value) -> Option<Reply> {
    let Value::Array(elements) = reply else {
        return if let Value::Int(integer) = reply { Some(Reply::Integer(*integer)) } else { None };
    };
    match elements.as_slice() {
        [Value::Int(limited), Value::BulkString(chance)] => {
            let chance = std::str::from_utf8(chance).ok()?.parse().ok()?;
            Some(Reply::Chance(*limited == 1, chance))
        }
        // Of several limits: what binds, and each of them.
        [all @ Value::Array(_), Value::Array(_)] => read(all),
        five => {
            let integer = |value: &Value| if let Value::Int(integer) = value { Some(*integer) } else { None };
            let five: Option<Vec<i64>> = five.iter().map(integer).collect();
            five?.try_into().ok().map(Reply::Five)
        }
    }
}
