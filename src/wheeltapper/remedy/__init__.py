"""From a diagnosis to the next run: what to change, the plan it is checked against, and the check."""
