//! Sends calls through redis-rs to a cluster, one node of which listens at the port in the second argument; the first
//! says how a call is sent.
//!
//! Each line of the input is a key and a call. The call is sent as often as the third argument says, each time with
//! another number for `#`. Then a line is printed.

use std::{env, io};

use redis::cluster::ClusterClient;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Cmd, Value};

fn main() {
    let [_, way, port, calls] =
        env::args().collect::<Vec<_>>().try_into().expect("a way, a port and a number of calls");
    let calls: usize = calls.parse().expect("a number of calls");
    let client = ClusterClient::new(vec![format!("redis://127.0.0.1:{port}/")]).expect("an address");
    let mut connection = client.get_connection().expect("a connection");
    for line in io::stdin().lines() {
        let line = line.expect("a line");
        for number in 0..calls {
            let line = line.replace('#', &number.to_string());
            let (key, call) = line.split_once(' ').expect("a key and a call");
            let mut cmd = Cmd::new();
            cmd.arg(call.split(' ').collect::<Vec<_>>());
            let reply: Value = match way.as_str() {
                "query" => cmd.query(&mut connection),
                "route_command" => connection.route_command(&cmd, owner(key)),
                other => panic!("redis-rs has no {other}"),
            }
            .expect("a reply");
            drop(reply);
        }
        println!("sent");
    }
}

/// The node that has the key's slot.
fn owner(key: &str) -> RoutingInfo {
    RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master)))
}
