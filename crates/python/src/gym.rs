//! Episodes for learning agents: worlds in steps, one or many at once, and policies as controllers.

use crate::control::half::{Raised, exception_text};
use crate::encoder::Tapes;
use crate::errors::{bad, check_environment, refused};
use crate::guard::{InternalError, catch_panic};
use crate::run::{Recording, RunFailure, drive, outcome_of, prepare_with};
use crate::trace::PyTrace;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray2, PyReadwriteArray3};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tidegate_controllers::agent::{Action, Agent, AgentConfig, AgentHandle, COUNT, FEATURES, Policy};
use tidegate_core::{Rate, Span, Time};
use tidegate_sim::scenario::assemble::Halves;
use tidegate_sim::scenario::{ControllerSpec, Episode, Stepped};

/// Name of the agent's controller in the engine's scenario.
const AGENT: &str = "agent";

/// Number of values in a step's information: its time, the observation, and the truth.
const NUMBERS: usize = 1 + COUNT + 6;

/// Names of these values.
pub(crate) const NAMES: [&str; NUMBERS] = [
    "time_s",
    "rate_bps",
    "sent_bps",
    "acknowledged_bps",
    "loss",
    "marked",
    "delay_ms",
    "gradient",
    "round_trip_ms",
    "waiting_ms",
    "in_flight_ms",
    "silence_ms",
    "capacity_bps",
    "received_bps",
    "true_loss",
    "one_way_delay_ms",
    "queueing_ms",
    "sender_queue_ms",
];

/// The terms on which an agent acts: nanoseconds, bit/s; `change`: the factor of an action of 1, or None for actions
/// that are rates.
#[pyclass(frozen, module = "tidegate._core", name = "Terms")]
#[derive(Clone, Copy)]
pub(crate) struct PyTerms {
    inner: AgentConfig,
}

#[pymethods]
impl PyTerms {
    #[new]
    fn new(
        interval_ns: i64,
        change: Option<f64>,
        min_bps: u64,
        max_bps: u64,
        history: usize,
    ) -> PyResult<Self> {
        let inner = AgentConfig {
            interval: Span::from_nanos(interval_ns),
            action: change.map_or(Action::Rate, Action::Change),
            min: Rate::from_bps(min_bps),
            max: Rate::from_bps(max_bps),
            history,
        };
        inner.check().map_err(bad)?;
        Ok(Self { inner })
    }

    /// The rate in bit/s that an action asks for after another one.
    #[pyo3(signature = (action, last_bps=0))]
    fn rate(&self, action: f64, last_bps: u64) -> u64 {
        self.inner.rate(action, Rate::from_bps(last_bps)).as_bps()
    }

    /// The action that asks for a rate in bit/s, where actions are rates.
    fn action(&self, rate_bps: u64) -> f64 {
        self.inner.action(Rate::from_bps(rate_bps))
    }
}

/// A controller that a function decides for, once an interval: `decide` gets the observation and answers with an
/// action.
///
/// A factory of Python controllers may return one.
#[pyclass(frozen, module = "tidegate._core", name = "AgentController")]
pub(crate) struct PyAgentController {
    decide: Py<PyAny>,
    terms: AgentConfig,
    start: Rate,
}

#[pymethods]
impl PyAgentController {
    #[new]
    #[pyo3(signature = (decide: "Callable[[npt.NDArray[Any]], float]", terms, start_bps))]
    fn new(decide: Py<PyAny>, terms: PyRef<'_, PyTerms>, start_bps: u64) -> Self {
        Self { decide, terms: terms.inner, start: Rate::from_bps(start_bps) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decide)
    }
}

impl PyAgentController {
    /// The controller; its exceptions wait in `raised`.
    pub(crate) fn controller(&self, py: Python<'_>, raised: &Raised) -> Agent {
        let (decide, raised, rows) = (self.decide.clone_ref(py), raised.clone(), self.terms.history);
        let policy: Policy = Box::new(move |observation| {
            Python::attach(|py| {
                let action = observation_array(py, observation, rows)
                    .and_then(|observation| decide.bind(py).call1((observation,)))
                    .and_then(|action| check_environment().map(|()| action));
                let action = action.and_then(|action| {
                    let wrong = |_| bad(format!("found {action:?}; expected a number as the action"));
                    action.extract::<f64>().map_err(wrong)
                });
                action.map_err(|error| {
                    let reason = exception_text(py, "the policy", &error);
                    if let Ok(mut raised) = raised.lock() {
                        raised.get_or_insert(error);
                    }
                    reason
                })
            })
        });
        Agent::new(self.terms, self.start, Some(policy)).0
    }
}

/// Converts an observation to an array.
fn observation_array<'py>(
    py: Python<'py>,
    observation: &[f32],
    rows: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    PyArray1::from_slice(py, observation).reshape([rows, COUNT])
}

enum State {
    Running(Box<Episode>),
    Over(&'static str),
}

/// State of an episode that threads share.
struct EpisodeState {
    state: Mutex<State>,
    raised: Raised,
    tapes: Tapes,
    terms: AgentConfig,
    min_rate: Rate,
    /// Wall seconds so far.
    spent: Mutex<f64>,
}

/// One episode of an agent: a world in steps, in which it sets the rate of one flow.
#[pyclass(frozen, module = "tidegate._core", name = "Episode")]
pub(crate) struct PyEpisode {
    episode_state: Arc<EpisodeState>,
}

impl EpisodeState {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        check_environment()?;
        self.state.try_lock().map_err(|_| bad("this episode is running in another thread"))
    }

    /// One step; gives its reward beside it.
    fn step(&self, action: f64) -> Result<(Stepped, Option<f64>), RunFailure> {
        let started = Instant::now();
        let mut state = self.lock().map_err(RunFailure::Raised)?;
        let State::Running(episode) = &mut *state else {
            let State::Over(why) = *state else { unreachable!("it is not running") };
            return Err(RunFailure::Raised(bad(format!("this episode {why}; call reset()"))));
        };
        if episode.is_over() {
            return Err(RunFailure::Raised(bad("this episode is over; call reset()")));
        }
        let result = catch_panic(|| {
            episode.act(action);
            let until = episode.until();
            drive(episode.run(), |run, events| run.run_events(until, events), |py, _| py.check_signals())?;
            Ok(episode.end())
        });
        if let Ok(mut spent) = self.spent.lock() {
            *spent += started.elapsed().as_secs_f64();
        }
        let result = result.unwrap_or_else(|panic| Err(RunFailure::Raised(InternalError::new_err(panic))));
        match result {
            Ok(stepped) => Ok((stepped, stepped.truth.reward(self.min_rate))),
            Err(error) => {
                *state = State::Over("has stopped with an error");
                Err(error)
            }
        }
    }

    fn show<R>(&self, show: impl FnOnce(&[f32]) -> R) -> PyResult<R> {
        match &*self.lock()? {
            State::Running(episode) => match episode.handle() {
                Some(handle) => Ok(handle.show(show)),
                None => Ok(show(&vec![0.0; self.terms.history * COUNT])),
            },
            State::Over(why) => Err(bad(format!("this episode {why}"))),
        }
    }
}

fn numbers(stepped: &Stepped) -> [f64; NUMBERS] {
    let mut values = [0.0; NUMBERS];
    values[0] = stepped.time.as_secs_f64();
    values[1..=COUNT].copy_from_slice(&stepped.observed.values());
    let truth = &stepped.truth;
    let capacity = truth.capacity.unwrap_or(f64::NAN);
    values[COUNT + 1..].copy_from_slice(&[
        capacity,
        truth.received,
        truth.loss,
        truth.delay,
        truth.queued,
        truth.paced,
    ]);
    values
}

#[pymethods]
impl PyEpisode {
    /// Builds the world, and runs it up to where the flow begins. The first arguments are those of `run`; the flow's
    /// controller is called "agent" in the scenario. One with another controller is only watched: its observations are
    /// zeros.
    #[new]
    #[pyo3(signature = (scenario_json, flow, terms, start_bps, traces=Vec::new(), objects: "_Objects" = BTreeMap::new()))]
    fn new(
        py: Python<'_>,
        scenario_json: &str,
        flow: &str,
        terms: PyRef<'_, PyTerms>,
        start_bps: u64,
        traces: Vec<PyRef<'_, PyTrace>>,
        objects: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Self> {
        let (terms, raised) = (terms.inner, Raised::default());
        let mut agent_handle: Option<AgentHandle> = None;
        let mut make = |spec: &ControllerSpec| -> Option<Halves> {
            if spec.name != AGENT || spec.python {
                return None;
            }
            let (agent, handle) = Agent::new(terms, Rate::from_bps(start_bps), None);
            agent_handle = Some(handle);
            Some((Box::new(agent), None))
        };
        let (_, run, tapes) = prepare_with(py, scenario_json, &traces, &objects, &raised, &mut make)?;
        if let Some(key) = run.external().first() {
            return Err(bad(format!(
                "{key}: an external link or flow needs a driver, which an agent is not"
            )));
        }
        let mut episode =
            Episode::new(run, flow, agent_handle, terms).map_err(|error| refused(py, &error))?;
        if let Some(before) = episode.before() {
            let some = |run: &mut tidegate_sim::scenario::Run, events| run.run_events(before, events);
            let done = py.detach(|| drive(episode.run(), some, |py, _| py.check_signals()));
            outcome_of(py, done, &raised)?;
        }
        let episode_state = EpisodeState {
            state: Mutex::new(State::Running(Box::new(episode))),
            raised,
            tapes,
            terms,
            min_rate: terms.min,
            spent: Mutex::new(0.0),
        };
        Ok(Self { episode_state: Arc::new(episode_state) })
    }

    /// Whether the capacity of a link on the flow's path is known.
    #[getter]
    fn knows_capacity(&self) -> PyResult<bool> {
        match &mut *self.episode_state.lock()? {
            State::Running(episode) => Ok(episode.knows_capacity()),
            State::Over(why) => Err(bad(format!("this episode {why}"))),
        }
    }

    /// The present observation: an array of shape (history, features), with the newest interval last.
    #[pyo3(signature = () -> "npt.NDArray[Any]")]
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.episode_state
            .show(|observation| observation_array(py, observation, self.episode_state.terms.history))?
    }

    /// One step by an action: (observation, default reward or None, whether the flow's time is over, whether its sender
    /// had stopped before, values of the step by name).
    #[pyo3(signature = (action) -> "tuple[npt.NDArray[Any], float | None, bool, bool, dict[str, float]]")]
    fn step<'py>(&self, py: Python<'py>, action: f64) -> PyResult<Step<'py>> {
        let done = py.detach(|| self.episode_state.step(action));
        let (stepped, reward) = outcome_of(py, done, &self.episode_state.raised)?;
        let info = PyDict::new(py);
        for (name, value) in NAMES.iter().zip(numbers(&stepped)) {
            info.set_item(PyString::intern(py, name), value)?;
        }
        Ok((self.observation(py)?, reward, stepped.over, stepped.stopped, info))
    }

    /// Ends the run now, and returns its recording.
    fn finish(&self, py: Python<'_>) -> PyResult<Recording> {
        let state = std::mem::replace(&mut *self.episode_state.lock()?, State::Over("has been finished"));
        let episode = match state {
            State::Running(episode) => episode,
            State::Over(why) => return Err(bad(format!("this episode {why}; call reset()"))),
        };
        let at = episode.at();
        let outcome = py.detach(|| {
            let run = episode.into_run();
            let end = Time::ZERO + run.duration();
            run.finish_at(at.min(end))
        });
        let spent = self.episode_state.spent.lock().map_err(bad)?;
        let done = outcome.map(|outcome| Recording::new(outcome, self.episode_state.tapes.clone(), *spent));
        outcome_of(py, done.map_err(Into::into), &self.episode_state.raised)
    }
}

type Step<'py> = (Bound<'py, PyArray2<f32>>, Option<f64>, bool, bool, Bound<'py, PyDict>);

/// Result of a step of one of many episodes: its reward, whether the episode is over, whether its sender had stopped.
type StepResult = (f64, bool, bool);

/// Threads that step many episodes. They wait between steps, since starting them takes longer than a step of a short
/// world.
#[pyclass(frozen, module = "tidegate._core")]
pub(crate) struct StepThreads {
    count: usize,
    /// Those beside the caller's own, begun at the first step, and the process that has them: a fork has none.
    pool: Mutex<Option<(u32, ThreadPool)>>,
}

#[pymethods]
impl StepThreads {
    #[new]
    fn new(count: usize) -> Self {
        Self { count: count.max(1), pool: Mutex::new(None) }
    }

    /// Steps many episodes: fills `observations` (episode, history, feature) and `values` (episode, name), and gives of
    /// each its default reward (not a number without one), whether it is over, and whether its sender had stopped.
    #[pyo3(signature = (episodes, actions: "npt.NDArray[Any]", observations: "npt.NDArray[Any]", values: "npt.NDArray[Any]"))]
    fn step(
        &self,
        py: Python<'_>,
        episodes: Vec<PyRef<'_, PyEpisode>>,
        actions: PyReadonlyArray1<'_, f64>,
        mut observations: PyReadwriteArray3<'_, f32>,
        mut values: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<Vec<StepResult>> {
        let mut pool =
            self.pool.try_lock().map_err(|_| bad("these episodes are running in another thread"))?;
        let process = std::process::id();
        if let Some((_, lost)) = pool.take_if(|(started, _)| *started != process) {
            // its threads belong to the parent process: there are none here to be stopped
            std::mem::forget(lost);
        }
        let (_, pool) = match &mut *pool {
            Some(pool) => pool,
            missing => {
                let started = ThreadPoolBuilder::new().num_threads((self.count - 1).max(1)).build();
                missing.insert((process, started.map_err(bad)?))
            }
        };
        let states: Vec<Arc<EpisodeState>> =
            episodes.iter().map(|episode| episode.episode_state.clone()).collect();
        let count = states.len();
        let actions = actions.as_slice()?;
        let width = states.first().map_or(0, |state| state.terms.history * COUNT);
        let (observations, infos) = (observations.as_slice_mut()?, values.as_slice_mut()?);
        let fits = states.iter().all(|state| state.terms.history * COUNT == width);
        if !fits
            || actions.len() != count
            || observations.len() != count * width
            || infos.len() != count * NUMBERS
        {
            return Err(bad("the shapes of the arrays do not match these episodes"));
        }
        let chunk = count.div_ceil(self.count).max(1);
        let mut done: Vec<Option<Result<StepResult, RunFailure>>> = (0..count).map(|_| None).collect();
        py.detach(|| {
            let parts = states.chunks(chunk).zip(actions.chunks(chunk)).zip(done.chunks_mut(chunk));
            let arrays =
                observations.chunks_mut((chunk * width).max(1)).zip(infos.chunks_mut(chunk * NUMBERS));
            pool.in_place_scope(|scope| {
                let mut work: Vec<_> = parts
                    .zip(arrays)
                    .map(|(((states, actions), results), (observations, infos))| {
                        move || {
                            let arrays = observations.chunks_mut(width.max(1)).zip(infos.chunks_mut(NUMBERS));
                            let episodes = states.iter().zip(actions).zip(results).zip(arrays);
                            for (((state, &action), result), (row, info)) in episodes {
                                *result = Some(state.step(action).and_then(|(stepped, reward)| {
                                    state.show(|now| row.copy_from_slice(now)).map_err(RunFailure::Raised)?;
                                    info.copy_from_slice(&numbers(&stepped));
                                    Ok((reward.unwrap_or(f64::NAN), stepped.over, stepped.stopped))
                                }));
                            }
                        }
                    })
                    .collect();
                let last = work.pop();
                for part in work {
                    scope.spawn(|_| part());
                }
                // the last part runs in this thread
                if let Some(last) = last {
                    last();
                }
            });
        });
        let results = done.into_iter().zip(&states);
        results
            .map(|(result, state)| match result {
                Some(result) => outcome_of(py, result, &state.raised),
                None => Err(bad("an episode was not stepped")),
            })
            .collect()
    }
}

/// The features of an agent's observation: name, unit, smallest and largest scaled value, definition.
pub(crate) fn features() -> Vec<(&'static str, &'static str, f32, f32, &'static str)> {
    FEATURES
        .iter()
        .map(|feature| (feature.name, feature.unit, feature.low, feature.high, feature.doc))
        .collect()
}
