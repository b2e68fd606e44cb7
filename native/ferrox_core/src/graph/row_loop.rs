//! Loops over rows: loops whose numbers don't depend on their arrays, and whose arrays are computed row by
//! row.
//!
//! Problem: each trip of a loop over large arrays reads and writes them in memory. Technique: loop
//! interchange (Allen and Kennedy 1984, "Automatic loop interchange"). First the numbers of some trips are
//! computed, such as a counter and the condition (`small_loop`). Then a block of rows is computed in all these
//! trips while it is in the cache, before the next block (`cluster`), and threads share the blocks. Each
//! element is computed by the same operations as trip by trip.

use super::cluster::{Cluster, Input, TripInput};
use super::fusion;
use super::operand::{Memory, Operand, Place, Slot, Target};
use super::operation::Operation;
use super::rows::InputRows;
use super::small_loop::{SmallLoop, is_few};
use super::source::{Loop, Region, Step};
use crate::cost::{MAX_TRIPS_AT_ONCE, MIN_OVERWRITTEN_BYTES, MIN_TRIPS_AT_ONCE, TRIPS_AT_ONCE_WORK, Work};
use crate::layout;

/// A loop over rows.
#[derive(Debug)]
pub(super) struct RowLoop {
    pub(super) numbers: SmallLoop,
    pub(super) cluster: Cluster,
    /// Where each input of the cluster comes from.
    pub(super) inputs: Vec<TripInput>,
    /// The place of each input of the cluster that does not change, in the region around.
    pub(super) places: Vec<Option<Place>>,
    /// For each result of the cluster, the array that it is in the next trip.
    pub(super) arrays: Vec<RowArray>,
    /// The number of trips that are computed at once.
    pub(super) trips: usize,
    /// The work of these.
    pub(super) work: Work,
}

/// An array that changes from trip to trip.
#[derive(Debug)]
pub(super) struct RowArray {
    /// Where it is at the start.
    pub(super) initial: Place,
    /// Whether nothing else reads it there.
    pub(super) is_last: bool,
    pub(super) memory: Memory,
    /// Whether new rows are written over the old ones, if nothing else has the memory.
    pub(super) is_overwritten: bool,
}

impl RowLoop {
    /// The loop, if it is one over rows.
    pub(super) fn new(source: Loop<'_>, dies: impl Fn(Slot) -> bool) -> Option<Self> {
        let Loop { regions, body, initial, memories, .. } = source;
        let region = fusion::fuse_all(&with_copies(regions.get(body)?));
        let mut cluster = None;
        let mut steps = Vec::new();
        for step in region.steps {
            match step {
                Step::Cluster { cluster: found, outputs } if cluster.is_none() => {
                    cluster = Some((*found, outputs));
                }
                Step::Cluster { .. } => return None,
                other => steps.push(other),
            }
        }
        let (mut cluster, results) = cluster?;
        // The position among the values of the loop that each result of the cluster has.
        let position =
            |slot: Slot| region.results.iter().position(|operand| operand.place == Place::Slot(slot));
        let arrays = results.iter().map(|result| position(result.slot)).collect::<Option<Vec<usize>>>()?;
        let parameters = region.parameters.len();
        let mut yields: Vec<Operand> = Vec::new();
        let mut inputs = Vec::with_capacity(cluster.inputs.len());
        for Input { operand, rows, .. } in &cluster.inputs {
            inputs.push(match operand.place {
                Place::Literal(_) => (TripInput::Fixed, Some(operand.place)),
                Place::Slot(slot) if slot < parameters && arrays.contains(&slot) => {
                    // Each row is computed from the same row of the trip before.
                    let index = arrays.iter().position(|&position| position == slot)?;
                    let same = InputRows::adjacent(cluster.outputs[index], cluster.rows);
                    if rows.as_ref() != Some(&same) {
                        return None;
                    }
                    (TripInput::Carried(index), None)
                }
                Place::Slot(slot) if rows.is_some() || is_array(operand) => {
                    // An array that does not change.
                    let is_same = region.results.get(slot)?.place == operand.place;
                    if slot >= parameters || !is_same {
                        return None;
                    }
                    (TripInput::Fixed, Some(initial.get(slot)?.place))
                }
                Place::Slot(_) => {
                    yields.push(operand.clone());
                    (TripInput::Number(yields.len() - 1), None)
                }
            });
        }
        let rest = Region { steps, ..region };
        let numbers = SmallLoop::beside_arrays(source, &rest, &arrays, &yields)?;
        let (inputs, places): (_, Vec<Option<Place>>) = inputs.into_iter().unzip();
        let starts = arrays.iter().map(|&position| Some(initial.get(position)?.place));
        let starts = starts.collect::<Option<Vec<Place>>>()?;
        let read: Vec<Place> = numbers.places().chain(places.iter().copied().flatten()).collect();
        let is_last = |place: Place| {
            let mut uses = read.iter().chain(&starts).filter(|&&other| other == place);
            matches!(place, Place::Slot(slot) if dies(slot)) && uses.nth(1).is_none()
        };
        let can_fail = cluster.can_fail();
        let mut changing = Vec::with_capacity(starts.len());
        for (&initial, &position) in starts.iter().zip(&arrays) {
            let memory = memories.get(position)?.clone();
            let is_overwritten = !can_fail && memory.bytes >= MIN_OVERWRITTEN_BYTES;
            changing.push(RowArray { initial, is_last: is_last(initial), memory, is_overwritten });
        }
        cluster.compile();
        let work = cluster.work().max(1);
        let trips = usize::try_from(TRIPS_AT_ONCE_WORK / work).unwrap_or(MAX_TRIPS_AT_ONCE);
        let trips = trips.clamp(MIN_TRIPS_AT_ONCE, MAX_TRIPS_AT_ONCE);
        let work = work.saturating_mul(trips as Work);
        Some(RowLoop { numbers, cluster, inputs, places, arrays: changing, trips, work })
    }
}

/// A body whose results, where they are arrays that change, are of different slots that aren't parameters.
/// Arrays whose elements are in registers are numbers of the loop.
fn with_copies(body: &Region) -> Region {
    let mut body = body.clone();
    let parameters = body.parameters.len();
    for position in 0..body.results.len() {
        let result = body.results[position].clone();
        let Place::Slot(slot) = result.place else { continue };
        let is_taken = body.results[..position].iter().any(|other| other.place == result.place);
        let is_moved = slot < parameters && slot != position;
        if is_array(&result) && !is_few(result.dtype, &result.shape) && (is_taken || is_moved) {
            let Operand { dtype, shape, .. } = result.clone();
            let target = Target { slot: body.slots, dtype, shape };
            body.results[position].place = Place::Slot(target.slot);
            body.slots += 1;
            let (operation, inputs, outputs) = (Operation::AsType, vec![result], vec![target]);
            body.steps.push(Step::Operation { operation, inputs, outputs });
        }
    }
    body
}

/// Whether an operand has several elements.
fn is_array(operand: &Operand) -> bool {
    layout::size(&operand.shape).is_none_or(|size| size > 1)
}
