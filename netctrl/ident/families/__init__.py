"""Models of other kinds than `identify` gives: continuous in time, of a measured response, of an impulse response."""
