package timer

import (
	"math/rand/v2"
	"testing"
	"time"
)

const many = 100_000

// loaded returns a wheel with a hundred thousand entries over the next seconds.
func loaded() (*Wheel, []Entry, *rand.Rand) {
	w, entry, r := new(Wheel), make([]Entry, many), rand.New(rand.NewPCG(1, 2))
	for i := range entry {
		w.Schedule(&entry[i], time.Duration(r.Int64N(int64(4*time.Second))))
	}
	return w, entry, r
}

// BenchmarkPutOff moves a deadline to a later time, as a connection does at every acknowledgment.
func BenchmarkPutOff(b *testing.B) {
	w, entry, r := loaded()
	when := 4 * time.Second
	for b.Loop() {
		when++
		w.Schedule(&entry[r.IntN(many)], when)
	}
}

// BenchmarkCancelAndSchedule cancels an entry and schedules it again, as a connection does when it becomes idle and
// then active.
func BenchmarkCancelAndSchedule(b *testing.B) {
	w, entry, r := loaded()
	for b.Loop() {
		e := &entry[r.IntN(many)]
		w.Cancel(e)
		w.Schedule(e, time.Duration(r.Int64N(int64(4*time.Second))))
	}
}

// BenchmarkFire fires an entry and schedules it again. The time includes all moves of the entry between levels of the
// wheel.
func BenchmarkFire(b *testing.B) {
	w, _, r := loaded()
	fired := 0
	for now := time.Duration(0); fired < b.N; now = w.Next() {
		w.Advance(now, func(e *Entry) {
			fired++
			w.Schedule(e, now+time.Duration(r.Int64N(int64(4*time.Second))))
		})
	}
}

func BenchmarkNext(b *testing.B) {
	w, _, _ := loaded()
	for b.Loop() {
		w.Next()
	}
}
