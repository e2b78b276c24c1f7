"""The pages of alerts and of the rules that raise them."""
