"""What does a change, or torch.compile, really change? Alignment and comparison of two studied traces."""
