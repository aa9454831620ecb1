//! Blocks as the bars of a chart.

use eventring_exec::Block;

/// The number of bars of a chart, at most. There are at least half as many, unless there are fewer blocks.
const BARS_MAX: usize = 480;

/// The blocks over the time of a recording whose end is not known yet. When there are too many bars, each two become
/// one.
pub(super) struct BlockBars {
    pub(super) bars: Vec<BlockBar>,
    /// The number of blocks that a bar has, except the last.
    each: u64,
}

/// One block, or some neighbouring blocks together.
pub(super) struct BlockBar {
    pub(super) numbers: (u64, u64),
    pub(super) blocks: u64,
    pub(super) from_nanos: u64,
    pub(super) until_nanos: u64,
    pub(super) gas: u64,
    pub(super) transactions: u64,
}

impl Default for BlockBars {
    fn default() -> Self {
        Self { bars: Vec::new(), each: 1 }
    }
}

impl BlockBars {
    pub(super) fn add(&mut self, block: &Block) {
        let bar = BlockBar {
            numbers: (block.number(), block.number()),
            blocks: 1,
            from_nanos: block.start_epoch_nanos,
            until_nanos: block.end_epoch_nanos,
            gas: block.end().map_or(0, |end| end.gas_used),
            transactions: block.transactions.len() as u64,
        };
        self.push(bar);
        if self.bars.len() > BARS_MAX {
            self.each *= 2;
            std::mem::take(&mut self.bars).into_iter().for_each(|bar| self.push(bar));
        }
    }

    fn push(&mut self, bar: BlockBar) {
        match self.bars.last_mut().filter(|last| last.blocks < self.each) {
            Some(last) => last.merge(bar),
            None => self.bars.push(bar),
        }
    }
}

impl BlockBar {
    fn merge(&mut self, other: Self) {
        self.numbers.1 = other.numbers.1;
        self.blocks += other.blocks;
        self.from_nanos = self.from_nanos.min(other.from_nanos);
        self.until_nanos = self.until_nanos.max(other.until_nanos);
        self.gas = self.gas.saturating_add(other.gas);
        self.transactions += other.transactions;
    }

    /// Returns the numbers of the blocks: `block 7`, `blocks 7 to 9`.
    pub(super) fn numbers(&self) -> String {
        let (first, last) = self.numbers;
        if self.blocks > 1 { format!("blocks {first} to {last}") } else { format!("block {first}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_in_a_bar_however_many_there_are() {
        let mut bars = BlockBars::default();
        for number in 1..=5000_u64 {
            let mut block =
                Block { start_epoch_nanos: number * 10, end_epoch_nanos: number * 10 + 5, ..Block::default() };
            block.start.block_tag.block_number = number;
            block.transactions.resize_with(2, Default::default);
            bars.add(&block);
        }
        assert!((BARS_MAX / 2..=BARS_MAX).contains(&bars.bars.len()), "{}", bars.bars.len());
        assert_eq!((bars.bars[0].numbers(), bars.bars[0].transactions), ("blocks 1 to 16".into(), 32));
        assert_eq!(bars.bars.iter().map(|bar| bar.blocks).sum::<u64>(), 5000);
        assert!(bars.bars.windows(2).all(|two| two[0].until_nanos < two[1].from_nanos));
    }
}
