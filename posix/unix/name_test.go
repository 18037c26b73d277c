package unix

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// sameNode is a file system that returns the same file for each name that is created: a user has replaced the new file.
type sameNode struct {
	fs.Directory
	file fs.Node
}

func (d *sameNode) Root() fs.Directory { return d }
func (d *sameNode) Usage() fs.Usage    { return fs.Usage{} }
func (d *sameNode) Sync() error        { return nil }

func (d *sameNode) Make(name string, mode fs.Mode, owner fs.Owner, device fs.Device) (_ fs.Node, err error) {
	if d.file == nil {
		d.file, err = d.Directory.Make(name, mode, owner, device)
	}
	return d.file, err
}

type caller struct{ view *fs.View }

func (c caller) Credentials() Credentials { return Credentials{} }
func (c caller) View() *fs.View           { return c.view }

// A socket does not take the file to which another socket is bound.
func TestBindToBoundFile(t *testing.T) {
	var names Names
	names.Init()
	by := caller{fs.NewView(fs.NewTree(&sameNode{Directory: memfs.New(memfs.Config{}).Root()}))}
	first, second := &Socket{mode: 0o777}, &Socket{mode: 0o777}
	if _, _, errno := names.bind(by, first, "a"); errno != 0 {
		t.Fatal(errno)
	}
	if _, node, errno := names.bind(by, second, "b"); errno != linux.EADDRINUSE || node != nil {
		t.Errorf("%v, want EADDRINUSE", errno)
	}
	if s, errno := names.find(by, "a"); s != first {
		t.Errorf("the file belongs to another socket: %v", errno)
	}
}
