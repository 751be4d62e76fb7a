"""What things are called and which shape they have: standard library only, imported by every other layer."""
