"""What an answer means: decisions, failing open or closed, the breaker, the cache of refusals, counters, log. No I/O."""
