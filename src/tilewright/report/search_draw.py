"""Pictures of searches and studies: lineage tree, best-so-far curve, archive, predictions, regret. Inline SVG in percent
of the width, by the helpers of the HTML report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ..search.descriptors import axes, cell
from ..search.strategies.map_elites import archive
from ..search.tree import Node, Tree
from .html import draw

COLOURS = ("#2a5bd7", "#14794a", "#bd2c26", "#8f5a00", "#7a3fb0", "#00808a", "#b0408f", "#59636f", "#a0522d", "#4b6b00")
"""One a strategy, told apart by the order of the legend as well."""
STEP = 26


def tone(node: Node, winner: int | None) -> str:
    """``good`` for the winner, ``accent`` for what is right, ``warn`` for the slower, ``bad`` for what failed."""
    if node.number == winner:
        return "good"
    if not node.ok:
        return "bad"
    return "warn" if node.failure is not None else "accent"


def best_curve(tree: Tree, winner: int | None) -> Markup:
    """Ratio of each trial (dot) and of the best so far (steps) over trials."""
    timed = [n for n in tree if n.ok and n.timing]
    y = draw.around([n.timing.ratio for n in timed if n.timing] + [1.0], log=True, down=True)
    x = draw.Scale(-0.5, max(tree.nodes) + 0.5)
    parts = [draw.line(0, y.at(t), 100, y.at(t), "one" if t == 1 else "grid") for t in draw.ratio_ticks(y)]
    parts += [draw.text(0, y.at(t), f"{t:g}x", "tick", "end", dx=-6, dy=4) for t in draw.ratio_ticks(y)]
    reached = 0.0
    points: list[tuple[float, float]] = []
    for n in tree:
        if n.ok and n.timing and n.timing.ratio > reached:
            points += [(x.at(n.number), y.at(reached))] if points else []
            reached = n.timing.ratio
            points.append((x.at(n.number), y.at(reached)))
    points += [(100.0, points[-1][1])] if points else []
    parts += [draw.line(*a, *b, "whisker accent") for a, b in itertools.pairwise(points)]
    for n in tree:
        place = y.at(n.timing.ratio) if n.timing else 100.0
        title = f"#{n.number}: " + (f"{n.timing.ratio:.3f}x" if n.timing else n.failure.kind if n.failure else "")
        parts.append(draw.dot(x.at(n.number), place, 4, f"point {tone(n, winner)}", title))
    parts.append(draw.text(50, 100, "trials; what failed lies on the lower edge", "tick", dy=18))
    return draw.svg(parts, 240, "best ratio so far over trials", "plane")


def lineage(tree: Tree, winner: int | None) -> Markup:
    """The tree: a column a generation, a row a leaf; lines from parents to children."""
    place = _layout(tree)
    deep = max(x for x, _ in place.values()) or 1
    rows = max(y for _, y in place.values()) + 1
    line_of = {n.number for n in tree.lineage(winner)} if winner is not None else set()
    at = {n: (4 + 88 * x / deep, 100 * (y + 0.5) / rows) for n, (x, y) in place.items()}
    parts = []
    for n in tree:
        if n.parent is not None:
            parts.append(
                draw.line(*at[n.parent], *at[n.number], "whisker accent" if n.number in line_of else "roof thin")
            )
    for n in tree:
        title = f"#{n.number} {n.proposal.proposer} {n.proposal.title}: " + (
            f"{n.timing.ratio:.3f}x" if n.timing else n.failure.message if n.failure else "")  # fmt: skip
        parts.append(draw.dot(*at[n.number], 6, f"point full {tone(n, winner)}", title))
        parts.append(draw.text(*at[n.number], str(n.number), "tick", "start", dx=9, dy=4))
    return draw.svg(parts, max(120, min(1600, STEP * rows)), "lineage tree")


def _layout(tree: Tree) -> dict[int, tuple[int, float]]:
    """Generation, and a row: leaves one after the other, a parent in the middle of its children. Without recursion,
    since a greedy search makes long chains."""
    generation: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for n in tree:
        generation[n.number] = 0 if n.parent is None else generation[n.parent] + 1
        children.setdefault(n.number, [])
        if n.parent is not None:
            children[n.parent].append(n.number)
    row: dict[int, float] = {}
    leaf = 0
    stack, order = [0], []
    while stack:
        order.append(stack.pop())
        stack += reversed(children[order[-1]])
    for number in order:
        if not children[number]:
            row[number], leaf = float(leaf), leaf + 1
    for number in reversed(order):
        if children[number]:
            row[number] = (row[children[number][0]] + row[children[number][-1]]) / 2
    return {n: (generation[n], row[n]) for n in order}


def heat_map(tree: Tree) -> Markup | None:
    """The archive over the two descriptors that vary most: the darker, the faster its fastest; None without two."""
    over = axes(tree, 2)
    if len(over) < 2:
        return None
    cells = archive(tree.ranked(), over)
    tried: dict[tuple[object, ...], int] = {}
    for n in tree:
        tried[cell(n.descriptors, over)] = tried.get(cell(n.descriptors, over), 0) + 1
    xs, ys = (sorted({c[i] for c in tried}, key=lambda v: (str(type(v)), v)) for i in (0, 1))  # type: ignore[arg-type, return-value]
    top = max((n.score or 0.0) for n in cells.values()) if cells else 1.0
    parts = []
    for c, count in tried.items():
        i, j = xs.index(c[0]), ys.index(c[1])
        box = {"x": draw.percent(100 * i / len(xs)), "y": draw.percent(100 * j / len(ys)),
               "width": draw.percent(100 / len(xs) - 0.4), "height": draw.percent(100 / len(ys) - 1)}  # fmt: skip
        elite = cells.get(c)
        share = max(0.0, (elite.score or 0.0) / top) if elite is not None and top > 0 else 0.0
        fill = (
            {"class_": "hill accent", "style": f"opacity:{0.08 + 0.82 * share:.2f}"} if elite else {"class_": "noise"}
        )
        words = f"#{elite.number}: {elite.timing.ratio:.2f}x" if elite and elite.timing else "none right"
        label = f"{over[0]} {_named(c[0])}, {over[1]} {_named(c[1])}: {count} tried, {words}"
        shown = f"{elite.timing.ratio:.2f}x" if elite and elite.timing else "–"
        middle = draw.text(100 * (i + 0.5) / len(xs), 100 * (j + 0.5) / len(ys), shown, "tick strong", dy=4)
        parts += [draw.tag("rect", draw.tag("title", label), **box, **fill), middle]
    parts += [draw.text(100 * (i + 0.5) / len(xs), 100, _named(v), "tick", dy=14) for i, v in enumerate(xs)]
    parts += [draw.text(0, 100 * (j + 0.5) / len(ys), _named(v), "tick", "end", dx=-6, dy=4) for j, v in enumerate(ys)]
    parts.append(
        draw.text(50, 100, f"{over[0]} (across) and {over[1]} (down), numbers in powers of two", "tick", dy=30)
    )
    return draw.svg(parts, 44 * len(ys) + 8, "archive", "plane")


def _named(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, int) and not isinstance(value, bool):
        return "0" if value == 0 else f"{int(math.copysign(2 ** (abs(value) - 1), value))}"
    return str(value)


def predictions(pairs: Sequence[tuple[float, float, str]]) -> Markup:
    """Predicted against measured gain over the parent; on the line they agree."""
    scale = draw.around([v for p in pairs for v in p[:2]] + [1.0], log=True)
    down = draw.Scale(scale.low, scale.high, True, True)
    parts = [draw.line(0, 100, 100, 0, "one")]
    for t in draw.ratio_ticks(scale):
        parts += [draw.line(scale.at(t), 0, scale.at(t), 100, "grid"), draw.line(0, down.at(t), 100, down.at(t), "grid"),
                  draw.text(scale.at(t), 100, f"{t:g}x", "tick", dy=14),
                  draw.text(0, down.at(t), f"{t:g}x", "tick", "end", dx=-6, dy=4)]  # fmt: skip
    parts += [draw.dot(scale.at(p), down.at(m), 5, "point full accent", title) for p, m, title in pairs]
    parts.append(draw.text(50, 100, "predicted (across), measured (up)", "tick", dy=30))
    return draw.svg(parts, 260, "predicted against measured gain", "plane")


def regret(curves: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]]) -> Markup:
    """Mean regret with its band, over trials; a colour and a place in the legend for each strategy."""
    most = max(len(c[0]) for c in curves.values()) - 1
    x, y = draw.Scale(0, most), draw.Scale(0, 1, down=True)
    parts = [draw.line(0, y.at(t), 100, y.at(t), "grid") for t in (0, 0.25, 0.5, 0.75, 1)]
    parts += [draw.text(0, y.at(t), f"{t:.0%}", "tick", "end", dx=-6, dy=4) for t in (0, 0.25, 0.5, 0.75, 1)]
    parts += [draw.text(x.at(t), 100, f"{t:g}", "tick", dy=16) for t in draw.plain_ticks(x)]
    bands, lines = [], []
    for i, (mean, low, high) in enumerate(curves.values()):
        colour = COLOURS[i % len(COLOURS)]
        upper = [f"{10 * x.at(k):.1f},{10 * y.at(v):.1f}" for k, v in enumerate(high)]
        lower = [f"{10 * x.at(k):.1f},{10 * y.at(v):.1f}" for k, v in reversed(list(enumerate(low)))]
        middle = [f"{10 * x.at(k):.1f},{10 * y.at(v):.1f}" for k, v in enumerate(mean)]
        bands.append(draw.tag("polygon", points=" ".join((*upper, *lower)), fill=colour, opacity="0.10"))
        lines.append(draw.tag("polyline", points=" ".join(middle), fill="none", stroke=colour, stroke_width="2",
                              vector_effect="non-scaling-stroke"))  # fmt: skip
    inner = draw.tag("svg", Markup("").join([*bands, *lines]), viewBox="0 0 1000 1000", preserveAspectRatio="none",
                     width="100%", height="100%", x=0, y=0)  # fmt: skip
    parts += [inner, draw.text(50, 100, "trials", "tick", dy=30)]
    return draw.svg(parts, 320, "regret over trials", "plane")
