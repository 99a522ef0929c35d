"""The seven stages of a request, one file each; `pipeline.py` puts them in order."""
