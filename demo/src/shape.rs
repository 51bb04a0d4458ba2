//! The shapes of traffic.

/// The users beside an abuser.
pub(crate) const NORMAL_USERS: u64 = 5;
/// The users of a crowd.
pub(crate) const CROWD: u64 = 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Steady,
    Bursts,
    Edge,
    Abuser,
    Slow,
    Rising,
    Crowd,
    Tenants,
    Budget,
}

impl Shape {
    /// Those on which `make demo` tries every strategy.
    pub const ALL: [Shape; 6] =
        [Shape::Steady, Shape::Bursts, Shape::Edge, Shape::Abuser, Shape::Slow, Shape::Rising];

    /// Those that only the page has.
    const OTHERS: [Shape; 3] = [Shape::Crowd, Shape::Tenants, Shape::Budget];

    pub fn of(id: &str) -> Option<Shape> {
        Shape::ALL.into_iter().chain(Shape::OTHERS).find(|shape| shape.id() == id)
    }

    pub fn id(self) -> &'static str {
        match self {
            Shape::Steady => "steady",
            Shape::Bursts => "bursts",
            Shape::Edge => "edge",
            Shape::Abuser => "abuser",
            Shape::Slow => "slow",
            Shape::Rising => "rising",
            Shape::Crowd => "crowd",
            Shape::Tenants => "tenants",
            Shape::Budget => "budget",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Shape::Steady => "Steady traffic",
            Shape::Bursts => "Bursts",
            Shape::Edge => "Stampede at the window's edge",
            Shape::Abuser => "An abuser among normal users",
            Shape::Slow => "A backend that becomes slow",
            Shape::Rising => "Rising utilization",
            Shape::Crowd => "Users who begin one after another",
            Shape::Tenants => "A greedy tenant of a shared pool",
            Shape::Budget => "Requests of 1 to 20 tokens",
        }
    }

    pub fn story(self) -> &'static str {
        match self {
            Shape::Steady => "Requests come at the same rate all the time, independent of one another.",
            Shape::Bursts => {
                "A fifth of the requests come all the time; the others in a quarter of a second, every ten seconds."
            }
            Shape::Edge => {
                "Nine of ten requests come within a tenth of a second, before or after, of every other edge of the windows on the clock."
            }
            Shape::Abuser => {
                "Five users ask now and then. In the middle half of the time a sixth one sends over four times as much as all of them together."
            }
            Shape::Slow => {
                "Requests come at the same rate all the time. In the middle third, the backend needs ten times as long for each."
            }
            Shape::Rising => {
                "Requests become seven times as many over four minutes, stay so for two, and recede; every worker that is busy counts as utilization."
            }
            Shape::Crowd => {
                "Twenty users begin half a second after one another. Each sends three requests per second, and has a limit of its own."
            }
            Shape::Tenants => {
                "Six tenants share the workers. In the middle half of the time one of them sends over four times as much as the others together. A refused caller asks again every 200 ms, for 2 s."
            }
            Shape::Budget => "Each request costs 1 to 20 tokens. The limit is meant for tokens.",
        }
    }

    pub fn users(self) -> u64 {
        match self {
            Shape::Abuser | Shape::Tenants => 1 + NORMAL_USERS,
            Shape::Crowd => CROWD,
            _ => 1,
        }
    }

    /// Whether a refused caller asks again.
    pub fn polls(self) -> bool {
        self == Shape::Tenants
    }

    /// Whether one of the users sends far more than the others.
    pub fn has_abuser(self) -> bool {
        matches!(self, Shape::Abuser | Shape::Tenants)
    }

    /// Whether what the backend does is a part of the story.
    pub fn is_about_the_backend(self) -> bool {
        matches!(self, Shape::Slow | Shape::Rising | Shape::Tenants)
    }
}
