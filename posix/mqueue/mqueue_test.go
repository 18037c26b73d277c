package mqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

func anyone(fs.Attr) bool { return true }

func opened(t *testing.T, s *State, name string, a Attributes) *File {
	t.Helper()
	f, errno := s.Open(name, linux.O_RDWR|linux.O_CREAT, &a, Creator{Limit: 1 << 40, Privileged: true}, anyone)
	if errno != 0 {
		t.Fatal(errno)
	}
	return f
}

// Random sequences of operations have the same results as a model that searches a list of messages for the oldest one
// of the highest priority.
func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s State
		f := opened(t, &s, "q", Attributes{Messages: 5, Size: 10})
		var model []Message
		for step := range 300 {
			if r.IntN(2) == 0 {
				m := Message{Priority: r.Uint32N(4), Data: fmt.Appendf(nil, "%d", step)}
				errno := f.Send(m, 1, 0)
				if full := len(model) == 5; full != (errno == linux.EAGAIN) {
					t.Fatalf("seed %d, step %d: send to %d messages: %v", seed, step, len(model), errno)
				}
				if errno == 0 {
					model = append(model, m)
				}
			} else {
				m, errno := f.Receive(10)
				if len(model) == 0 {
					if errno != linux.EAGAIN {
						t.Fatalf("seed %d, step %d: %v from an empty queue", seed, step, errno)
					}
					continue
				}
				best := 0
				for i := range model {
					if model[i].Priority > model[best].Priority {
						best = i
					}
				}
				if string(m.Data) != string(model[best].Data) || m.Priority != model[best].Priority {
					t.Fatalf("seed %d, step %d: %s, want %s", seed, step, m.Data, model[best].Data)
				}
				model = slices.Delete(model, best, best+1)
			}
			e := f.Events()
			if (e&file.PollIn != 0) != (len(model) > 0) || (e&file.PollOut != 0) != (len(model) < 5) || f.Len() != len(model) {
				t.Fatalf("seed %d, step %d: events %x with %d messages", seed, step, e, len(model))
			}
		}
	}
}

// A queue counts towards the limit of its user (RLIMIT_MSGQUEUE) until no process can use it any more.
func TestCharge(t *testing.T) {
	var s State
	a := Attributes{Messages: 2, Size: 10}
	c := Creator{UID: 7, Limit: 2 * a.charge()}
	open := func(name string) (*File, linux.Errno) {
		return s.Open(name, linux.O_RDWR|linux.O_CREAT, &a, c, anyone)
	}
	one, _ := open("one")
	two, _ := open("two")
	again, _ := open("two")
	if _, errno := open("three"); errno != linux.EMFILE {
		t.Errorf("beyond the limit: %v", errno)
	}
	s.Unlink("two", anyone)
	two.Close()
	if _, errno := open("three"); errno != linux.EMFILE {
		t.Errorf("while a removed queue is open: %v", errno)
	}
	again.Close()
	three, errno := open("three")
	if errno != 0 {
		t.Errorf("after its end: %v", errno)
	}
	for _, name := range []string{"one", "three"} {
		s.Unlink(name, anyone)
	}
	one.Close()
	three.Close()
	if len(s.used) != 0 || s.count != 0 {
		t.Errorf("left: %v, %d queues", s.used, s.count)
	}
}

// A request of mq_notify gets one notification, when a message is put into an empty queue for which no receiver
// waits.
func TestNotify(t *testing.T) {
	var s State
	f := opened(t, &s, "q", Attributes{Messages: 5, Size: 10})
	count, removed := 0, 0
	n := func() *Notification {
		return &Notification{PID: 3, Deliver: func(pid int32, uid uint32) { count += int(pid) }, Removed: func() { removed++ }}
	}
	if errno := f.Notify(n()); errno != 0 {
		t.Fatal(errno)
	}
	if errno := f.Notify(n()); errno != linux.EBUSY {
		t.Errorf("a second request: %v", errno)
	}
	f.Block(1)
	f.Send(Message{}, 1, 0)
	f.Block(-1)
	if count != 0 {
		t.Error("notified although a receiver waits")
	}
	f.Send(Message{}, 1, 0)
	f.Receive(10)
	f.Receive(10)
	f.Send(Message{}, 1, 0)
	f.Receive(10)
	f.Send(Message{}, 1, 0)
	if count != 1 {
		t.Errorf("notified %d times", count)
	}
	f.Notify(n())
	f.Forget(4)
	f.Forget(3)
	if removed != 1 || f.Notify(n()) != 0 {
		t.Errorf("%d requests removed", removed)
	}
}

// The names of queues follow the rules for file names in a single directory.
func TestNames(t *testing.T) {
	var s State
	for name, want := range map[string]linux.Errno{
		"": linux.ENOENT, ".": linux.EACCES, "..": linux.EACCES, "a/b": linux.EACCES, string(make([]byte, 256)): linux.ENAMETOOLONG, "none": linux.ENOENT,
	} {
		if _, errno := s.Open(name, linux.O_RDONLY, nil, Creator{}, anyone); errno != want {
			t.Errorf("%q: %v, want %v", name, errno, want)
		}
	}
}
