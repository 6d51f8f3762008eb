"""Worlds: many small trainings of many families, healthy or with one known fault, each beside its healthy twin.

`families` draws the settings, `loop` and `scripts/` hold the text of the training scripts, `faults` and
`controls` change them, `script` runs the text itself, `writers` leave what a user would find in the folder,
`truth` measures the harm against the twin, `make` does many at once.
"""
