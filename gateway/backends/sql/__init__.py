"""The store: SQLAlchemy Core tables, on SQLite here and written so that PostgreSQL can follow."""
