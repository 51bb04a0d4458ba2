//! `RL.APPLY key payload [key payload ...]`: applies the effects of a call that another node decided.
//!
//! Replicas and the append-only file receive this command. A rewrite of that file writes each key as one call, and a large
//! key as several. The command can write any value of the module. Like `RESTORE`, it is refused to clients when the memory
//! is full.

use ratelimit_language::Error;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;

use super::entry::Command;
use crate::host::Host;
use crate::key::Payload;
use crate::reply::Reply;

pub struct Apply;

impl Command for Apply {
    const DOCUMENTATION: Documentation = docs::APPLY;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        if call.len().is_multiple_of(2) {
            return Err(Error::absent("payload"));
        }
        let payloads: Vec<Payload<'_>> =
            call.arguments(2).step_by(2).map(Payload::parse).collect::<Result<_, _>>()?;
        if payloads.len() > 1 && payloads.iter().any(Payload::stands_alone) {
            return Err(Error::Payload);
        }
        if payloads.iter().any(Payload::stores) && call.is_out_of_memory() {
            return Err(Error::OutOfMemory);
        }
        // All payloads were checked, so no error leaves half of them applied.
        for (pair, payload) in payloads.into_iter().enumerate() {
            payload.apply(call, 1 + 2 * pair)?;
        }
        call.send_on();
        Ok(Reply::Ok)
    }
}
