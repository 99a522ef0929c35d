"""Turns what a person is to see while signing in into pages: plain HTML, no script, nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from gateway.web.sign_in.texts import Text

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Choice:
    """An issuer to sign in at, and what people call it."""

    name: str
    title: str


class Pages:
    """The pages of signing in."""

    def __init__(self, public_url: str) -> None:
        """`public_url` is where browsers see us; a sign-in that began at another address would not come back there."""
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            auto_reload=False,  # they change with the program alone
        )
        style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
        # Ours alone and without "</", so it may stand in the page as it is; the policy allows exactly these bytes.
        self._templates.globals["home"] = public_url
        self._templates.globals["style"] = Markup(style)  # noqa: S704 - a file of this package
        self._style_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")

    def choose(self, choices: Sequence[Choice], following: str) -> Response:
        """Where do you have your account?"""
        return self._page("choose.html", choices=choices, next=following)

    def signed_in(self, *, name: str, tenant: str, csrf_token: str, leads_to: Iterable[str]) -> Response:
        """Who you are, and the way out. `leads_to` are the addresses that the form may be sent on to."""
        page = self._page("signed_in.html", leads_to, name=name, tenant=tenant, csrf_token=csrf_token)
        # With "no-referrer" a browser says `Origin: null` of a form, and no page could prove to be ours (Fetch, "append
        # a request Origin header").
        page.headers["Referrer-Policy"] = "same-origin"
        return page

    def signed_out(self) -> Response:
        """Good-bye."""
        return self._page("signed_out.html")

    def trouble(self, text: Text, *, request_id: str, again: str) -> Response:
        """What went wrong and what to do."""
        page = self._page(
            "trouble.html", title=text.title, text=text.text, link=text.link, again=again, request_id=request_id
        )
        page.status_code = text.status
        return page

    def _page(self, template: str, leads_to: Iterable[str] = (), **values: Any) -> Response:
        html = self._templates.get_template(template).render(values)
        forms = " ".join(["'self'", *sorted({_origin(url) for url in leads_to})])
        policy = (
            f"default-src 'none'; style-src 'sha256-{self._style_hash}'; form-action {forms}; "
            "frame-ancestors 'none'; base-uri 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        return Response(html, headers=headers, media_type="text/html")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
