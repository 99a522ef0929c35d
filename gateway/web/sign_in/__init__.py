"""Turns a browser at the door into one that is signed in: the flow, its pages, and the way out (design section 5.6)."""
