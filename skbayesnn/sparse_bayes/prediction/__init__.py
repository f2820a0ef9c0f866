"""What a fitted network says of new rows: means, variances, draws, streams."""
