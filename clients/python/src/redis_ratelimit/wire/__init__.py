"""How calls reach a server: clients, connections, nodes, slots, redirections, time-outs."""
