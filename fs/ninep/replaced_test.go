package ninep_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// beforeLookup calls a function before a request of type Lookup or Walk is sent that follows a request which creates a file.
type beforeLookup struct {
	io.ReadWriteCloser
	created bool
	call    func()
}

func (c *beforeLookup) Write(p []byte) (int, error) {
	switch t := ninep.ParseHeader(p[:ninep.HeaderSize]).Type; {
	case t == ninep.TypeMknod || t == ninep.TypeMkdir:
		c.created = true
	case c.created && (t == ninep.TypeLookup || t == ninep.TypeWalk):
		c.created = false
		c.call()
	}
	return c.ReadWriteCloser.Write(p)
}

// If another file gets the name of a new file before the client has found the new file by this name, the other file does not get
// the owner of the new file.
func TestReplacedNewFile(t *testing.T) {
	for name, plain := range map[string]bool{"Loam": false, "9P2000.L": true} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			var c *beforeLookup
			s := exportTo(t, dir, ninep.Config{Cache: ninep.None}, server.Config{Plain: plain}, func(near net.Conn) io.ReadWriteCloser {
				c = &beforeLookup{ReadWriteCloser: near, call: func() {
					must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "moved")))
					must(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "new")))
				}}
				return c
			})
			must(t, os.Chmod(dir, 0o777))
			v := view(s)
			write(t, v, "other", "x", 0)
			v.Who.UID = 1000
			if n, err := v.MakeNode(v.Dir, "new", fs.Fifo|0o644, fs.Device{}); err != linux.ENOENT {
				t.Errorf("mknod: %v, %v, want ENOENT", n, err)
			}
			must(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
			must(t, os.Remove(filepath.Join(dir, "new")))
			must(t, os.Remove(filepath.Join(dir, "moved")))
			if err := v.Mkdir(v.Dir, "new", 0o755); err != linux.ENOENT {
				t.Errorf("mkdir: %v, want ENOENT", err)
			}
			p, err := v.Lookup(v.Dir, "new", false)
			must(t, err)
			if a := p.Node.Attr(); a.UID != 0 {
				t.Errorf("the other folder belongs to %d", a.UID)
			}
		})
	}
}
