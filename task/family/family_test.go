package family

import (
	"errors"
	"slices"
	"testing"

	"loam/abi/linux"
)

type world struct {
	*testing.T
	*Tree
	init *Process
}

func newWorld(t *testing.T) *world {
	tree, first := New()
	return &world{t, tree, first}
}

func (w *world) fork(p *Process) *Process {
	w.Helper()
	c, err := w.Fork(p, false)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) wantError(what string, got, want error) {
	w.Helper()
	if !errors.Is(got, want) {
		w.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (w *world) wantReport(p *Process, s Selector, wanted Wanted, want Report, wantErr error) {
	w.Helper()
	got, err := w.Wait(p, s, wanted)
	if got != want || err != wantErr {
		w.Errorf("wait(%d): %+v, %v, want %+v, %v", s, got, err, want, wantErr)
	}
}

var ended = Wanted{Exited: true}

// TestWait: a wait reports the end of each child that it selects, once.
func TestWait(t *testing.T) {
	w := newWorld(t)
	p := w.fork(w.init)
	w.wantReport(p, -1, ended, Report{}, linux.ECHILD)
	a, b := w.fork(p), w.fork(p)
	w.wantError("setpgid", w.SetGroup(p, b.PID, 0), nil)
	w.wantReport(p, -1, ended, Report{}, nil)
	if e := w.Exit(b, 0x100); e.Notify != p {
		t.Errorf("%+v", e)
	}
	w.wantReport(p, 0, ended, Report{}, nil)
	w.wantReport(p, Selector(a.PID), ended, Report{}, nil)
	w.wantReport(p, Selector(-b.PID), Wanted{Exited: true, Keep: true}, Report{Exited, b.PID, 0x100}, nil)
	w.wantReport(p, Selector(-b.PID), Wanted{Stopped: true}, Report{}, nil)
	w.wantReport(p, Selector(b.PID), ended, Report{Exited, b.PID, 0x100}, nil)
	w.wantReport(p, Selector(b.PID), ended, Report{}, linux.ECHILD)
	all := Wanted{Exited: true, Stopped: true, Continued: true}
	a.Stop(19)
	w.wantReport(p, -1, all, Report{Stopped, a.PID, 19}, nil)
	w.wantReport(p, -1, all, Report{}, nil)
	if !a.Continue() || a.Continue() {
		t.Error("continued wrongly")
	}
	w.wantReport(p, -1, all, Report{Continued, a.PID, 0}, nil)
	a.Stop(19)
	w.Exit(a, 9)
	w.wantReport(p, -1, all, Report{Exited, a.PID, 9}, nil)
}

// TestOrphans: children of a process that has ended are adopted by the nearest sub-reaper, else to process 1.
func TestOrphans(t *testing.T) {
	w := newWorld(t)
	reaper := w.fork(w.init)
	middle := w.fork(reaper)
	child, dead := w.fork(middle), w.fork(middle)
	w.Exit(dead, 1)
	reaper.SubReaper = true
	e := w.Exit(middle, 0)
	if !slices.Equal(e.Orphans, []*Process{child, dead}) || child.Parent() != reaper.PID {
		t.Errorf("%+v", e)
	}
	w.wantReport(reaper, Selector(dead.PID), ended, Report{Exited, dead.PID, 1}, nil)
	w.Exit(reaper, 0)
	if child.Parent() != 1 || middle.Parent() != 1 {
		t.Errorf("parents %d, %d", child.Parent(), middle.Parent())
	}
	w.init.NoZombies = true
	w.Exit(child, 0)
	if w.Find(child.PID) != nil {
		t.Error("a zombie that nobody wants stays")
	}
}

// TestGroups: the errors of setpgid and setsid.
func TestGroups(t *testing.T) {
	w := newWorld(t)
	shell := w.fork(w.init)
	w.wantError("setsid", w.SetSession(shell), nil)
	w.wantError("setsid of a leader", w.SetSession(shell), linux.EPERM)
	w.wantError("setpgid of a leader", w.SetGroup(shell, 0, 0), linux.EPERM)
	job, other := w.fork(shell), w.fork(shell)
	w.wantError("negative", w.SetGroup(shell, job.PID, -1), linux.EINVAL)
	w.wantError("own group", w.SetGroup(shell, job.PID, 0), nil)
	w.wantError("the other joins", w.SetGroup(shell, other.PID, job.PID), nil)
	w.wantError("no such group", w.SetGroup(shell, other.PID, 9999), linux.EPERM)
	w.wantError("not a child", w.SetGroup(job, other.PID, 0), linux.ESRCH)
	other.Executed = true
	w.wantError("after execve", w.SetGroup(shell, other.PID, 0), linux.EACCES)
	w.wantError("setsid of a group's leader", w.SetSession(job), linux.EPERM)
	w.wantError("setsid", w.SetSession(other), nil)
	w.wantError("in another session", w.SetGroup(shell, other.PID, 0), linux.EPERM)
	if n := len(w.Members(job.PID)); n != 1 {
		t.Errorf("%d members", n)
	}
}

// TestHangup: a stopped process group is sent SIGHUP and SIGCONT when it becomes orphaned: no member has a parent in
// another group of the session any more.
func TestHangup(t *testing.T) {
	w := newWorld(t)
	shell := w.fork(w.init)
	w.wantError("setsid", w.SetSession(shell), nil)
	job, running := w.fork(shell), w.fork(shell)
	w.wantError("setpgid", w.SetGroup(shell, job.PID, 0), nil)
	w.wantError("setpgid", w.SetGroup(shell, running.PID, 0), nil)
	job.Stop(20)
	if w.Orphaned(job.PID) {
		t.Error("a job of a shell is orphaned")
	}
	if e := w.Exit(shell, 0); !slices.Equal(e.Hangup, []PID{job.PID}) {
		t.Errorf("%+v", e)
	}
}

// TestNumbers: a process number is free again when no process, process group or session has it.
func TestNumbers(t *testing.T) {
	w := newWorld(t)
	leader := w.fork(w.init)
	w.wantError("setsid", w.SetSession(leader), nil)
	member := w.fork(leader)
	w.Exit(leader, 0)
	w.wantReport(w.init, -1, ended, Report{Exited, leader.PID, 0}, nil)
	if w.names[leader.PID] != 2 {
		t.Errorf("the number of a group and session with a member is counted %d times", w.names[leader.PID])
	}
	w.last = MaxPID - 2
	for _, want := range []PID{MaxPID - 1, reserved, reserved + 1} {
		if p := w.fork(w.init); p.PID != want {
			t.Errorf("number %d, want %d", p.PID, want)
		}
	}
	w.last = leader.PID - 1
	if p := w.fork(w.init); p.PID == leader.PID || p.PID == member.PID {
		t.Errorf("number %d is used twice", p.PID)
	}
	w.Exit(member, 0)
	w.wantReport(w.init, Selector(member.PID), ended, Report{Exited, member.PID, 0}, nil)
	if len(w.names) != len(w.processes) {
		t.Errorf("%d numbers in use by %d processes", len(w.names), len(w.processes))
	}
}
