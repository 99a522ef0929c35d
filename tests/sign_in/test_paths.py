"""Tests that nobody is sent to another place after signing in, whatever they are made to ask for."""

from __future__ import annotations

from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.web.sign_in.paths import AFTER_SIGN_IN, on_this_origin

HOME = "https://gateway.test"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/console",
        "/console/people?page=2&q=a%20b#top",
        "/v1/me",
        "/a/b.c-d_e~f",
        "/console?next=/v1/me",
        "/caf%C3%A9",
        "/@alice",
        "/a:b",
        "/100%25",
    ],
)
def test_a_path_of_ours_is_kept_as_it_is(path: str) -> None:
    """Ours: what a person wanted before they signed in is where they go."""
    assert on_this_origin(path) == path


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        "",
        "console",
        "//evil.example",
        "///evil.example",
        "////evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " //evil.example",
        "/\x00/evil.example",
        "/ /evil.example",
        "https://evil.example",
        "https:evil.example",
        "https:/evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "@evil.example",
        "user@evil.example",
        "/%2fevil.example",
        "/%2Fevil.example",
        "/%5cevil.example",
        "/%5Cevil.example",
        "/%252fevil.example",
        "/%25252fevil.example",
        "/%2525252525252fevil.example",
        "/%09/evil.example",
        "/%0d%0aSet-Cookie:x=1",
        "/%00",
        "/%7f",
        "/a//b",
        "/a/..//evil.example",
        "/.//evil.example",
        "/%2e//evil.example",
        "/a\\b",
        "/\N{FULLWIDTH SOLIDUS}evil.example",
        "/\N{RIGHT-TO-LEFT OVERRIDE}",
        "/%E2%80%AE",
        "/%C2%85",
        "/%EF%BB%BF",
        "/caf\xe9",
        "/\ud800",
        "/" + "a" * 2_048,
        "?next=//evil.example",
        "#//evil.example",
    ],
)
def test_anything_else_leads_to_the_page_that_everybody_has(wanted: str | None) -> None:
    """Issue 3: an open redirect is impossible; also for a proxy that decodes once more than we do."""
    assert on_this_origin(wanted) == AFTER_SIGN_IN


def as_a_browser_reads(url: str, base: str) -> str:
    """The origin that a browser goes to (WHATWG URL, basic parser): it drops tabs and line ends anywhere, and spaces
    and controls at both ends; a backslash is a slash; after two slashes, however many, comes a host."""
    text = url.strip("".join(map(chr, range(0x21))))
    text = "".join(one for one in text if one not in "\t\n\r").replace("\\", "/")
    scheme, colon, rest = text.partition(":")
    if colon and scheme[:1].isalpha() and all(one.isalnum() or one in "+-." for one in scheme):
        return f"{scheme.lower()}://{rest.lstrip('/').split('/')[0]}"
    if text.startswith("//"):
        return f"{urlsplit(base).scheme}://{text.lstrip('/').split('/')[0]}"
    return "{0.scheme}://{0.netloc}".format(urlsplit(base))


PIECES = st.sampled_from(
    [
        *("/", "\\", "//", ".", "..", "@", ":", "?", "#", "%", "\t", "\n", "\r", " ", "\x00", "https:", "javascript:"),
        *("%2f", "%5C", "%09", "%00", "%25", "%252f", "evil.example", "console"),
        *("\N{FULLWIDTH SOLIDUS}", "\xa0", "\u2028"),
    ]
)
WANTED = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=12).map("".join).map(lambda text: f"/{text}"))


@given(WANTED)
@example("/\\\\evil.example")
@example("/%2525252fevil.example")
def test_whatever_is_wanted_a_browser_stays_here(wanted: str) -> None:
    """As `urllib` reads it, as a browser does, and after any proxy on the way has decoded it once or twice."""
    path = on_this_origin(wanted)

    assert path in (wanted, AFTER_SIGN_IN)
    for form in (path, unquote(path), unquote(unquote(path)), quote(path, safe="/%?#=&:@")):
        assert form.startswith("/")
        assert not form.startswith(("//", "/\\"))
        assert urlsplit(form).netloc == ""
        assert urlsplit(form).scheme == ""
        assert urlsplit(urljoin(HOME, form)).netloc == "gateway.test"
        assert as_a_browser_reads(form, HOME) == HOME
        assert as_a_browser_reads(HOME + form, HOME) == HOME
        assert "\r" not in form
        assert "\n" not in form
