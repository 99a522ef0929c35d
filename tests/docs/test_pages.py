"""Turns small pages into examples, so that the tests of the real pages can be trusted to fail."""

from __future__ import annotations

import pytest

from tests.docs.pages import Example, examples, fits

PAGE = """\
Text.

```console
$ first
one
two
$ second <<'END'
> more
> END
```

```python
print(1)
```

```text
1
```
"""


def test_a_page_is_its_commands_with_what_they_print() -> None:
    """Ours: a command goes on with `> `, a program is compared with the block below it."""
    assert list(examples(PAGE)) == [
        Example("first", "one\ntwo", 4),
        Example("second <<'END'\nmore\nEND", "", 7),
        Example("python - <<'END_OF_EXAMPLE'\nprint(1)\nEND_OF_EXAMPLE", "1\n", 12),
    ]


@pytest.mark.parametrize(
    ("page", "same", "other"),
    [
        ("one\ntwo", "one\ntwo\n", "one\ntwo\nthree\n"),
        ("one", "one", "two"),
        ("", "", "a warning nobody expected"),
        ("…\ntwo", "a\nb\ntwo", "a\nb\nthree"),
        ("one …", "one and more", "one\nand more"),
        ('"reason": null', '"reason": null', '"reason": "missing"'),
        ("prf_… is in", "prf_01M8Q2X3YSSJCBS5RWK1JY5666 is in", "prf_01M8Q2X3YSSJCBS5RWK1JY5666 is out"),
        ("2026-11-30T20:33:13.419203Z  one", "2027-01-01T00:00:00Z     one", "yesterday  one"),
        ('"epoch": 11', '"epoch": 12', '"epochs": 11'),
    ],
)
def test_only_what_differs_from_run_to_run_may_differ_from_the_page(page: str, same: str, other: str) -> None:
    """Ours: ids, times, tokens, hashes and epochs are alike; `…` is as much as a page leaves out, and no more."""
    assert fits(page, same)
    assert not fits(page, other)
