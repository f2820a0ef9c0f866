"""The search for a model: what is tried, what is kept, and what becomes of it.

`candidates` are tried in `rounds`; a `runner` fits them without a stretch of the record
(`held_out`), and their errors there are the `candidate_scores`. Some stay as `members`
of an ensemble, are fitted to the `whole_record`, and are joined: `searched_ensemble`
leads through all of it, and `results` tells what was found.
"""
