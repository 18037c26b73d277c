package inet

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/posix/socket"
)

type fakeOffer struct {
	reset   int
	refused bool
}

func (f *fakeOffer) Accept(*TCPSocket) socket.Socket { return nil }
func (f *fakeOffer) Reset(refused bool)              { f.reset, f.refused = f.reset+1, refused }

// A connection beyond the backlog waits as long as a relayed connection does.
func TestQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q offeredQueue
		q.begin(2)
		var list []*fakeOffer
		for range 4 {
			f := &fakeOffer{}
			list = append(list, f)
			if !q.push(f) {
				t.Fatal("refused")
			}
		}
		time.Sleep(patience - time.Second)
		if c, ok := q.pop(); !ok || c != list[0] {
			t.Error("not the first comes first")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if list[3].reset != 1 || !list[3].refused {
			t.Errorf("%+v, want it refused", list[3])
		}
		if q.len() != 2 {
			t.Errorf("%d are left, want 2", q.len())
		}
		q.end()
		for _, f := range list[1:3] {
			if f.reset != 1 || f.refused {
				t.Errorf("%+v, want it reset", f)
			}
		}
	})
}
