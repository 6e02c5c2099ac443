"""Linux integration for routers and senders: tc plans, apply and restore, the agent, the pacer and the testbed."""
