"""The source operator: splits, their event time, and the steps behind them."""
