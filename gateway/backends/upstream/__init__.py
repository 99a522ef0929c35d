"""What the gateway calls: runtimes of agents."""
