"""The ledger: an append-only, content-addressed record of verdicts, findings, audits and measurements."""

from . import attempt_models as attempt_models
from . import hidden_models as hidden_models
from . import search_models as search_models
from .audits import Audit, AuditItem
from .ledger import Ledger
from .records import FindingRecord, Found, VerdictRecord, contract_hash

__all__ = ["Audit", "AuditItem", "FindingRecord", "Found", "Ledger", "VerdictRecord", "contract_hash"]
