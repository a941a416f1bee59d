"""Remote iOS Simulators and Android Emulators for pytest."""
