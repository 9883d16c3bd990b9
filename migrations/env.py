"""How Alembic runs here: on the connection that `storage/migrate.py` hands over, inside its transaction."""

from alembic import context

from cortex.storage.schema import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
