"""What preflight asks, by subject: the batch, the first loss, the gradients, the optimizer, learning one batch.

Every check is a function of a `Bench` (a copy of the model on a copy of the batch) that returns
`(name, answer)` pairs. Nothing here sees the user's own model.
"""
