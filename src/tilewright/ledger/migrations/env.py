"""Runs the steps on the connection that ``store.migrate`` hands over, inside its transaction."""

from alembic import context

from tilewright.ledger.models import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
