"""What a person sees of a run, and what no output may show. Knows nothing of how tests get their sessions."""
