"""The report of a backtest: policies side by side, as JSON, as a table and as one HTML file."""
