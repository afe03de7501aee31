"""conda's order of versions and ranges, against py-rattler and the table in conda's own documentation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracelock.envs.versions import Version, satisfies

rattler = pytest.importorskip("rattler")

# From conda's documentation of VersionOrder: each is smaller than the next, or equal where a pair stands.
ORDER = (
    "0.4 == 0.4.0",
    "0.4.1.rc == 0.4.1.RC",
    "0.4.1",
    "0.5a1",
    "0.5b3",
    "0.5C1",
    "0.5",
    "0.9.6",
    "0.960923",
    "1.0",
    "1.1dev1",
    "1.1_",
    "1.1a1",
    "1.1.0dev1 == 1.1.dev1",
    "1.1.a1",
    "1.1.0rc1",
    "1.1.0 == 1.1",
    "1.1.0post1 == 1.1.post1",
    "1.1post1",
    "1996.07.12",
    "1!0.4.1",
    "1!3.1.1.6",
    "2!0.4.1",
)


def test_the_documented_order() -> None:
    groups = [[Version(text) for text in line.split(" == ")] for line in ORDER]
    for lower, higher in pairwise(groups):
        assert all(a < b for a in lower for b in higher)
    for group in groups:
        assert group[0] == group[-1]
        assert hash(group[0]) == hash(group[-1])


@pytest.mark.parametrize(
    ("version", "versions", "inside"),
    [
        ("1.26.4", "<2", True),
        ("2.0.1", "<2", False),
        ("2024.0.0", "<2024.1", True),
        ("2024.1.0", "<2024.1", False),
        ("3.10.14", "3.10.*", True),
        ("3.1", "3.10.*", False),
        ("3.9.0", "3.9.0", True),
        ("9e", ">=9d,<10a", True),
        ("26.1.1", ">=24.7.1", True),
        ("24.7.0", ">=24.7.1", False),
        ("450.80.02", ">=450.80.02", True),
        ("450.66", ">=450.80.02", False),
        ("11.8", ">=11.8,<11.9", True),
        ("1.8", ">=1.9|1.8", True),
        ("1.4.5", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("1.2.9", "!=1.2.*", False),
        ("1.2", "=1.2", True),
        ("1.20", "=1.2", False),
        ("0.1+cpu", "=0+cpu", False),
        ("0+cpu", "=0+cpu", True),
        ("0+cpu.1", "=0+cpu", True),
        ("0+cpux.1", "=0+1", False),
        ("1.2.5", "1.*.5", True),
        ("5", "", True),
        ("5", "*", True),
    ],
)
def test_ranges(version: str, versions: str, inside: bool) -> None:
    assert satisfies(version, versions) is inside


@pytest.mark.parametrize("text", ["", "1..2", "a b", "1!2!3", "ä"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|part"):
        Version(text)


@pytest.mark.parametrize("versions", ["(1|2)", "^1.*$", ">=1,"])
def test_what_is_no_range(versions: str) -> None:
    with pytest.raises(ValueError, match="range"):
        satisfies("1", versions)


PARTS = st.sampled_from(["0", "1", "2", "10", "1a1", "1rc2", "0dev3", "5post1", "rc", "alpha", "9e", "2024"])
VERSIONS = st.builds(
    lambda epoch, parts, local: epoch + ".".join(parts) + local,
    st.sampled_from(["", "", "", "1!"]),
    st.lists(PARTS, min_size=1, max_size=4),
    st.sampled_from(["", "", "", "+cpu", "+1.2"]),
)


@given(VERSIONS, VERSIONS)
def test_order_as_rattler_has_it(left: str, right: str) -> None:
    ours, theirs = (Version(left), Version(right)), (rattler.Version(left), rattler.Version(right))
    assert (ours[0] < ours[1], ours[0] == ours[1]) == (theirs[0] < theirs[1], theirs[0] == theirs[1])


OPERATORS = st.sampled_from(["", "==", "!=", "<", "<=", ">", ">=", "="])


@given(VERSIONS, st.lists(st.tuples(OPERATORS, VERSIONS), min_size=1, max_size=2), st.sampled_from([",", "|"]))
def test_ranges_as_rattler_has_them(version: str, terms: list[tuple[str, str]], joint: str) -> None:
    # conda and ours begin with 0+cpu only where what stands before + is equal; rattler takes 0.1+cpu for such a one.
    public = Version(version.partition("+")[0])
    prefixes = [text.partition("+") for operator, text in terms if operator == "="]
    assume(all(not local or Version(before) == public for before, _, local in prefixes))
    versions = joint.join(operator + text for operator, text in terms)
    assert satisfies(version, versions) == rattler.VersionSpec(versions).matches(rattler.Version(version))
