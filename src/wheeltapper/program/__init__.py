"""Training scripts read by their syntax tree: options, parts, the loop, and checks of them. Nothing is run."""
