"""Operators on records: functions of single rows, with states and timers."""
