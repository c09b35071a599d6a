"""Optimisations that can be applied to a kernel's text, each with the conditions under which it holds. One file a skill:
a ``SKILL`` (``_skill.py``); the folder is read by listing it."""
