"""The search for a model: what is tried, what is kept, and what becomes of it.

The record is cut into `stretches` (`cut_record`). A `search_space` says what may be
tried, and `candidates` are tried in `rounds`: a `runner` fits each of them without one
of the stretches (`candidate_fits`). Their `held_out_errors` there, in the
`scored_rows`, are the `candidate_scores`, by which they are compared (`comparison`).
Some candidates stay as `members` of an ensemble. They are fitted to the `whole_record`,
without starts that ended in a poor optimum (`settled_starts`). `searched_ensemble`
leads through all of it, and `results` tells what was found.
"""
