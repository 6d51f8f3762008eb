"""Protocol buffers in text."""

from __future__ import annotations

from wheeltapper.settings.parse import format_of, parse_text

TEXT = """# solver
base_lr: 0.01
net: "train_val.prototxt"
layer {
  name: "data"
  transform_param { mirror: true crop_size: 227 }
}
layer { name: "fc" param { lr_mult: 10 } sizes: [1, 2] }
"""


def test_pairs_stand_under_their_blocks_with_their_lines() -> None:
    tree = parse_text(TEXT, "solver.prototxt", "prototxt")
    assert tree.get("base_lr") == 0.01
    assert tree.get("net") == "train_val.prototxt"
    assert tree.get("layer.0.transform_param.crop_size") == 227
    assert tree.get("layer.1.param.lr_mult") == 10
    assert [tree.get(f"layer.1.sizes.{i}") for i in range(2)] == [1, 2]
    leaf = tree.leaf("layer.0.transform_param.mirror")
    assert leaf is not None
    assert (leaf.line, leaf.value) == (6, True)


def test_the_format_is_known_by_name_or_by_its_blocks() -> None:
    assert format_of("a.prototxt", TEXT) == "prototxt"
    assert format_of("pipeline.config", TEXT) == "prototxt"
    assert format_of("notes.txt", "lr: 1\nepochs: 3\n") == "keyvalue"


def test_broken_text_ends() -> None:
    for text in ("a {", "}}}} a: 1", "a: [1, 2", "layer { layer { layer {", ": : {"):
        parse_text(text, "x.prototxt", "prototxt")
