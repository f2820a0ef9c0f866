"""From the log of a plant to its controller: a model of two water tanks in use.

A CSV with times and a hole becomes a model, a residual analysis, a step response, C,
ONNX and a predictive controller that keeps a simulated plant below a limit. Needs
pandas, casadi, do-mpc, the extras plot and onnx. Writes files to the current folder.
"""

import casadi
import matplotlib.pyplot as plt
import numpy as np
import onnx
import pandas as pd
from do_mpc.sysid import ONNXConversion

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.displays import ResidualAnalysisDisplay, figure_style

tanks = make_cascaded_tanks(as_frame=True, random_state=0)
stamps = pd.date_range("2024-05-01 08:00", periods=1024, freq="4s", name="time")
tanks.frame.set_index(stamps).drop(stamps[600:640]).to_csv("log.csv")

# The record has a row every 4 s; another session begins after the hole.
log = pd.read_csv("log.csv", index_col="time", parse_dates=True)
record = {"X": log[["pump_voltage"]], "y": log["level"], "sessions": "infer"}
model = SparseBayesNARXRegressor(5, 5, focus="simulation", random_state=0).fit(**record)
test = tanks.tests.test
print(f"R2 of the test record in free run {model.score(test.data, test.target):.3f}")
ResidualAnalysisDisplay.from_estimator(model, **record, horizon=None)
plt.savefig("residuals.png")

# As a state space: where it rests, how fast it is, what a step of the pump does.
space = model.to_state_space()  # a row is model.sampling_time_ seconds
rest = space.find_operating_point(y=4.0)
print(f"4 V at {rest.u[0]:.2f} V; poles {space.linearize(rest).poles[:2].round(3)}")
step = space.step_response(150, u=rest.u, amplitude=0.2)
with figure_style():
    figure, axes = plt.subplots(3, 1, figsize=(7, 8))
axes[0].plot(step.time, step.mean + step.std * [-2, 0, 2], color="C0")
axes[0].set_ylabel("step response (V)\nto 0.2 V, ±2 std")
model.to_c("tanks.c")
model.to_onnx("tanks.onnx", dtype="float64")

# A controller that looks 30 rows ahead, by a pump of 1.5 to 4 V that moves 0.3 V a row.
network = ONNXConversion(onnx.load("tanks.onnx"))
x, u = casadi.SX.sym("x", 1, space.n_states), casadi.SX.sym("u", 1, 1)
network.convert(state=x, u=u)
step = casadi.Function("step", [x, u], [network["state_next"], network["y"]])
mpc, limit = casadi.Opti(), 6.0
U, slack, now = mpc.variable(30), mpc.variable(), mpc.parameter(3 + space.n_states)
cost = 1000.0 * slack  # noise must not leave the solver without a solution
wanted, error, before, state = now[0], now[1], now[2], now[3:].T
for k in range(30):
    state, level = step(state, U[k])
    mpc.subject_to(level + error <= limit - 0.1 + slack)
    mpc.subject_to(mpc.bounded(-0.3, U[k] - before, 0.3))
    cost, before = cost + (level + error - wanted) ** 2 + (U[k] - before) ** 2, U[k]
mpc.subject_to([mpc.bounded(1.5, U, 4.0), slack >= 0.0])
mpc.minimize(cost)
mpc.solver("ipopt", {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
plan = mpc.to_function("plan", [now, U], [U])

# The plant is not the model: two tanks by the equations of the data set, with noise.
x, u, error, tank, path = rest.x, rest.u[0], 0.0, np.array([3.58, 4.0]), []
moves, noise = np.full(30, u), np.random.default_rng(0).normal(scale=0.015, size=180)
for k, wanted in enumerate(np.repeat([4.0, 7.0, 3.0], 60)):
    moves = plan([wanted, error, u, *x], moves).full().ravel()
    path.append([wanted, limit, tank[1], u := moves[0]])
    x, level = space.step(x, u)
    for _ in range(10):
        flow = [0.084, 0.0525] * np.sqrt(tank)
        tank = tank + 0.4 * (np.array([0.0675 * u, 0.0555 / 0.084 * flow[0]]) - flow)
    error = tank[1] + noise[k] - level[0]
path = pd.DataFrame(path, columns=["wanted", "limit", "level (V)", "pump (V)"])
print(path.max().round(2).to_string())
axes[1].plot(4.0 * path.index, path.iloc[:, :3], label=list(path)[:3])
axes[1].legend(loc="lower center")
axes[2].step(4.0 * path.index, path["pump (V)"], where="post")
axes[2].set(xlabel="time (s)", ylabel="pump (V)")
figure.savefig("engineer.png")
