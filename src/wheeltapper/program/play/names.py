"""The same thing under the names of several libraries: losses, by what torch calls them. A table; no code depends on one library."""

from __future__ import annotations

# name -> (torch's name, whether the target stands first)
OF_OPTAX = {
    "softmax_cross_entropy_with_integer_labels": "cross_entropy",
    "softmax_cross_entropy": "cross_entropy",
    "sigmoid_binary_cross_entropy": "binary_cross_entropy_with_logits",
    "l2_loss": "mse_loss",
    "squared_error": "mse_loss",
    "huber_loss": "huber_loss",
    "ctc_loss": "ctc_loss",
}
OF_KERAS = {
    "binary_crossentropy": "binary_cross_entropy",
    "BinaryCrossentropy": "binary_cross_entropy",
    "mean_squared_error": "mse_loss",
    "MeanSquaredError": "mse_loss",
    "mse": "mse_loss",
    "mean_absolute_error": "l1_loss",
    "MeanAbsoluteError": "l1_loss",
    "Huber": "huber_loss",
}


def loss_name(name: str, origin: str) -> tuple[str, bool] | None:
    """What torch calls a loss of another library, and whether its target is the first argument."""
    head = origin.split(".")[0]
    if head == "optax" and name in OF_OPTAX:
        return OF_OPTAX[name], False
    if ("keras" in origin or head == "tensorflow") and name in OF_KERAS and ".losses" in origin:
        return OF_KERAS[name], True
    return None
