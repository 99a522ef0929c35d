"""Turns words on a command line into operations of the pipeline; what it prints are the objects of the interface."""

from gateway.cli.command_line import build, main

__all__ = ["build", "main"]
