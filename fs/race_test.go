package fs_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// racing is a file system whose root directory loses a name as soon as a caller has its node, the next races times.
type racing struct {
	fs.FileSystem
	root *racingDir
}

func (r racing) Root() fs.Directory { return r.root }

type racingDir struct {
	fs.Directory
	races int
}

// lose removes the name of a node that was found or made.
func (d *racingDir) lose(n fs.Node, err error, name string) (fs.Node, error) {
	if err == nil && d.races > 0 {
		d.races--
		err = d.Directory.Unlink(name)
	}
	return n, err
}

func (d *racingDir) Lookup(name string) (fs.Node, error) {
	n, err := d.Directory.Lookup(name)
	return d.lose(n, err, name)
}

func (d *racingDir) Make(name string, mode fs.Mode, owner fs.Owner, device fs.Device) (fs.Node, error) {
	n, err := d.Directory.Make(name, mode, owner, device)
	return d.lose(n, err, name)
}

// An open with Create succeeds if another process removes the file between its lookup or creation and the open. An open without
// Create returns ENOENT.
func TestRemovalDuringOpen(t *testing.T) {
	m := memfs.New(memfs.Config{})
	d := &racingDir{Directory: m.Root()}
	v := fs.NewView(fs.NewTree(racing{m, d}))
	for _, c := range []struct {
		exists bool
		flags  fs.Flags
		races  int
		want   error
	}{
		{false, fs.Create, 0, nil}, {false, fs.Create, 1, nil}, {false, fs.Create, 3, nil}, {false, fs.Create | fs.Exclusive, 1, nil},
		{true, fs.Create, 1, nil}, {true, fs.Create, 2, nil},
		{true, 0, 1, linux.ENOENT}, {true, fs.PathOnly, 1, linux.ENOENT}, {false, fs.Create, 1 << 20, linux.ENOENT},
	} {
		d.races = 0
		v.Unlink(v.Dir, "f")
		if c.exists {
			if err := v.Mknod(v.Dir, "f", fs.Regular|0o644, fs.Device{}); err != nil {
				t.Fatal(err)
			}
		}
		d.races = c.races
		f, err := v.Open(v.Dir, "f", fs.ReadWrite|c.flags, 0o644)
		if err != c.want {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			f.Close()
		}
	}
}
