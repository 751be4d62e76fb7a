"""What changed between two traces? Alignment and diff."""
