"""Signs a user in on a web page: a program that a run starts, and that ends with it."""
