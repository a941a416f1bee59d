"""The local service: a second reading of the document, over real programs. Knows nothing of the client side."""
