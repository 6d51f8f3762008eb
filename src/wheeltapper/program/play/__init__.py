"""A program played with symbols: what every value is made of, and what happens in which order. Nothing is run."""
