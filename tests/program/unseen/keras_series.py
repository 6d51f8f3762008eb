import numpy as np
import tensorflow as tf
from tensorflow import keras

WIN, AHEAD = 72, 12
series = np.loadtxt("power.csv", delimiter=",").astype("float32")
cut = int(len(series) * 0.8)
train, test = series[:cut], series[cut:]
lo, hi = train.min(), train.max()
train, test = (train - lo) / (hi - lo), (test - lo) / (hi - lo)


def windows(a):
    xs, ys = [], []
    for i in range(len(a) - WIN - AHEAD):
        xs.append(a[i:i + WIN])
        ys.append(a[i + WIN:i + WIN + AHEAD])
    return np.array(xs)[..., None], np.array(ys)


x_tr, y_tr = windows(train)
x_te, y_te = windows(test)
inp = keras.Input((WIN, 1))
h = keras.layers.LSTM(64, return_sequences=True)(inp)
h = keras.layers.LSTM(64)(h)
out = keras.layers.Dense(AHEAD)(h)
model = keras.Model(inp, out)
model.compile(keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
model.fit(x_tr, y_tr, validation_data=(x_te, y_te), epochs=60, batch_size=64,
          callbacks=[keras.callbacks.EarlyStopping("val_loss", patience=6), keras.callbacks.ReduceLROnPlateau(monitor="val_mae", mode="min")])
