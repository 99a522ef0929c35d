"""What several replicas tell each other, in Redis; each thing beside its in-process twin in `backends/local`."""
