"""Interval and tree algebra: pure functions on arrays, tested by properties."""
