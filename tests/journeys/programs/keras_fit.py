"""A table classified by a small network in Keras."""
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
centres = 1.2 * np.random.default_rng(5).normal(size=(24, 12))


def rows(n):
    at = rng.integers(24, size=n)
    return (centres[at] + rng.normal(size=(n, 12))).astype("float32"), at % 8


x_train, y_train = rows(3000)
x_val, y_val = rows(800)

model = keras.Sequential(
    [
        keras.layers.Input((12,)),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dense(8, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    validation_data=(x_val, y_val),
    batch_size=64,
    epochs=15,
    callbacks=[keras.callbacks.CSVLogger("history.csv"), keras.callbacks.ModelCheckpoint("best.keras", monitor="val_loss", save_best_only=True)],
    verbose=0,
)
