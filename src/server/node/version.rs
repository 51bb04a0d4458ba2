//! The version and the build of this module.

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit from which it was built.
pub const BUILD: &str = match option_env!("RATELIMIT_BUILD") {
    Some(build) => build,
    None => "unknown",
};

/// The version in one number: 100 is 0.1.0.
pub fn number() -> u32 {
    let parts =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    parts.into_iter().fold(0, |number, part| number * 100 + part.parse().unwrap_or(0))
}
