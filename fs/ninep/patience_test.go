package ninep

import (
	"testing"
	"testing/synctest"
	"time"
)

// A reader waits for a bounded time before it blocks. If a yield takes long, it does not poll for some reads, and for
// more if that is repeated.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		yields := 0
		quick := func() {
			time.Sleep(time.Microsecond)
			yields++
		}
		slow := func() {
			time.Sleep(2 * busyTime)
			yields++
		}
		never := func() bool {
			time.Sleep(time.Nanosecond)
			return false
		}
		start := time.Now()
		if p.Wait(never, quick) {
			t.Error("input is found that has not arrived")
		}
		if took := time.Since(start); took < lookTime || took > lookTime+2*time.Microsecond || yields == 0 {
			t.Errorf("the reader has waited for %v, and has yielded %d times", took, yields)
		}
		for _, want := range []int{0, leastPenalty, 2 * leastPenalty, 4 * leastPenalty} {
			if got := unpolled(&p, &yields, never, slow); got != want {
				t.Errorf("%d reads without polling, want %d", got, want)
			}
		}
		for range 20 {
			unpolled(&p, &yields, never, slow)
		}
		if got := unpolled(&p, &yields, never, slow); got != mostPenalty {
			t.Errorf("%d reads without polling, want %d", got, mostPenalty)
		}
	})
}

// unpolled returns the number of reads until one yields.
func unpolled(p *Patience, yields *int, try func() bool, yield func()) (n int) {
	for before := *yields; ; n++ {
		if p.Wait(try, yield); *yields > before {
			return n
		}
	}
}

// Spinning that finds input continues. If it fails, it is left out for some reads.
func TestSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		yields, tries := 0, 0
		yield := func() { yields++ }
		third := func() bool {
			time.Sleep(time.Nanosecond)
			tries++
			return tries%3 == 0
		}
		for range 10 {
			if !p.Wait(third, yield) {
				t.Fatal("the input is not found")
			}
		}
		if yields != 0 || tries != 30 {
			t.Errorf("the reader has yielded %d times and tried %d times", yields, tries)
		}
		yielded := func() bool {
			time.Sleep(time.Nanosecond)
			return yields%2 == 1
		}
		for i := range leastPenalty + 1 {
			start := time.Now()
			if !p.Wait(yielded, yield) {
				t.Fatal("the input is not found")
			}
			if took := time.Since(start); (took >= spinTime) != (i == 0) {
				t.Errorf("read %d has taken %v", i, took)
			}
			yields++
		}
	})
}
