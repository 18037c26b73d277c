package fs

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Alerting is implemented by handles of files that report changes of their content to poll(2), such as /proc/PID/mounts.
type Alerting interface {
	// OnAlert sets the function that is called after each change. It is called once, before the handle is used. The function
	// must not block.
	OnAlert(f func())
	// Alerted reports whether the content has changed since the last call or, at the first call, since the file was opened.
	Alerted() bool
}

// mountChanges reports the changes of the mounts of a tree.
type mountChanges struct {
	count  atomic.Uint64
	mu     sync.Mutex    // held while alerts is replaced
	alerts []*MountAlert // the list is replaced, never modified
}

// report counts a change and calls the functions of the alerts.
func (c *mountChanges) report() {
	c.count.Add(1)
	c.mu.Lock()
	alerts := c.alerts
	c.mu.Unlock()
	for _, a := range alerts {
		a.notify()
	}
}

// MountAlert implements Alerting for a file that shows the mounts of a tree.
type MountAlert struct {
	changes *mountChanges
	seen    atomic.Uint64 // the value of changes.count at the last call of Alerted
	notify  func()
}

// NewMountAlert returns an alert for the mounts of the tree.
func (t *Tree) NewMountAlert() *MountAlert {
	a := &MountAlert{changes: &t.changes}
	a.seen.Store(t.changes.count.Load())
	return a
}

// OnAlert implements Alerting.
func (a *MountAlert) OnAlert(f func()) {
	a.notify = f
	a.changes.mu.Lock()
	defer a.changes.mu.Unlock()
	a.changes.alerts = append(slices.Clip(a.changes.alerts), a)
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
	a.changes.alerts = slices.DeleteFunc(slices.Clone(a.changes.alerts), func(o *MountAlert) bool { return o == a })
	return nil
}
