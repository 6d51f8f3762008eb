"""Sound: windows, hops, segments and bands."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet

HOPS = ("hop_length", "hop_size", "hop_ms", "hop", "frame_shift", "hop_len", "frame_shift_ms", "window_stride")
WINDOWS = ("win_length", "win_size", "window_ms", "window", "window_length", "frame_length", "win_ms", "frame_length_ms", "window_size")


def _first(sheet: Sheet, keys: tuple[str, ...]) -> Setting | None:
    return next((s for key in keys for s in sheet.settings if s.key == key and s.number), None)


def windows(sheet: Sheet) -> Iterator[Doubt]:
    """A hop longer than the window leaves gaps; upsampling must make up for the hop; a segment holds several hops."""
    hop, window = _first(sheet, HOPS), _first(sheet, WINDOWS)
    if hop is None or not hop.number:
        return
    if window is not None and window.number and hop.number > window.number and hop.path[:-1] == window.path[:-1]:
        both = (hop, window) if hop.number % 10 == 0 and window.number >= 20 and window.number < 256 else (window, hop)
        yield Doubt("setting-beyond-practice", f"a hop of {hop.number:g} (`{hop.name}`) with a window of {window.number:g} (`{window.name}`) leaves gaps", both)
    up = next((s for s in sheet.settings if s.key == "upsample_rates" and len(s.numbers) > 1), None)
    if up is not None and hop.above & {"data", "audio", "preprocess", "preprocessing", "feature", "features", "mel"} - {"mel"} | ({"top"} if len(hop.path) == 1 else set()) and math.prod(up.numbers) != hop.number:
        yield Doubt("target-misaligned", f"`{up.name}` multiplies to {math.prod(up.numbers):g}, and the hop is {hop.number:g} (`{hop.name}`)", (hop, up))
    segment = _first(sheet, ("segment_size", "segment_length"))
    if segment is not None and segment.number and not segment.above & {"generator", "params"} and segment.number < 4 * hop.number:
        yield Doubt("setting-beyond-practice", f"a segment of {segment.number:g} (`{segment.name}`) holds hardly a hop of {hop.number:g} (`{hop.name}`)", (segment, hop))
    fft = _first(sheet, ("n_fft", "filter_length", "fft_size"))
    if fft is not None and window is not None and (window.number or 0) > (fft.number or math.inf):
        yield Doubt("setting-beyond-practice", f"a window of {window.number:g} (`{window.name}`) is longer than the transform of {fft.number:g} (`{fft.name}`)", (window, fft))


def bands(sheet: Sheet) -> Iterator[Doubt]:
    """No frequency above half the sample rate."""
    top = _first(sheet, ("f_max", "fmax", "mel_fmax", "high_freq"))
    rate = sheet.nearest(top, [s for s in sheet.settings if s.key in ("sample_rate", "sampling_rate", "sr") and s.number]) if top is not None else None
    if top is not None and rate is not None and (top.number or 0) > (rate.number or 0) / 2:
        yield Doubt("setting-beyond-practice", f"`{top.name}` is {top.number:g}, above half the sample rate of {rate.number:g} (`{rate.name}`)", (rate, top))


def labels_fit(sheet: Sheet) -> Iterator[Doubt]:
    """CTC needs at least as many frames as labels."""
    factor = next((s for s in sheet.settings if s.own & {"subsampling", "downsampling", "subsample"} and s.number and s.own & {"subsampling", "downsampling", "factor", "rate"}), None)
    if factor is not None and (factor.number or 0) > 16 and sheet.says("ctc", "asr", "conformer", "speech"):
        yield Doubt("target-misaligned", f"`{factor.name}` is {factor.number:g}: fewer frames than labels are left, and CTC has no path", (factor,))


def clips(sheet: Sheet) -> Iterator[Doubt]:
    """Clips longer than this are dropped, and nothing is shorter."""
    for s in sheet.settings:
        if s.own & {"max"} and s.own & {"duration", "seconds", "audio"} and s.number is not None and 0 < s.number < 1 and not s.own & {"ms", "ratio"}:
            yield Doubt("too-few-updates", f"`{s.name}` is {s.number:g}: hardly a clip is so short", (s,))


def masks(sheet: Sheet) -> Iterator[Doubt]:
    """Masks over the spectrum that leave nothing of it."""
    for s in sheet.settings:
        if s.above & {"specaugment", "spec"} and s.own & {"ratio", "width", "p"} and s.own & {"time"} and s.number is not None and 0.5 < s.number <= 1:
            yield Doubt("target-misaligned", f"`{s.name}` is {s.number:g}: the masks leave nothing of the sound", (s,))


CHECKS = (windows, bands, labels_fit, clips, masks)
