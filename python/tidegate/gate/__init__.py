"""Whether a change made a controller worse."""
