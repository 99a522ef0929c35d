"""What fulfils the ports: SQLite and PostgreSQL, this process, and the runtimes behind the gateway."""
