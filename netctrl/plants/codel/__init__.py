"""CoDel and its cycles."""
