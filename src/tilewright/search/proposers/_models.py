"""Talking to a language model: the two ways of speaking that nearly all servers understand."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import EnvironmentProblem
from ..tree import Cost
from ._http import Passing, Patience, post

Kind = Literal["openai", "anthropic"]
URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@dataclass(frozen=True)
class Said:
    """What a model said, and what that cost."""

    text: str
    cost: Cost


@dataclass(frozen=True)
class Server:
    """``url``: where the API begins. ``prices``: money a million tokens, in and out. The key is read from the environment
    when it is needed and kept nowhere."""

    kind: Kind = "openai"
    url: str = ""
    key_env: str = ""
    temperature: float | None = None
    prices: tuple[float, float] = (0.0, 0.0)
    patience: Patience = field(default_factory=Patience)

    def key(self) -> str:
        """Raises EnvironmentProblem where there is none and the server is not one of one's own (``url`` was not given)."""
        name = self.key_env or KEYS[self.kind]
        found = os.environ.get(name, "")
        if not found and (self.key_env or not self.url):
            raise EnvironmentProblem(f"no key: the environment has no {name}",
                                     remedy=f"set {name}, or give url= of a server that needs none")  # fmt: skip
        return found

    def ask(self, model: str, system: str, user: str, most: int, rng: random.Random) -> Said:
        """One question, one answer of at most ``most`` tokens. Raises Passing, UserError, EnvironmentProblem."""
        base, key = (self.url or URLS[self.kind]).rstrip("/"), self.key()
        talk: list[dict[str, str]] = [{"role": "user", "content": user}]
        body: dict[str, Any] = {"model": model, "max_tokens": most}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.kind == "anthropic":
            headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
            url = base + ("/messages" if base.endswith("/v1") else "/v1/messages")
            return self._read(post(url, headers, {**body, "system": system, "messages": talk}, self.patience, rng))
        headers = {"authorization": f"Bearer {key}"} if key else {}
        talk.insert(0, {"role": "system", "content": system})
        return self._read(post(base + "/chat/completions", headers, {**body, "messages": talk}, self.patience, rng))

    def _read(self, reply: Mapping[str, Any]) -> Said:
        try:
            text = _anthropic(reply) if self.kind == "anthropic" else reply["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            raise Passing(f"the reply has not the form of {self.kind}: {str(dict(reply))[:120]}") from None
        if not isinstance(text, str) or not text.strip():
            raise Passing("the reply holds no text")
        names = (
            ("input_tokens", "output_tokens") if self.kind == "anthropic" else ("prompt_tokens", "completion_tokens")
        )
        into, out = (_count(reply, n) for n in names)
        money = (into * self.prices[0] + out * self.prices[1]) / 1e6
        return Said(text, Cost(tokens=into + out, money=money))


def _anthropic(reply: Mapping[str, Any]) -> str:
    return "".join(part["text"] for part in reply["content"] if part.get("type") == "text")


def _count(reply: Mapping[str, Any], name: str) -> int:
    """Tokens as the server counts them; nothing where it doesn't."""
    usage = reply.get("usage")
    n = usage.get(name, 0) if isinstance(usage, dict) else 0
    return n if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 40 else 0
