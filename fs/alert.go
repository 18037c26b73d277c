package fs

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Alerting is implemented by handles of files that report changes of their content to poll(2), such as /proc/PID/mounts.
type Alerting interface {
	// OnAlert sets the function that is called after each change until the handle is closed. It may be called again with the
	// same function. The function must not block.
	OnAlert(f func())
	// Alerted reports whether the content has changed since the last call or, at the first call, since the file was opened.
	Alerted() bool
}

// mountChanges reports the changes of the mounts of a tree.
type mountChanges struct {
	count  atomic.Uint64
	mu     sync.Mutex // guards alerts, and MountAlert.closed
	alerts map[*MountAlert]func()
}

// report counts a change and calls the functions of the alerts.
func (c *mountChanges) report() {
	c.count.Add(1)
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.alerts))
	c.mu.Unlock()
	for _, notify := range all {
		notify()
	}
}

// MountAlert implements Alerting for a file that shows the mounts of a tree.
type MountAlert struct {
	changes *mountChanges
	seen    atomic.Uint64 // the value of changes.count at the last call of Alerted
	closed  bool
}

// NewMountAlert returns an alert for the mounts of the tree.
func (t *Tree) NewMountAlert() *MountAlert {
	a := &MountAlert{changes: &t.changes}
	a.seen.Store(t.changes.count.Load())
	return a
}

// OnAlert implements Alerting.
func (a *MountAlert) OnAlert(f func()) {
	c := a.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.closed {
		return
	}
	if c.alerts == nil {
		c.alerts = map[*MountAlert]func(){}
	}
	c.alerts[a] = f
}

// Alerted implements Alerting.
func (a *MountAlert) Alerted() bool {
	n := a.changes.count.Load()
	return a.seen.Swap(n) != n
}

// Close ends the calls of the function that OnAlert has set.
func (a *MountAlert) Close() error {
	a.changes.mu.Lock()
	defer a.changes.mu.Unlock()
	a.closed = true
	delete(a.changes.alerts, a)
	return nil
}
