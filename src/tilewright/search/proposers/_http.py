"""One POST of JSON: a limit on time as a whole and on size, no redirects (they would carry the key away), retries with
growing pauses where the server is busy. What comes back is data."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from ...errors import EnvironmentProblem, UserError

LARGEST = 4 << 20  # bytes of a reply
BUSY = {408, 409, 425, 429, 500, 502, 503, 504, 529}
LONGEST_PAUSE = 60.0


class Passing(Exception):
    """A trouble that may be over next time: the proposer has nothing to propose now."""


@dataclass(frozen=True)
class Patience:
    """``seconds`` for one attempt from the first byte sent to the last received; ``attempts`` in all."""

    seconds: float = 120.0
    attempts: int = 4
    pause: float = 1.0
    sleep: Callable[[float], None] = time.sleep


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def post(url: str, headers: Mapping[str, str], body: Mapping[str, Any], patience: Patience,
         rng: random.Random | None = None) -> dict[str, Any]:  # fmt: skip
    """The reply as a JSON object. Raises Passing for what may be over next time, UserError or EnvironmentProblem for
    what won't: a URL or a model that there isn't, a key that is refused."""
    if not url.startswith(("http://", "https://")):
        raise UserError(f"'{url}' is no http URL", remedy="give url=https://HOST/v1")
    words, wait = "", 0.0
    for attempt in range(patience.attempts):
        if attempt:
            patience.sleep(wait)
        wait = patience.pause * 2**attempt * (1 + (rng or random.Random(attempt)).random() / 4)
        try:
            return _object(_send(url, headers, body, patience.seconds))
        except urllib.error.HTTPError as e:
            if e.code not in BUSY:
                raise _refusal(e, url) from None
            words = f"the server answers {e.code}"
            wait = min(max(wait, _retry_after(e)), LONGEST_PAUSE)
        except (TimeoutError, urllib.error.URLError, HTTPException, OSError) as e:
            words = f"no answer within {patience.seconds:g} s" if _slow(e) else f"the connection failed: {_reason(e)}"
    raise Passing(f"{words}, {patience.attempts} times")


def _send(url: str, headers: Mapping[str, str], body: Mapping[str, Any], seconds: float) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {**headers, "content-type": "application/json"})
    end = time.monotonic() + seconds
    with urllib.request.build_opener(_Stay).open(request, timeout=seconds) as answer:
        found = bytearray()
        while part := answer.read1(1 << 16):
            found += part
            if len(found) > LARGEST:
                raise Passing(f"the reply is larger than {LARGEST >> 20} MiB")
            if time.monotonic() > end:
                raise TimeoutError
    return bytes(found)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise Passing(f"the reply is no JSON: {raw[:60].decode(errors='replace')!r}") from None
    if not isinstance(found, dict):
        raise Passing("the reply is JSON, but no object")
    return found


def _refusal(e: urllib.error.HTTPError, url: str) -> Exception:
    said = e.read(2000).decode(errors="replace").strip()
    if e.code in (401, 403):
        return EnvironmentProblem(f"the server refuses the key ({e.code})", where=url, detail=said[:300],
                                  remedy="set the key's environment variable, or name it with key_env=NAME")  # fmt: skip
    if e.code == 400 or e.code == 413:
        return Passing(f"the server does not take the request ({e.code}): {said[:200]}")
    return UserError(f"the server answers {e.code}", where=url, detail=said[:300],
                     remedy="check url= and model=")  # fmt: skip


def _retry_after(e: urllib.error.HTTPError) -> float:
    try:
        return float(e.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0


def _slow(e: BaseException) -> bool:
    return isinstance(e, TimeoutError) or isinstance(getattr(e, "reason", None), TimeoutError)


def _reason(e: BaseException) -> str:
    return str(getattr(e, "reason", "") or e or type(e).__name__)[:200]
