"""Command line: one file a command. A file ``name.py`` here defines ``command`` (its docstring is the help text).

Errors are caught once, in ``main``: the caller's mistakes and the machine's problems end with exit code 2 and a message
that says what, where and what next; a traceback is shown only for our own bugs.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pkgutil
import sys
import threading
import traceback

import typer

from ..errors import TilewrightError

INTERRUPTED = 130  # what the command line library returns for Ctrl-C
STOPPED = ("stopped by Ctrl-C; an audit, a bench or a suite goes on where it was when the same command is given again, a "
           "search with --resume")  # fmt: skip
ISSUES = "please report it with the traceback above"


def build() -> typer.Typer:
    """The application, its commands found by listing this folder."""
    app = typer.Typer(
        name="tilewright", no_args_is_help=True, add_completion=False, rich_markup_mode="markdown",
        pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
        help="Prove a GPU kernel right, on any machine. Start with **tilewright check PROBLEM KERNEL**.",
    )  # fmt: skip

    @app.callback(invoke_without_command=True)
    def top(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
        if version:
            from .. import __version__

            print(f"tilewright {__version__}")
            raise typer.Exit

    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{__name__}.{info.name}")
            app.command(name=info.name.replace("_", "-"))(module.command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the ``tilewright`` command."""
    code = run(arguments)
    if arguments is None:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End this process without taking torch apart piece by piece, which would take a second: what must be done at the
    end is done. Where other threads still work, the interpreter ends as ever."""
    if any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):  # whoever reads has gone: the interpreter's own words for it
        return
    os._exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    try:
        code = build()(arguments, standalone_mode=False)
        if code == INTERRUPTED:
            return _tell(STOPPED)
        return code if isinstance(code, int) else 0
    except TilewrightError as e:
        return _tell(str(e))
    except typer.Exit as e:
        return e.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _tell(STOPPED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except Exception as e:
        if hasattr(e, "format_message"):  # click's own usage errors
            return _usage(e)
        if isinstance(e, OSError) and e.errno == 28:
            return _tell(f"the disk is full: {e}", "free some space and run the same command again")
        traceback.print_exc()
        return _tell(f"Tilewright itself failed ({type(e).__name__}: {e})", ISSUES)


def _tell(message: str, remedy: str = "") -> int:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    head, _, rest = message.partition("\n")
    console.print(Text("error: ", style="bold red"), Text(head), sep="", soft_wrap=True)
    for line in (*rest.splitlines(), *([f"Try: {remedy}"] if remedy else [])):
        console.print(Text(line, style="bold" if line.startswith("Try: ") else ""), soft_wrap=True)
    return 2


def _usage(e: Exception) -> int:
    context = getattr(e, "ctx", None)
    if context is not None:
        print(context.get_usage(), file=sys.stderr)
    return _tell(e.format_message(), f"{context.command_path} --help" if context is not None else "tilewright --help")  # type: ignore[attr-defined]
