//! What is tried: backends, and how busy they are.

#![allow(clippy::single_range_in_vec_init, reason = "a scene has parts, even if it is one")]

use std::ops::Range;

use ratelimit_laws::fleet::{Backend, SECOND, Service, World};

pub struct Scene {
    pub name: &'static str,
    pub story: &'static str,
    pub world: World,
    /// How many the backend can serve at a time without delay.
    pub knee: u64,
    /// From when on a request counts as slow, in microseconds.
    pub slow: u64,
    /// The seconds that are reported.
    pub parts: Vec<Range<usize>>,
}

const MILLI: u64 = SECOND / 1000;

pub fn scenes() -> Vec<Scene> {
    let backend = Backend { service: Service::Fixed(100 * MILLI), workers: 50, crowded: None, slow: 0..0 };
    let world = World {
        backend: backend.clone(),
        fleet: vec![(0, 20)],
        // Half as much again as the backend can serve.
        rate: 37.5,
        deadline: SECOND,
        seconds: 1800,
        reports: true,
        seed: 1,
    };
    let scene = |name, story, world: World, slow: u64| {
        let parts = vec![300..usize::try_from(world.seconds).unwrap_or(0)];
        Scene { name, story, world, knee: 50, slow, parts }
    };
    let on = |backend: Backend| World { backend, ..world.clone() };
    let random = Service::Exponential(100 * MILLI);
    vec![
        Scene {
            parts: vec![300..600, 600..660, 660..1200, 1200..1260, 1260..1800],
            ..scene(
                "slow",
                "50 workers, 100 ms a request; three times as long from 600 to 1200 s",
                on(Backend { slow: 600..1200, ..backend.clone() }),
                150 * MILLI,
            )
        },
        scene(
            "steady",
            "50 workers, 100 ms a request, for an hour",
            World { seconds: 3600, ..world.clone() },
            150 * MILLI,
        ),
        scene(
            "random",
            "50 workers, 100 ms on average, exponential",
            on(Backend { service: random, ..backend.clone() }),
            500 * MILLI,
        ),
        scene(
            "two-kinds",
            "50 workers, nine of ten requests take 20 ms, the tenth 820 ms; callers give up after 3 s",
            World {
                deadline: 3 * SECOND,
                ..on(Backend { service: Service::Bimodal(20 * MILLI, 820 * MILLI), ..backend.clone() })
            },
            900 * MILLI,
        ),
        scene(
            "disk",
            "a disk, 100 ms on average, slower with the square of the number above 50",
            on(Backend { service: random, workers: usize::MAX, crowded: Some(50), slow: 0..0 }),
            500 * MILLI,
        ),
        scene(
            "silent",
            "50 workers, 100 ms a request; nobody reports failures, and there is no SLOW",
            World { reports: false, ..world.clone() },
            0,
        ),
        Scene {
            knee: 5,
            parts: vec![3600..7200],
            ..scene(
                "few",
                "5 workers, 10 s a request, 0.75 requests a second; callers give up after 100 s",
                World {
                    rate: 0.0375,
                    deadline: 100 * SECOND,
                    seconds: 7200,
                    ..on(Backend { service: Service::Fixed(10 * SECOND), workers: 5, ..backend.clone() })
                },
                15 * SECOND,
            )
        },
        Scene {
            parts: vec![300..900, 900..1800],
            ..scene(
                "doubles",
                "50 workers, 100 ms a request; from 900 s on there are 40 processes",
                World { fleet: vec![(0, 20), (900, 40)], ..world.clone() },
                150 * MILLI,
            )
        },
    ]
}
