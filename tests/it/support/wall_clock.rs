//! A server whose wall clock is set apart from that of the machine, or stands still. Its monotonic clock goes on.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::preload::Preload;
use crate::support::{Server, module, text, wait_for};

pub struct WallClock {
    pub server: Server,
}

impl WallClock {
    /// Starts a server whose clock is this many seconds ahead.
    pub fn start(ahead: i64, args: &[&str]) -> WallClock {
        let server = Server::try_start_under(&["env", &AHEAD.setting()], Some(&module()), &[], args);
        let clock =
            WallClock { server: server.unwrap_or_else(|log| panic!("the server did not start:\n{log}")) };
        clock.set(ahead);
        clock
    }

    /// Sets the clock to this many seconds ahead.
    pub fn set(&self, ahead: i64) {
        self.write(&ahead.to_string(), |seconds| {
            let machine = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
            (seconds - machine - ahead).abs() < 60
        });
    }

    /// Stops the clock at this second of Unix time.
    pub fn stop(&self, at: u64) {
        self.write(&format!("={at}"), |seconds| seconds == at.cast_signed());
    }

    /// Whether a stopped clock stands still. Valkey 9.1 adds what its monotonic clock says since it looked.
    pub fn stands_still(&self) -> bool {
        self.stop(1_700_000_000);
        let con = &mut self.server.connection();
        (0..100).all(|_| text(con, "TIME") == "[1700000000, 0]")
    }

    fn write(&self, ahead: &str, is_set: impl Fn(i64) -> bool) {
        let file = self.server.dir().join("ahead");
        let new = file.with_extension("new");
        fs::write(&new, ahead).unwrap();
        fs::rename(new, file).unwrap();
        let con = &mut self.server.connection();
        // Valkey 9.1 answers the first call with a time that it has kept.
        wait_for("the clock is set", || {
            let time = text(con, "TIME");
            is_set(time.trim_start_matches('[').split(',').next().unwrap().parse().unwrap())
        });
    }
}

/// The server reads its wall clock by these two functions.
static AHEAD: Preload = Preload::new(
    "clock",
    r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static void set(long *seconds, long *fraction) {
    char text[32] = {0};
    int file = open("ahead", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    if (text[0] != '=') {
        *seconds += atol(text);
    } else {
        *seconds = atol(text + 1);
        *fraction = 0;
    }
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = syscall(SYS_gettimeofday, now, zone);
    set(&now->tv_sec, &now->tv_usec);
    return result;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) set(&now->tv_sec, &now->tv_nsec);
    return result;
}
"#,
);
