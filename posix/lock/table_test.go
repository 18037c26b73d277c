package lock

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Processes that would wait for each other in a circle get EDEADLK (fcntl(2)). An owner that stops waiting is no
// longer part of the circle.
func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := fs.NewTree(memfs.New(memfs.Config{})).Root().Node
		var locks Table
		lock := func(owner string, at int64) Lock { return Lock{Owner: owner, First: at, Last: at, Write: true} }
		for i, owner := range []string{"a", "b", "c"} {
			if errno := locks.Take(node, lock(owner, int64(i)), false, true, file.Task{}); errno != 0 {
				t.Fatal(errno)
			}
		}
		stop := file.NewInterrupt()
		results := make(chan linux.Errno, 2)
		go func() { results <- locks.Take(node, lock("a", 1), true, true, file.Task{Interrupt: stop}) }()
		go func() { results <- locks.Take(node, lock("b", 2), true, true, file.Task{}) }()
		synctest.Wait()
		if errno := locks.Take(node, lock("c", 0), false, true, file.Task{}); errno != linux.EAGAIN {
			t.Errorf("without waiting: %v", errno)
		}
		if errno := locks.Take(node, lock("c", 0), true, true, file.Task{}); errno != linux.EDEADLK {
			t.Errorf("a circle of three: %v", errno)
		}
		stop.Raise()
		if errno := <-results; errno != linux.EINTR {
			t.Errorf("interrupted: %v", errno)
		}
		go func() { results <- locks.Take(node, lock("c", 0), true, true, file.Task{}) }()
		synctest.Wait()
		locks.Release(node, Whole("a", true))
		if errno := <-results; errno != 0 {
			t.Errorf("after the release: %v", errno)
		}
		locks.Release(node, Whole("c", true))
		if errno := <-results; errno != 0 {
			t.Errorf("after the release: %v", errno)
		}
	})
}

// Locks of one owner that touch and have the same type are one lock. F_GETLK reports the lowest lock of an owner first (LTP's
// fcntl11 and fcntl21).
func TestMerge(t *testing.T) {
	var table Table
	node := fs.NewTree(memfs.New(memfs.Config{})).Root().Node
	take := func(first, last int64, write bool) {
		t.Helper()
		if errno := table.Take(node, Lock{Owner: 1, First: first, Last: last, Write: write}, false, false, file.Task{}); errno != 0 {
			t.Fatal(errno)
		}
	}
	want := func(what string, first, last int64, write bool, locks int) {
		t.Helper()
		l, ok := table.Blocker(node, Whole(2, true))
		if !ok || l.First != first || l.Last != last || l.Write != write || table.Len() != locks {
			t.Errorf("%s: the first of %d locks is %+v, want %d to %d of %d", what, table.Len(), l, first, last, locks)
		}
	}
	take(10, 14, true)
	take(1, 5, false)
	want("another lock below", 1, 5, false, 2)
	take(6, 9, true)
	want("a lock between two", 1, 5, false, 2)
	take(3, 5, true)
	want("a part becomes a write lock", 1, 2, false, 2)
	take(0, 2, true)
	want("all is one lock", 0, 14, true, 1)
	take(20, math.MaxInt64, true)
	take(15, 18, true)
	want("a hole of one byte", 0, 18, true, 2)
	take(19, 19, true)
	want("the hole is filled", 0, math.MaxInt64, true, 1)
	table.Release(node, Lock{Owner: 1, First: 4, Last: 5})
	want("a part is unlocked", 0, 3, true, 2)
	take(4, 5, false)
	want("a read lock between write locks", 0, 3, true, 3)
}

// An owner that converts its only lock always gets the new lock, although another owner waits for the lock and a third one tries to get
// it again and again (flock(2)).
func TestConvert(t *testing.T) {
	var table Table
	node := fs.NewTree(memfs.New(memfs.Config{})).Root().Node
	convert := func(write bool) {
		t.Helper()
		if errno := table.Convert(node, Whole("converts", write), false, file.Task{}); errno != 0 {
			t.Fatalf("write %t: %v", write, errno)
		}
	}
	convert(true)
	var stop atomic.Bool
	waited, tried := make(chan linux.Errno, 1), make(chan bool, 1)
	go func() { waited <- table.Take(node, Whole("waits", true), true, false, file.Task{}) }()
	go func() {
		got := false
		for !got && !stop.Load() {
			got = table.Take(node, Whole("tries", true), false, false, file.Task{}) == 0
		}
		tried <- got
	}()
	for range 50000 {
		convert(false)
		convert(true)
	}
	stop.Store(true)
	if <-tried {
		t.Error("another owner got the lock")
	}
	table.Release(node, Whole("converts", false))
	if errno := <-waited; errno != 0 {
		t.Errorf("the owner that waited: %v", errno)
	}
}
