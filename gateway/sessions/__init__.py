"""Conversations: lineage, participants and the directory that finds them."""
