"""YAML of strangers: the same values as PyYAML's safe loader gives, or one line that says why not; always at once."""

from __future__ import annotations

import time
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tracelock import safe_yaml
from tracelock.errors import TracelockError


def refusal(text: str) -> list[str]:
    with pytest.raises(TracelockError) as caught:
        safe_yaml.load(text, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


# PyYAML's two parsers do not agree on the rare line ends of YAML 1.1 (NEL, LS, PS), nor on the byte order mark.
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\ufeff"), max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN, st.booleans(), st.sampled_from([0, 1 << 20]))
def test_what_is_plain_is_read_as_by_the_safe_loader(value: object, flow: bool, large: int) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safe_yaml, "_LARGE", large)  # both parsers
        assert safe_yaml.load(text, "f.yaml") == yaml.safe_load(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1}\nc: *x\n",
        "base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}\n",
        "- !!str 1\n- !!float 2\n- 0o7\n- 1_000\n- 1:30\n- 2024-01-02\n- ~\n- yes\n- .inf\n",
        "a: |\n  x\n  y\nb: >-\n  x\n  y\n",
        "",
        "# nothing\n",
        "--- \na: 1\n...\n",
        "? a\n: 1\n",
    ],
)
def test_aliases_merges_tags_and_blocks_are_read_as_by_the_safe_loader(text: str) -> None:
    assert safe_yaml.load(text, "f.yaml") == yaml.safe_load(text)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join([f'*{before}'] * 9)}]\n  {name}: 1\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "aliases of aliases": (LAUGHS, "stand for more than 10,000 values"),
    "merges of merges": (MERGES, "stand for more than 10,000 values"),
    "one large value many times": (
        f"a: &a [{', '.join('x' * 200)}]\nb: [{', '.join(['*a'] * 500)}]\n", "stand for more than 10,000 values",
    ),
    "an alias inside itself": ("a: &a [1, *a]\n", "stands inside of what it stands for"),
    "an alias of nothing": ("a: *b\n", "stands for nothing: there is no &b before it"),
    "lists in lists": ("[" * 100_000, "nest"),
    "blocks in blocks": ("".join(f"{' ' * n}a:\n" for n in range(2_000)), "is nested more than 50 levels deep"),
    "a number to base 60": (f"a: 1{':1' * 500_000}\n", "a number or date of 1,000,001 characters"),
    "a number of many digits": (f"a: {'9' * 1_000_000}\n", "a number or date of 1,000,000 characters"),
    "a list as a key": ("? [a]\n: 1\n", "a list or mapping as a key"),
    "another program's tag": ("a: !!python/object/apply:os.system [id]\n", "is not YAML: could not determine"),
    "a date that does not exist": ("a: 2024-13-45\n", "holds a value that does not exist"),
    "two documents": ("a: 1\n---\nb: 2\n", "a second document begins here"),
    "a tabulator": ("a:\n\t- b\n", "is not YAML"),
    "control characters": ("a: \x00\n", "is not YAML"),
    "a long key twice": (f"{'k' * 900}: 1\n{'k' * 900}: 1\n", "stands twice in one mapping, first on line 1"),
    "too large": ("a" * (33 << 20), "is larger than 32 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_would_take_all_time_or_memory_is_one_short_line_at_once(kind: str) -> None:
    text, expected = HOSTILE[kind]
    start = time.process_time()
    tracemalloc.start()
    said = refusal(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(said) == 1
    assert expected in said[0]
    assert len(said[0]) < 300
    # Bounds, not measurements: without them each of these takes minutes or gigabytes.
    assert time.process_time() - start < 20
    assert peak < 64 << 20


def test_every_key_that_stands_twice_is_named_with_both_lines() -> None:
    assert refusal("a: 1\nb: {c: 1, c: 2}\na: 2\n") == [
        "f.yaml:2: c: stands twice in one mapping, first on line 2",
        "f.yaml:3: a: stands twice in one mapping, first on line 1",
    ]


@given(st.text(max_size=200) | st.text("[]{}:,-&*ab?|>!%'\"# \n", max_size=200))
def test_any_text_is_the_safe_loaders_value_or_a_refusal(text: str) -> None:
    try:
        value = safe_yaml.load(text, "f.yaml")
    except TracelockError as refused:
        longest = max(len(str(problem)) for problem in refused.problems)
    else:
        longest = 0
        assert repr(value) == repr(yaml.safe_load(text))
    assert longest < 400
