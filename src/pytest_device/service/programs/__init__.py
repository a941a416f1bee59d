"""The programs of this machine: installed once per user, started under a guard, and ended with all their children."""
