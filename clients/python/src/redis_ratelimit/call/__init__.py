"""What is said to the server: words, keys, values, rates, limiters, limits, and the calls of a limiter. No I/O."""
