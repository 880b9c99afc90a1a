"""What ``leadtime backtest`` consists of: its inputs, and each form of its outcome."""
