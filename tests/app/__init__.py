"""Tests of the app under test."""
