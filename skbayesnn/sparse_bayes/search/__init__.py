"""The search for a model: what is tried, what is kept, and what becomes of it.

The record is cut into `stretches` (`cut_record`). `candidates` are tried in `rounds`: a
`runner` fits each of them without one of the stretches (`candidate_fits`). The
`held_out_errors` there, in the `scored_rows`, are the `candidate_scores`. Some
candidates stay as `members` of an ensemble; they are fitted to the `whole_record`,
and those fits stay whose starts have settled (`settled_starts`). `searched_ensemble`
leads through all of it, and `results` tells what was found.
"""
