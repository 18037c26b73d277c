package task

import (
	"cmp"
	"maps"
	"slices"

	"loam/abi/linux"
	"loam/posix"
	"loam/posix/file"
	"loam/task/family"
	"loam/task/signal"
)

// Signals to the owners of files (SIGIO, SIGURG): groups implements posix.FileSignals.

var (
	_ posix.FileSignals = groups{}
	_ posix.Lister      = groups{}
)

// List implements posix.Lister.
func (g groups) List() (all []*posix.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(g.processes)) {
		if p := g.processes[id]; p.posix != nil {
			all = append(all, p.posix)
		}
	}
	return all
}

// SignalOwner implements posix.FileSignals. An event may be reported by a goroutine of the network stack, which must not wait.
func (g groups) SignalOwner(to file.Owner, n int, code int32, band uint64, fd int) {
	if g.mu.TryLock() {
		defer g.mu.Unlock()
		g.signalOwner(to, n, code, band, fd)
		return
	}
	go func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.signalOwner(to, n, code, band, fd)
	}()
}

// signalOwner is as SignalOwner, for a caller that holds System.mu.
func (g groups) signalOwner(to file.Owner, n int, code int32, band uint64, fd int) {
	i := signal.Info{Signal: signal.Number(n), Code: signal.CodeKernel}
	if to.Signal != 0 {
		i = signal.Info{Signal: signal.Number(n), Code: code, Addr: band, Value: uint64(uint32(fd))}
	}
	send := func(p *Process, t *Task) {
		if !p.creds().MayBeSignalled(to.UID, to.EUID) {
			return
		}
		if p.send(t, i) == linux.EAGAIN { // there is no room for a queued signal
			p.send(t, signal.Info{Signal: linux.SIGIO, Code: signal.CodeKernel})
		}
	}
	switch to.Kind {
	case linux.F_OWNER_TID:
		if t := g.tasks[family.PID(to.ID)]; t != nil {
			send(t.process, t)
		}
	case linux.F_OWNER_PID:
		if p := g.processes[family.PID(to.ID)]; p != nil {
			send(p, nil)
		}
	default:
		for _, p := range g.group(family.PID(to.ID)) {
			send(p, nil)
		}
	}
}

// Watched implements posix.FileSignals.
func (g groups) Watched(pid int32) posix.Watched {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := cmp.Or(g.processes[family.PID(pid)], g.zombies[family.PID(pid)]); p != nil {
		return p.ref
	}
	return nil
}

// HasOwner implements posix.FileSignals.
func (g groups) HasOwner(kind, id int32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch kind {
	case linux.F_OWNER_TID:
		return g.tasks[family.PID(id)] != nil
	case linux.F_OWNER_PID:
		return g.tree.Find(family.PID(id)) != nil
	}
	return len(g.tree.Members(family.PID(id))) > 0
}
