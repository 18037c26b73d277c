package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Runs of the scripts of sequence_test.go.

// finish runs the machine until the waits with a deadline are over.
func (s *sequence) finish() {
	for range 200 {
		if s.ended || s.faults > 0 {
			return
		}
		s.run(50)
		if len(s.script) == 0 && !slices.ContainsFunc(s.waiters, func(id thread.ID) bool { return s.threads[id].deadline != thread.Never }) {
			return
		}
	}
	s.fail("after the script: %d bytes are left, threads %v wait", len(s.script), s.waiters)
}

// runScript executes a script and compares the state of the kernel with the model.
func runScript(t testing.TB, seed uint64, cpus int, script []byte) {
	s := newSequence(t, seed, cpus, script)
	for len(s.script) > 0 && !s.ended && s.faults == 0 {
		s.run(50)
		if len(s.waiters) == len(s.threads) { // all threads wait: wake one
			id := s.waiters[0]
			s.revive(id)
		}
	}
	s.finish()
	if s.ended {
		s.fail("the machine has ended: %s", s.output)
	}
}

// revive ends the wait of a thread by signal 10 from outside of the program, if no CPU is in the kernel.
func (s *sequence) revive(id thread.ID) {
	if s.busy() {
		return
	}
	p, th := s.cpus[0], s.threads[id]
	executing = p
	yield := p.yield
	p.yield = nil // other CPUs do not execute meanwhile
	s.core.lock(p.cpu)
	s.core.signalThread(p.cpu, id, 10)
	s.core.threads.Interrupt(id, -int64(linux.EINTR)) // if the thread blocks the signal
	th.pending |= signal.Of(10)
	s.core.leave(p.cpu)
	p.yield = yield
	s.endWait(id, -int64(linux.EINTR))
	s.apply(p)
}

// The core does what the model does, whichever CPU executes next.
func TestSequences(t *testing.T) {
	count := uint64(60)
	if testing.Short() {
		count = 20
	}
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 600)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		runScript(t, seed, int(seed%4)+1, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzSequences(f *testing.F) {
	f.Add(uint64(1), uint8(2), []byte("a few calls about memory and threads"))
	f.Fuzz(func(t *testing.T, seed uint64, cpus uint8, script []byte) {
		const longest = 2000
		runScript(t, seed, int(cpus%4)+1, script[:min(len(script), longest)])
	})
}
