package shortage

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/mem"
	"loam/mem/memtest"
	"loam/mem/pressure"
)

// machine is a machine with a number of free pages, whose processes free memory when they are killed and memory has been collected.
type machine struct {
	g         *Guard
	short     *atomic.Bool
	mu        sync.Mutex // guards the fields below
	free      int64
	cache     int   // clean pages of the page cache
	garbage   int64 // pages that a collection frees
	processes []*fake
	killed    []int
}

const reserve = 80

type fake struct {
	Process
	machine *machine
	end     func() // frees the memory; the caller holds machine.mu
	held    int64
	stuck   bool // the process does not end
}

// Held implements the field Files.
func (f *fake) Held() int64 { return f.held << mem.PageShift }

func newMachine() *machine {
	m := &machine{short: new(atomic.Bool)}
	memory := Memory{m.short, func() (int64, int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.free, reserve
	}}
	m.g, m.short = New(memory, func(n int) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		n = min(n, m.cache)
		m.cache, m.free = m.cache-n, m.free+int64(n)
		return n
	}, func() (all []Process) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, f := range m.processes {
			all = append(all, f.Process)
		}
		return all
	}, 1000)
	m.g.collect = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.free, m.garbage = m.free+m.garbage, 0
	}
	m.short.Store(true)
	return m
}

// add adds a process whose files hold a number of pages.
func (m *machine) add(id int, user uint32, pages int64, adjust int, stuck bool) *fake {
	done := make(chan struct{})
	f := &fake{machine: m, held: pages, stuck: stuck}
	f.Process = Process{
		Process: pressure.Process{ID: id, User: user, Adjust: adjust}, Files: f, Done: done,
		Memory: mem.New(mem.Config{Memory: memtest.NewMemory(4), Tables: memtest.NewTables(memtest.NewMemory(4)), Account: &mem.Account{Total: 1000}}),
		Kill: func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if f.Ending { // only a core dump would end
				return
			}
			m.killed = append(m.killed, id)
			f.Ending = true
			if !f.stuck {
				f.end()
			}
		},
	}
	f.end = func() {
		m.garbage += pages
		m.processes = slices.DeleteFunc(m.processes, func(o *fake) bool { return o == f })
		close(done)
	}
	m.processes = append(m.processes, f)
	return f
}

// ends makes the process end after a second.
func (f *fake) ends() {
	f.Ending, f.Kill = true, func() {}
	time.AfterFunc(time.Second, func() {
		f.machine.mu.Lock()
		defer f.machine.mu.Unlock()
		f.end()
	})
}

// wait is a Wait of a thread without signals.
func wait(ready <-chan struct{}, most time.Duration) bool {
	if most < 0 {
		<-ready
		return true
	}
	select {
	case <-ready:
	case <-time.After(most):
	}
	return true
}

// Admit takes the mildest step that suffices.
func TestAdmit(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(m *machine)
		killed  []int
	}{
		{"there is memory again", func(m *machine) { m.free = reserve }, nil},
		{"the page cache", func(m *machine) { m.cache = 1000 }, nil},
		{"garbage", func(m *machine) { m.garbage = reserve; m.add(2, 0, 500, 0, false) }, nil},
		{"the largest", func(m *machine) { m.add(2, 0, 500, 0, false); m.add(3, 0, 600, 0, false) }, []int{3}},
		{"two, as one does not suffice", func(m *machine) { m.add(2, 0, 30, 0, false); m.add(3, 0, 60, 0, false); m.add(4, 0, 2, 0, false) }, []int{3, 2}},
		{"a process that does not end", func(m *machine) { m.add(2, 0, 500, 0, false); m.add(3, 0, 600, 0, true) }, []int{3, 2}},
		{"a process that ends already", func(m *machine) {
			m.add(2, 0, 500, 0, false)
			m.add(3, 0, 600, 0, false).ends()
		}, nil},
		{"memory that is freed after the end", func(m *machine) {
			m.add(2, 0, 500, 0, false)
			f := m.add(3, 0, 600, 0, false)
			end := f.end
			f.end = func() {
				end()
				m.garbage = 0
				time.AfterFunc(300*time.Millisecond, func() { m.mu.Lock(); defer m.mu.Unlock(); m.free = reserve })
			}
		}, []int{3}},
		{"nothing can be killed", func(m *machine) { m.add(2, 0, 500, pressure.Never, false) }, nil},
		{"small ones of one user", func(m *machine) {
			m.add(2, 0, 300, 0, false)
			for i := range 40 {
				m.add(10+i, 1000, 10, 0, false)
			}
		}, []int{49, 48, 47, 46, 45, 44, 43, 42}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine()
			test.prepare(m)
			if !m.g.Admit(wait) || m.short.Load() || !slices.Equal(m.killed, test.killed) {
				t.Errorf("%s: killed %v, want %v; still short: %v", test.name, m.killed, test.killed, m.short.Load())
			}
		})
	}
}

// A thread that has to look at its signals leaves, and lets others free memory. The shortage is not forgotten.
func TestAdmitIsInterrupted(t *testing.T) {
	m := newMachine()
	m.add(2, 0, 500, 0, true)
	if m.g.Admit(func(<-chan struct{}, time.Duration) bool { return false }) {
		t.Error("admitted before its turn")
	}
	if m.g.Admit(func(ready <-chan struct{}, most time.Duration) bool { return most < 0 && wait(ready, most) }) || !m.short.Load() {
		t.Error("admitted while a process ends")
	}
	m.free = reserve
	if !m.g.Admit(wait) {
		t.Error("not admitted")
	}
}

// Exhausted kills one process at a time, and the caller if all others are protected.
func TestExhausted(t *testing.T) {
	m := newMachine()
	m.cache = 1
	self := func() { m.killed = append(m.killed, 0) }
	if !m.g.relieved(self) || m.cache != 0 || m.killed != nil {
		t.Errorf("the page cache: killed %v", m.killed)
	}
	m.add(2, 0, 500, pressure.Never, false)
	m.g.Exhausted(self)
	m.add(3, 0, 400, 0, true)
	m.g.Exhausted(self)
	if want := []int{0, 3}; !slices.Equal(m.killed, want) {
		t.Errorf("killed %v, want %v", m.killed, want)
	}
	m.add(4, 0, 900, 0, false)
	if m.g.Exhausted(self); slices.Contains(m.killed, 4) {
		t.Error("another process is killed while one ends")
	}
	<-m.g.turn
	if m.g.relieved(self) {
		t.Error("two threads free memory")
	}
}
