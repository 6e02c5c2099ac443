"""Search for a model: learners of candidates, their comparison on what is left out, and what is found."""
