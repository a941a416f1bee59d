"""The Appium driver of a session, from its options to its quit, with a time limit for each step.

``options`` merges the capabilities, ``connection`` configures the client, ``drivers`` starts and quits the driver and
opens the link of the marker; ``refusal`` explains a rejected start, ``evidence`` collects artifacts.
"""
