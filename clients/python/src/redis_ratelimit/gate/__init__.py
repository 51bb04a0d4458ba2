"""What a web framework needs, without one: rules, steps, what a request has taken, responses."""
