"""What a rule costs on hardware; the public name is `ledger`."""
