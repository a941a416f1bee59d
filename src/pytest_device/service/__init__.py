"""The local service: an independent implementation of the document, over real programs. Knows nothing of the client."""
