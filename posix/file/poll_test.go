package file

import (
	"testing"

	"loam/abi/linux"
)

// idle is a file that is never ready.
type idle struct{ q Queue }

func (f *idle) Events() Events                  { return 0 }
func (f *idle) Queue() *Queue                   { return &f.q }
func (f *idle) Read([]byte) (int, linux.Errno)  { return 0, linux.EAGAIN }
func (f *idle) Write([]byte) (int, linux.Errno) { return 0, linux.EAGAIN }
func (f *idle) Close()                          {}
func (f *idle) Mode() uint32                    { return 0 }

// A file that is in several entries of poll(2) has one watch. With a watch for each entry, a call with n entries would take a time
// that grows with n squared, and SIGKILL does not interrupt that.
func TestPollOneWatchForEachFile(t *testing.T) {
	var d Table
	f := &idle{}
	fd, errno := d.Insert(NewDescription(f, linux.O_RDWR), 0, 10, false)
	if errno != 0 {
		t.Fatal(errno)
	}
	fds := make([]PollFD, 1000)
	for i := range fds {
		fds[i] = PollFD{FD: fd, Events: PollIn}
	}
	c := polling{table: &d, fds: fds, opens: make([]*Description, len(fds)), bell: make(chan struct{}, 1)}
	c.watch.Notify = func(Events) { c.ring() }
	c.open()
	c.enter()
	if list := f.q.list.Load(); list == nil || len(*list) != 1 {
		t.Errorf("%d watches", len(*list))
	}
	c.leave()
	if list := f.q.list.Load(); list != nil {
		t.Errorf("%d watches are left", len(*list))
	}
	if n, errno := d.Poll(fds, 0, Task{}); n != 0 || errno != 0 {
		t.Errorf("%d ready, %v", n, errno)
	}
}
