package ninep_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/fstest"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// tried is a connection that implements Trier, so that callers read their own replies, as in a process of Linux.
type tried struct {
	net.Conn
	raw syscall.RawConn
}

// TryRead implements ninep.Trier.
func (c tried) TryRead(p []byte) (n int, err error) {
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	})
	switch {
	case failed != nil:
		return 0, io.ErrClosedPipe
	case err == linux.EAGAIN:
		return 0, linux.EAGAIN
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}

// Yield implements ninep.Trier.
func (c tried) Yield() { runtime.Gosched() }

func asTried(c net.Conn) io.ReadWriteCloser {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		panic(err)
	}
	return tried{c, raw}
}

// The test suite of all file systems passes if callers read their replies themselves.
func TestLeadingCallers(t *testing.T) {
	fstest.TestNames(t, manyNames()/4, func(t *testing.T) fs.FileSystem {
		return quiet{exportTo(t, folder(t), ninep.Config{}, server.Config{}, asTried)}
	})
}

// Many callers at once all get their replies, also after times in which no caller reads, and after a long reply.
func TestManyLeadingCallers(t *testing.T) {
	c := ninep.Config{Cache: ninep.None, Window: 8192}
	t.Run("socket", func(t *testing.T) { manyCallers(t, exportTo(t, folder(t), c, server.Config{}, asTried)) })
	t.Run("memory", func(t *testing.T) { manyCallers(t, exportMemory(t, folder(t), c)) })
}

func manyCallers(t *testing.T, s *ninep.FileSystem) {
	v := view(s)
	const goroutines, files = 8, 40
	for round := range 3 {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := range files {
					name := fmt.Sprint(g, ".", i)
					write(t, v, name, name, 0)
					if got := content(t, v, name); got != name {
						t.Errorf("%s has %q", name, got)
					}
					if err := v.Unlink(v.Dir, name); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		large := make([]byte, 3<<20)
		write(t, v, "large", string(large), 0)
		if got := content(t, v, "large"); len(got) != len(large) {
			t.Errorf("round %d: %d bytes", round, len(got))
		}
	}
}

// When the server ends, calls return EIO and Ended is called, also while a caller reads.
func TestServerEndsUnderLeadingCallers(t *testing.T) {
	near, far := dial(t)
	ended := make(chan error, 1)
	replies := make(chan struct{})
	go func() { // the server: answers Version and Attach, then ends
		defer close(replies)
		answerVersion(far)
		far.Close()
	}()
	_, err := ninep.New(asTried(near), ninep.Config{Ended: func(err error) { ended <- err }})
	if err != linux.EIO {
		t.Errorf("%v, want EIO", err)
	}
	<-replies
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("Ended is not called")
	}
}

// answerVersion answers a Version request.
func answerVersion(c net.Conn) {
	var header [ninep.HeaderSize]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return
	}
	h := ninep.ParseHeader(header[:])
	body := make([]byte, h.Size-ninep.HeaderSize)
	if _, err := io.ReadFull(c, body); err != nil {
		return
	}
	c.Write(ninep.Append(nil, ninep.TypeVersion.Reply(), ninep.NoTag, &ninep.Version{Size: ninep.MinSize, Version: ninep.VersionLoam}))
}
