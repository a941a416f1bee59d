"""The Appium driver of a session, from its options to its quit, with a time limit for each step.

``options`` merges the capabilities, ``connection`` configures the client, ``drivers`` starts and quits the driver;
``refusal`` explains a rejected start, ``launch`` opens the link of the marker, ``evidence`` collects artifacts.
"""
