"""Problems written into a temporary folder."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """``write("problem.py", text)`` gives the path; Python files get the usual imports first."""

    def _write(name: str, text: str, head: str = HEAD) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((head if name.endswith(".py") else "") + dedent(text))
        return str(path)

    return _write
