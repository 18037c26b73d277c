package ninep_test

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// countedWrites counts the bytes that are written.
type countedWrites struct {
	io.ReadWriteCloser
	n *atomic.Int64
}

func (c countedWrites) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ReadWriteCloser.Write(p)
}

// Creating and removing files sends no request for the attributes of the directory. A later change of its mode applies at once,
// and its times are those after the last change.
func TestGuard(t *testing.T) {
	var sent atomic.Int64
	s := exportTo(t, folder(t), ninep.Config{Valid: time.Hour}, server.Config{}, func(c net.Conn) io.ReadWriteCloser {
		return countedWrites{c, &sent}
	})
	v := view(s)
	must(t, v.Mkdir(v.Dir, "d", 0o755))
	p, err := v.Lookup(v.Dir, "d", true)
	must(t, err)
	before := p.Node.Attr()
	const files = 20
	for i := range files {
		write(t, v, fmt.Sprint("d/", i), "content", 0)
	}
	v.Lookup(v.Dir, "absent", true) // sends what the client has not sent yet
	start := sent.Load()
	for i := range files {
		must(t, v.Unlink(v.Dir, fmt.Sprint("d/", i)))
	}
	const most = 24 // bytes of a request to remove a file with a short name
	if n := (sent.Load() - start) / files; n > most {
		t.Errorf("%d bytes are sent to remove a file, of at most %d", n, most)
	}
	if after := p.Node.Attr(); after.Modify <= before.Modify {
		t.Errorf("the directory was changed at %d, and at %d before", after.Modify, before.Modify)
	}
	other := *v
	other.Who = fs.Credentials{UID: 1, GID: 1}
	must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o700}))
	if _, err := other.Open(v.Dir, "d/x", fs.WriteOnly|fs.Create, 0o644); err != linux.EACCES {
		t.Errorf("create after chmod 0700: %v, want EACCES", err)
	}
	must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o777}))
	f, err := other.Open(v.Dir, "d/x", fs.WriteOnly|fs.Create, 0o644)
	if err != nil {
		t.Fatalf("create after chmod 0777: %v", err)
	}
	must(t, f.Close())
}
