import ast
from textwrap import dedent

from tilewright.task.readers.constants import find, substitute

TEXT = dedent("""
    import torch
    N = 2048 * 2
    height = width = 128
    a, b = 3, 4
    shape = (64, 1)
    scale = 2.5
    flag = True
    double = 2 * N
    class Model:
        def __init__(self, k=3):
            self.k = 7
    def get_inputs(batch=16):
        local = 5
        x = torch.rand(batch, N, 12)
        y = torch.softmax(x, 1)
        return [x * 2, torch.randint(0, 10, (batch,)), torch.sum(x, dim=2), x[0, 1]]
    def other():
        return 99
""")


def test_which_integers_are_constants_and_what_they_are_called():
    found = find(ast.parse(TEXT))
    named = {c.name: c.value for c in found.values() if c.name}
    assert named == {"N": 4096, "height": 128, "a": 3, "b": 4, "shape_0": 64, "batch": 16, "local": 5}
    assert sorted(c.value for c in found.values() if not c.name) == [1, 10, 12]


def test_substitution_changes_only_what_is_asked_and_keeps_lines():
    tree = ast.parse(TEXT)
    found = find(tree)
    changed = ast.unparse(substitute(tree, found, {"N": 100, "width": 1, "height": 9, "batch": 2}))
    assert "N = 100" in changed
    assert "height = width = 9" in changed
    assert "def get_inputs(batch=2)" in changed
    assert "double = 2 * N" in changed
    assert "2048 * 2" in ast.unparse(tree), "the original stays"
    for before, after in zip(ast.walk(tree), ast.walk(substitute(tree, found, {"a": 8})), strict=False):
        if isinstance(before, ast.stmt) and isinstance(after, ast.stmt):
            assert before.lineno == after.lineno
