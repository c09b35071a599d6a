"""Who proposes new sources. One file a proposer: ``make(options) -> Proposer``; copy ``replay.py``."""
