//! How long the instructions of a program take.

use std::time::{Duration, Instant};

use super::program::Program;

/// The times of a program's instructions, in one run or several.
///
/// The time from the start of an instruction to the start of the next one counts as its time. Reading
/// the clock takes some tens of nanoseconds, which small instructions seem to take longer.
#[derive(Debug)]
pub struct Times {
    regions: Vec<Vec<InstructionTime>>,
    /// The region and number of the instruction that runs, and when it has started.
    running: Option<(usize, usize, Instant)>,
}

/// The time of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InstructionTime {
    pub(super) total: Duration,
    /// How often it has run.
    pub(super) count: u64,
}

impl Times {
    /// The times before the first run.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        // The last time of a region is that of its end.
        let none = |instructions: usize| vec![InstructionTime::default(); instructions + 1];
        let regions = program.regions.iter().map(|code| none(code.instructions.len())).collect();
        Times { regions, running: None }
    }

    /// Starts an instruction, which ends the one that runs.
    pub(super) fn start(&mut self, region: usize, instruction: usize) {
        let now = Instant::now();
        self.stop_at(now);
        self.running = Some((region, instruction, now));
    }

    /// Ends the instruction that runs.
    pub(super) fn stop(&mut self) {
        self.stop_at(Instant::now());
    }

    fn stop_at(&mut self, now: Instant) {
        let Some((region, instruction, start)) = self.running.take() else { return };
        let time = self.regions.get_mut(region).and_then(|times| times.get_mut(instruction));
        if let Some(time) = time {
            time.total += now - start;
            time.count += 1;
        }
    }

    /// The time of an instruction. The number after the last one is that of the region's end.
    pub(super) fn of(&self, region: usize, instruction: usize) -> InstructionTime {
        self.regions.get(region).and_then(|times| times.get(instruction)).copied().unwrap_or_default()
    }

    /// The time of all instructions.
    pub(super) fn total(&self) -> Duration {
        self.regions.iter().flatten().map(|time| time.total).sum()
    }

    /// The number of runs.
    pub(super) fn runs(&self) -> u64 {
        self.regions.first().and_then(|times| times.last()).map_or(0, |time| time.count)
    }
}
