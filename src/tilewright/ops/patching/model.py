"""patch: looks at each module of a model, and replaces what was shown to be equal."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...errors import UserError
from . import head, mlps, norms, probe, rotary
from .report import Left, Patch, Replaced

KINDS = ("rms_norm", "mlp", "rope", "loss")


def patch(model: torch.nn.Module, *, example: Mapping[str, Any] | None = None, only: tuple[str, ...] = KINDS) -> Patch:
    """Put ``rms_norm``, ``swiglu`` or ``geglu``, ``rope`` and ``linear_cross_entropy`` into a model, where they are equal.

    Modules are found by shape and by what they compute on probes, never by name. Each replacement is compared with the old
    forward, results and gradients, on the model's device and in its dtype; what was not shown to be equal is left alone
    and named. ``example``: arguments of one short training call, labels included, by name (made up where forward takes
    ``input_ids`` and ``labels``). ``only``: of ``rms_norm``, ``mlp``, ``rope``, ``loss``.

    Returns what was replaced and left; its ``undo()``, or leaving it as a ``with`` block, takes all back. Random state,
    gradients and training mode are as before. Raises UserError for a model that has no weights to probe.
    """
    _check(model, only)
    report, modes = Patch(), [(m, m.training) for m in model.modules()]
    given = _example(model) if example is None else dict(example)
    try:
        model.eval()
        with torch.random.fork_rng(devices=_devices(model)):
            _all(model, given, only, report)
    except BaseException:
        report.undo()
        raise
    finally:
        for module, mode in modes:
            module.training = mode
    return report


def _check(model: torch.nn.Module, only: tuple[str, ...]) -> None:
    if unknown := set(only) - set(KINDS):
        raise UserError(f"patch: only names {', '.join(sorted(unknown))}, which is not one of {', '.join(KINDS)}",
                        remedy="leave it out, or name some of them")  # fmt: skip
    if any(p.is_meta for p in model.parameters()) or not any(True for _ in model.parameters()):
        raise UserError("patch: the model has no weights, or they lie on the meta device, so no probe can run",
                        remedy="load the weights first, then patch")  # fmt: skip


def _devices(model: torch.nn.Module) -> list[int]:
    return sorted({p.device.index or 0 for p in model.parameters() if p.is_cuda})


def _all(model: torch.nn.Module, given: dict[str, Any] | None, only: tuple[str, ...], report: Patch) -> None:
    call = None if given is None else lambda: model(**given)
    if "rope" in only:
        _rotaries(model, call, report)
    for path, module in model.named_modules():
        if "rms_norm" in only and norms.looks(module):
            _try(report, path, module, "a vector as its one parameter", _norm)
        if "mlp" in only and mlps.looks(module):
            _try(report, path, module, "a gated linear unit by its shapes", _mlp)
    if "loss" in only:
        _heads(model, call, report)


def _try(report: Patch, path: str, module: torch.nn.Module, what: str, attempt: Callable[..., tuple[Any, str, float]],
         *more: Any) -> None:  # fmt: skip
    """Replace one module, or say why not. Any error of the model's own code is a reason to leave it."""
    try:
        if "forward" in module.__dict__:
            raise probe.Unequal("its forward was replaced before")
        function, by, error = attempt(module, *more)
    except probe.Unequal as e:
        report.left.append(Left(path, what, str(e)))
    except Exception as e:
        report.left.append(Left(path, what, f"a probe failed with {type(e).__name__}: {str(e).splitlines()[0][:160]}"))
    else:
        if function is not None:
            report.put(module, function)
        report.replaced.append(Replaced(path, type(module).__name__, by, error))


def _norm(module: torch.nn.Module) -> tuple[Any, str, float]:
    eps, offset = norms.identify(module)
    new = norms.replacement(module, eps, offset)
    return new, f"rms_norm(eps={eps:g}, offset={offset:g})", norms.verify(module, new)


def _mlp(module: torch.nn.Module) -> tuple[Any, str, float]:
    found = mlps.identify(module)
    return mlps.replacement(found), found.kind, mlps.verify(module, found)


# --- rope ---------------------------------------------------------------------------------------------------------


def _rotaries(model: torch.nn.Module, call: Any, report: Patch) -> None:
    """Modules whose forward calls a rotary embedding. One example call shows the tables that they get."""
    known: dict[Any, rotary.Found | None] = {}
    users: list[tuple[str, torch.nn.Module, rotary.Found]] = []
    for path, module in model.named_modules():
        for name, function in rotary.called(module):
            if function not in known:
                known[function] = rotary.identify(name, function)
            if (found := known[function]) is not None:
                users.append((path, module, found))
    seen, why = _watch([(m, f) for _, m, f in users], call)
    for path, module, found in users:
        _try(report, path, module, f"calls the rotary embedding {found.name}", _rope, found, seen.get(module, []), why)


def _watch(users: list[tuple[torch.nn.Module, rotary.Found]], call: Any) -> tuple[dict[Any, Any], str]:
    """What each module gives to its rotary embedding in the example call; and why there is none."""
    seen: dict[Any, list[Any]] = {}
    if not users or call is None:
        return seen, "" if not users else NO_EXAMPLE
    spies = Patch()
    try:
        for module, found in users:
            if "forward" not in module.__dict__:
                spies.put(
                    module,
                    rotary.redirected(type(module).forward, found.name, _spy(found, seen.setdefault(module, []))),
                )
        with torch.no_grad():
            call()
        return seen, ""
    except Exception as e:
        return {}, f"the example call of the model failed with {type(e).__name__}: {str(e).splitlines()[0][:160]}"
    finally:
        spies.undo()


def _spy(found: rotary.Found, seen: list[Any]) -> Callable[..., Any]:
    def watched(q: Any, k: Any, cos: Any, sin: Any, *rest: Any, **named: Any) -> Any:
        seen.append((q, k, cos, sin))
        return found.function(q, k, cos, sin, *rest, **named)

    return watched


def _rope(module: torch.nn.Module, found: rotary.Found, seen: list[Any], why: str) -> tuple[Any, str, float]:
    if why:
        raise probe.Unequal(why)
    dtype, device = (seen[0][0].dtype, seen[0][0].device) if seen else (torch.float32, "cpu")
    error = rotary.verify(found, dtype, device, seen)
    return rotary.redirected(type(module).forward, found.name, found), "rope", error


# --- the head -----------------------------------------------------------------------------------------------------

NO_EXAMPLE = "no example call is known (give patch(model, example={...}))"


def _heads(model: torch.nn.Module, call: Any, report: Patch) -> None:
    vocabularies = {tuple(m.weight.shape) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    for path, module in model.named_modules():
        if head.looks(module, vocabularies):
            owner = model.get_submodule(path.rpartition(".")[0])
            _try(report, path, module, "a linear layer over the vocabulary", _head, owner, call, report)


def _head(module: Any, owner: torch.nn.Module, call: Any, report: Patch) -> tuple[Any, str, float]:
    if call is None:
        raise probe.Unequal(NO_EXAMPLE)
    if "forward" in owner.__dict__:
        raise probe.Unequal("the forward of the module around it was replaced before")
    return None, "linear_cross_entropy", head.verify(module, owner, call, report.put, report.take)


def _example(model: torch.nn.Module) -> dict[str, Any] | None:
    """A short call with made-up tokens, where forward names them as transformers do."""
    names = inspect.signature(model.forward).parameters
    table = next((m for m in model.modules() if isinstance(m, torch.nn.Embedding)), None)
    if table is None or "input_ids" not in names:
        return None
    tokens = torch.randint(table.num_embeddings, (2, 7), generator=torch.Generator().manual_seed(9))
    tokens = tokens.to(table.weight.device)
    return {"input_ids": tokens} | ({"labels": tokens.clone()} if "labels" in names else {})
