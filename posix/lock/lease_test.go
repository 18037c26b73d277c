package lock

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Two attempts to open a file wait for the holder of a lease: for a weaker lease, and at most for the time of a break.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		tree := fs.NewTree(memfs.New(memfs.Config{}))
		node := fs.Node(tree.Root().Node)
		reports := 0
		set := func(owner, kind int, want linux.Errno) {
			t.Helper()
			if errno := l.Set(tree, node, Lock{Owner: owner}, kind, func() { reports++ }); errno != want {
				t.Errorf("owner %d, lease %d: %v, want %v", owner, kind, errno, want)
			}
		}
		open := func(flags fs.Flags, waits time.Duration) {
			t.Helper()
			c, ok := l.MayOpen(node, flags).(*Conflict)
			start := time.Now()
			if ok {
				c.Wait(file.Task{}, 0)
			}
			if took := time.Since(start); took != waits {
				t.Errorf("an attempt waits for %v, want %v", took, waits)
			}
		}
		set(1, linux.F_UNLCK, linux.EAGAIN)
		set(1, linux.F_RDLCK, 0)
		set(2, linux.F_RDLCK, 0)
		set(2, linux.F_WRLCK, linux.EAGAIN)
		open(fs.ReadOnly, 0)
		l.SetBreakTime(3)
		open(fs.WriteOnly, 3*time.Second)
		if reports != 2 || l.Kind(node, 1) != linux.F_UNLCK || l.Kind(node, 2) != linux.F_UNLCK {
			t.Errorf("%d reports; leases stay", reports)
		}
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Second, func() { l.Set(tree, node, Lock{Owner: 1}, linux.F_RDLCK, nil) })
		open(fs.ReadOnly, time.Second)
		time.AfterFunc(time.Second, func() { l.Release(tree, node, 1) })
		open(fs.ReadWrite, time.Second)
		open(fs.ReadWrite, 0)
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Second, func() { // the writer has the file open already
			set(1, linux.F_RDLCK, linux.EAGAIN)
			l.Release(tree, node, 1)
		})
		open(fs.WriteOnly, time.Second)
		l.SetBreakTime(0)
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Hour, func() { l.Release(tree, node, 1) })
		open(fs.ReadOnly, time.Hour)
		if len(l.held) != 0 || l.count.Load() != 0 {
			t.Error("a lease stays")
		}
	})
}

// While a process waits to write a file with a lease, the lease cannot become one that forbids writing. Attempts that do not wait, and waiters
// that a signal has ended, do not count.
func TestLeaseWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		tree := fs.NewTree(memfs.New(memfs.Config{}))
		node := fs.Node(tree.Root().Node)
		set := func(when string, kind int, want linux.Errno) {
			t.Helper()
			if errno := l.Set(tree, node, Lock{Owner: 1}, kind, func() {}); errno != want {
				t.Errorf("%s: lease %d: %v, want %v", when, kind, errno, want)
			}
		}
		open := func(flags fs.Flags) (*file.Interrupt, chan linux.Errno) {
			i, ends := file.NewInterrupt(), make(chan linux.Errno, 1)
			c := l.MayOpen(node, flags).(*Conflict)
			go func() { ends <- c.Wait(file.Task{Interrupt: i}, 7) }()
			synctest.Wait()
			return i, ends
		}
		interrupted := func(i *file.Interrupt, ends chan linux.Errno) {
			t.Helper()
			i.Raise()
			if errno := <-ends; errno != linux.EINTR {
				t.Errorf("the writer ends with %v", errno)
			}
		}
		set("at first", linux.F_WRLCK, 0)
		if l.MayOpen(node, fs.WriteOnly|linux.O_NONBLOCK) == nil {
			t.Error("the file may be opened")
		}
		first, ends := open(fs.WriteOnly)
		second, endsToo := open(fs.ReadWrite)
		set("two writers wait", linux.F_RDLCK, linux.EAGAIN)
		set("two writers wait", linux.F_WRLCK, linux.EAGAIN)
		interrupted(second, endsToo)
		set("one writer waits", linux.F_RDLCK, linux.EAGAIN)
		interrupted(first, ends)
		set("no writer waits", linux.F_RDLCK, 0)
		set("no writer waits", linux.F_UNLCK, 0)

		set("later", linux.F_WRLCK, 0)
		_, reader := open(fs.ReadOnly)
		set("a reader waits", linux.F_WRLCK, linux.EAGAIN)
		set("a reader waits", linux.F_RDLCK, 0)
		if errno := <-reader; errno != 0 {
			t.Errorf("the reader ends with %v", errno)
		}
		c := l.MayOpen(node, fs.WriteOnly).(*Conflict)
		set("a writer will wait", linux.F_RDLCK, linux.EAGAIN)
		l.Release(tree, node, 1)
		if errno := c.Wait(file.Task{}, 7); errno != 0 || len(l.waiting) != 0 {
			t.Errorf("the writer ends with %v; %d attempts stay", errno, len(l.waiting))
		}
	})
}
