"""Networks of queues: senders whose paths cross several links, each with a law of its own."""
