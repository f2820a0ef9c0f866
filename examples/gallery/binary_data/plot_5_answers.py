"""
Answers of a survey
===================

Features need not be pixels. Here they are the yes and no of a simulated survey, whose
questions have names. Three habits of the people make their answers depend on each
other, and a question that was skipped follows from the others.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbayesnn import FrankWolfeRBM
from skbayesnn.displays import FeatureWeightsDisplay

QUESTIONS = {
    "outdoors": ["hikes", "cycles", "gardens", "has a dog", "camps"],
    "at home": ["reads", "cooks", "plays games", "collects", "paints"],
    "in town": ["eats out", "sees films", "visits museums", "dances", "shops"],
}


def ask(n_people, rng):
    """Answers of people who have each habit or not; six of seven follow from it."""
    habits = rng.random((n_people, len(QUESTIONS))) < [0.5, 0.4, 0.3]
    follows = rng.random((n_people, 15)) < 6 / 7
    answers = np.where(
        follows, habits.repeat(5, axis=1), rng.random((n_people, 15)) < 0.3
    )
    return pd.DataFrame(answers.astype(float), columns=sum(QUESTIONS.values(), []))


rng = np.random.default_rng(0)
train, test = ask(1000, rng), ask(500, rng)
rbm = FrankWolfeRBM(random_state=0).fit(train)
print(f"{rbm.n_components_} units, {rbm.score(test):.2f} nats per person")

# %%
# Which questions does a unit stand for? The display names those with the largest
# weights, and puts questions together that belong to the same unit. No habit was ever
# asked for.
FeatureWeightsDisplay.from_estimator(rbm, n=8)
plt.show()

# %%
# A question that was not answered follows from the others. For each person of the test,
# one answer is hidden; ``impute`` gives the probability of a yes.
person, question = np.arange(len(test)), rng.integers(0, 15, len(test))
is_hidden = np.arange(15) == question[:, None]
hidden = test.mask(is_hidden)
p = rbm.impute(hidden, random_state=0)[person, question].clip(1e-6, 1 - 1e-6)
rate = train.mean().to_numpy()[question]
yes = test.to_numpy()[person, question] == 1
for title, probability in [("RBM", p), ("share of yes", rate)]:
    loss = -np.log(np.where(yes, probability, 1 - probability)).mean()
    print(f"{title:13} {loss:.3f} nats per hidden answer")
