package stack

// Who does a shard's turn. As a rule loop does: then what receives, what handles and
// what the program does go on side by side, on as many CPUs as there are. For a single
// small message that is a loss: each goroutine that it passes has to be woken, often on
// another thread, and has less to do than waking costs. So who brings a shard little to
// do and finds it at rest does the turn itself.
//
// A turn on a foreign goroutine is the same turn. It never waits, so a program's
// goroutine is held up no longer than by a system call that sends. What a shard calls
// back in a turn may be on the stack of a goroutine that is inside of a method of a
// socket: it must not take a lock that somebody holds who calls such a method.
//
// Nothing is overtaken. Batches that a receiver has sent are counted until they are
// taken in, and as long as there are any its next ones line up behind them; a loop that
// has been woken waits for the turn to end.

// lightBytes is how much is little. Beyond it working side by side pays.
const lightBytes = 16 << 10

// turnNow does a turn on the calling goroutine, and reports false if it cannot: what
// was left in the inbox waits for loop then, which has to be rung.
func (sh *shard) turnNow() bool {
	if !sh.owner.TryLock() {
		return false
	}
	defer sh.owner.Unlock()
	if sh.stopping {
		return false
	}
	sh.beginTurn()
	sh.turn()
	return true
}

// inputNow does a turn with a batch, unless there is much in it or the shard is busy.
func (sh *shard) inputNow(b *batch) bool {
	if !b.light() || !sh.owner.TryLock() {
		return false
	}
	defer sh.owner.Unlock()
	if sh.stopping || sh.queued.Load() > 0 {
		return false
	}
	sh.beginTurn()
	sh.input(b)
	sh.turn()
	return true
}

// enqueue leaves a batch to loop.
func (sh *shard) enqueue(b *batch) {
	sh.queued.Add(1)
	sh.rx <- b
}

// light reports whether there is little in a batch.
func (b *batch) light() bool {
	bytes := 0
	for i := range b.packets[:b.n] {
		bytes += b.packets[i].frame.Len()
	}
	return bytes <= lightBytes
}
