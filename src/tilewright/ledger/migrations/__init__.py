"""Schema of the ledger, step by step (Alembic). ``store.py`` runs it; nobody needs an ``alembic.ini``."""
