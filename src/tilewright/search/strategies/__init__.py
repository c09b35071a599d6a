"""Which node to go on from, by whom. One file a strategy: a class ``Strategy`` with an ``ask``; copy ``random.py``."""
