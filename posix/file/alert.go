package file

import "loam/fs"

// TreeEvents returns the events of a file of the file tree. Such a file is always ready. A file that reports changes has
// PollErr and PollPri once after each change.
func TreeEvents(f *fs.File) Events {
	a, ok := f.Handle().(fs.Alerting)
	switch {
	case !ok:
		return PollIn | PollOut
	case a.Alerted():
		return PollIn | PollErr | PollPri
	}
	return PollIn
}

// HasAlerts reports whether a file of the file tree reports changes. Other files of the tree have no events to wait for.
func HasAlerts(f *fs.File) bool {
	_, ok := f.Handle().(fs.Alerting)
	return ok
}

// Alert makes a file of the file tree report its changes to a queue once the queue has a watch: programs read many of these files
// without waiting for changes.
func Alert(f *fs.File, q *Queue) {
	if a, ok := f.Handle().(fs.Alerting); ok {
		notify := func() { q.Notify(PollErr | PollPri) }
		q.OnAdd(func() { a.OnAlert(notify) })
	}
}
