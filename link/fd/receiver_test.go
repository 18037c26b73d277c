//go:build linux

package fd

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"loam/link"
)

// receiver returns a Receiver over a socket that preserves message boundaries, its counters, and a
// function that sends messages to it.
func receiver(t *testing.T, w Way) (*Receiver, *link.Counters, func(messages ...string)) {
	t.Helper()
	link.Track(true)
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(fds[0], "receiver")
	if err != nil {
		t.Fatal(err)
	}
	counters := new(link.Counters)
	w.Messages = 4
	if w.Take == nil {
		w.Take = func(*link.Frame, []byte) bool { return true }
	}
	r := NewReceiver(f, counters, w)
	t.Cleanup(func() {
		syscall.Close(fds[1])
		f.Close()
		r.Close()
		if n := link.Outstanding(); n != 0 {
			t.Errorf("%d frames left behind", n)
		}
	})
	return r, counters, func(messages ...string) {
		for _, m := range messages {
			if err := syscall.Sendto(fds[1], []byte(m), 0, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wantRecv receives once and compares the messages.
func wantRecv(t *testing.T, r *Receiver, want ...string) {
	t.Helper()
	fs := make([]*link.Frame, 8)
	n, err := r.Recv(fs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fs[:n] {
		got = append(got, string(f.Bytes()))
	}
	link.FreeAll(fs[:n])
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// One call receives at most as many messages as the slice of frames has elements, and frames are counted.
func TestReceiver(t *testing.T) {
	for _, size := range []int{100, link.MaxFrame} { // with small and with large landing buffers
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r, counters, send := receiver(t, Way{Size: size})
			send("a", "bb", "ccc", "dddd", "eeeee")
			wantRecv(t, r, "a", "bb", "ccc", "dddd")
			wantRecv(t, r, "eeeee")
			if s := counters.Stats(); s.RxFrames != 5 || s.RxBytes != 15 || s.RxErrors != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

// A message that is too long, or that Take rejects, is counted and does not affect other messages.
func TestReceiverRefuses(t *testing.T) {
	r, counters, send := receiver(t, Way{Size: 8, Take: func(f *link.Frame, _ []byte) bool { return f.Bytes()[0] != '!' }})
	send("ok", "longer than eight", "!bad", "fine")
	wantRecv(t, r, "ok", "fine")
	if s := counters.Stats(); s.RxFrames != 2 || s.RxErrors != 2 {
		t.Errorf("counted %+v", s)
	}
}

// With EmptyEnds, an empty message ends the link after the messages before it.
func TestReceiverEnds(t *testing.T) {
	r, _, send := receiver(t, Way{Size: 8, EmptyEnds: true})
	send("last", "")
	wantRecv(t, r, "last")
	send("")
	if _, err := r.Recv(make([]*link.Frame, 1)); !errors.Is(err, link.ErrClosed) {
		t.Errorf("behind the end: %v", err)
	}
}
