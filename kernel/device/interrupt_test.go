package device

import (
	"slices"
	"testing"

	"loam/driver"
	"loam/kernel"
)

// model is a kernel that records the calls it receives.
type model struct {
	bells  bells
	asked  []uintptr // numbers of the system calls that the code under test made, in order
	refuse bool
}

func newModel() *model {
	m := &model{}
	m.bells.init(func(number, _, _ uintptr) (uintptr, bool) {
		m.asked = append(m.asked, number)
		return 5, !m.refuse
	})
	return m
}

// took returns the calls that the kernel has received since took was last called.
func (m *model) took() []uintptr {
	asked := m.asked
	m.asked = nil
	return asked
}

func (m *model) connect(t *testing.T) *interrupt {
	t.Helper()
	i, ok := m.bells.line(10, driver.LevelHigh)
	if !ok {
		t.Fatal("refused")
	}
	return i
}

func rung(i driver.Interrupt) bool {
	select {
	case <-i.C():
		return true
	default:
		return false
	}
}

// An interrupt line that several drivers share is opened once, and an interrupt notifies all of them. It is unmasked
// when all of them have called Done.
func TestSharedLine(t *testing.T) {
	m := newModel()
	a, b := m.connect(t), m.connect(t)
	if got := m.took(); !slices.Equal(got, []uintptr{kernel.CallLine}) {
		t.Fatalf("asked for %#x", got)
	}
	for range 2 {
		m.bells.ring(5)
		if !rung(a) || !rung(b) {
			t.Fatal("somebody was not told")
		}
		a.Done()
		a.Done()
		if got := m.took(); got != nil {
			t.Fatalf("asked for %#x while the other is at it", got)
		}
		b.Done()
		if got := m.took(); !slices.Equal(got, []uintptr{kernel.CallDone}) {
			t.Fatalf("asked for %#x", got)
		}
	}
}

// A driver that has closed a line no longer keeps it masked. When the last driver closes the line, the line is closed
// in the kernel.
func TestLeave(t *testing.T) {
	m := newModel()
	a, b := m.connect(t), m.connect(t)
	m.bells.ring(5)
	b.Done()
	m.took()
	a.Close()
	a.Close()
	a.Done()
	if got := m.took(); !slices.Equal(got, []uintptr{kernel.CallDone}) {
		t.Errorf("asked for %#x", got)
	}
	m.bells.ring(5)
	if rung(a); !rung(b) {
		t.Error("the other is not told any more")
	}
	b.Close()
	if got := m.took(); !slices.Equal(got, []uintptr{kernel.CallClose}) {
		t.Errorf("asked for %#x", got)
	}
	if m.connect(t); !slices.Equal(m.took(), []uintptr{kernel.CallLine}) {
		t.Error("not opened again")
	}
}

// A line that fires as soon as it is open, before Line has returned, notifies its driver, although the driver does
// not have the line yet.
func TestEarlyRing(t *testing.T) {
	var b bells
	b.init(func(number, _, _ uintptr) (uintptr, bool) {
		if number == kernel.CallLine {
			go b.ring(5)
		}
		return 5, true
	})
	for range 200 {
		i, _ := b.line(10, driver.LevelLow)
		<-i.C()
		i.Done()
		i.Close()
	}
}

func TestRefused(t *testing.T) {
	m := newModel()
	m.refuse = true
	if _, ok := m.bells.line(10, driver.EdgeHigh); ok {
		t.Error("there is a line")
	}
	m.refuse = false
	if i := m.connect(t); i == nil || len(m.took()) != 2 {
		t.Error("there is none afterwards")
	}
}

// Freed buffers are reused if their size and alignment match.
func TestPool(t *testing.T) {
	p := pool{free: map[int][]uint64{2: {0x3000, 0x8000}}}
	if pa, ok := p.take(2, 0x8000); !ok || pa != 0x8000 {
		t.Errorf("%#x, %v", pa, ok)
	}
	if _, ok := p.take(1, 1); ok {
		t.Error("a buffer of another size")
	}
	if pa, ok := p.take(2, 1); !ok || pa != 0x3000 {
		t.Errorf("%#x, %v", pa, ok)
	}
	if _, ok := p.take(2, 1); ok {
		t.Error("there was one too many")
	}
}

// A message with a function calls it after each interrupt, until the message is closed, and sends nothing. A line
// does not call.
func TestCall(t *testing.T) {
	m := newModel()
	i := m.bells.message(3)
	calls := 0
	m.bells.ring(3)
	if i.Call(func() { calls++; m.bells.ring(4) }); !rung(i) {
		t.Error("the interrupt before was lost")
	}
	for want := 1; want < 3; want++ {
		if m.bells.ring(3); calls != want || rung(i) {
			t.Errorf("%d calls instead of %d", calls, want)
		}
	}
	i.Close()
	if m.bells.ring(3); calls != 2 {
		t.Error("a call after Close")
	}
	l := m.connect(t)
	if _, ok := driver.Interrupt(l).(driver.Caller); ok {
		t.Error("a line, which several drivers may share, calls a function of one of them")
	}
}
