"""The tables of this plugin, release by release: an Alembic script folder."""
