"""What a device did, as values: recorded once per command, masked, and read by every writer.

``values`` are the values, ``recorder`` numbers and masks them, ``appium`` records the commands of a
driver; ``recording`` keeps the values of the current test in memory, ``playwright`` writes them as
a trace. Knows neither pytest nor sessions.
"""
