"""Linux integration for routers and senders: tc plans, apply and restore, the agent and the pacer."""
