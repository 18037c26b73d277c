package file_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// alerting is a file, and its handle, that records the function of OnAlert.
type alerting struct {
	fs.Node
	fs.Handle
	alert func()
}

func (a *alerting) Attr() fs.Attr                    { return fs.Attr{Mode: linux.S_IFREG | 0o444} }
func (a *alerting) Open(fs.Flags) (fs.Handle, error) { return a, nil }

func (a *alerting) OnAlert(f func()) { a.alert = f }
func (a *alerting) Alerted() bool    { return false }

// A file reports its changes to a queue once the queue has a watch, and not while it is only open.
func TestAlert(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	h := &alerting{}
	f, err := v.OpenPlace(fs.Unnamed(h), fs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	var q file.Queue
	file.Alert(f, &q)
	if h.alert != nil {
		t.Error("a file without a watch reports changes")
	}
	var got file.Events
	q.Add(&file.Watch{Notify: func(e file.Events) { got = e }})
	if h.alert == nil {
		t.Fatal("a file with a watch does not report changes")
	}
	if h.alert(); got != file.PollErr|file.PollPri {
		t.Errorf("a change is reported as %v", got)
	}
}
