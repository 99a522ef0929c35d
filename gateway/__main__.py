"""Turns `python -m gateway` into the `gateway` command."""

from gateway.cli import main

if __name__ == "__main__":
    main()
