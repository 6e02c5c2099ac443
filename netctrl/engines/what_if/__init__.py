"""What happens to a network's traffic when links or nodes fail, and when demands grow or change."""
