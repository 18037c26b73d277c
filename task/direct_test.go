package task

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	device "loam/block/memory"
	"loam/fs/ext4"
	"loam/fs/ext4/format"
	"loam/mem"
)

// Direct I/O: the disk reads and writes pages of a process, which may change its memory or end meanwhile.

// slowDisk is a disk that holds the next request of a process, if it is armed.
type slowDisk struct {
	*device.Device
	armed atomic.Bool
	held  chan struct{} // closed when the disk holds the request
	begin chan struct{} // closed by the test: the disk carries the request out
}

func (d *slowDisk) arm() {
	d.held, d.begin = make(chan struct{}), make(chan struct{})
	d.armed.Store(true)
}

func (d *slowDisk) Submit(queue int, rs []*block.Request) {
	if d.armed.Swap(false) {
		close(d.held)
		<-d.begin
	}
	d.Device.Submit(queue, rs)
}

// runOnDisk runs programs with an ext4 file system on a slow disk at /disk.
func runOnDisk(t *testing.T, programs ...func(u *user, d *slowDisk)) {
	runOnDiskIn(t, func(*world) {}, programs...)
}

// runOnDiskIn is like runOnDisk, but calls prepare before the first process starts, and returns the status of that process.
func runOnDiskIn(t *testing.T, prepare func(*world), programs ...func(u *user, d *slowDisk)) (status int32) {
	d := &slowDisk{Device: device.New(8<<20, device.Config{})}
	if err := format.Write(d, format.Config{}); err != nil {
		t.Fatal(err)
	}
	var all []func(*user)
	for _, p := range programs {
		all = append(all, func(u *user) { p(u, d) })
	}
	return runIn(t, func(w *world) func() {
		prepare(w)
		s, err := ext4.Open(d, ext4.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w.root.MkdirAt(linux.AT_FDCWD, "/disk", 0o755)
		v := w.root.View()
		place, err := v.Lookup(v.Root, "/disk", true)
		if err == nil {
			err = v.Tree.Mount(s, place, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { s.Close() }
	}, all...)
}

const (
	buffer  = dataAt + 4*mem.PageSize // buffer of the request, of two pages
	bytesIn = 2 * mem.PageSize
	inFile  = 0x11111111 // first word of each page of the file
	before  = 0x22222222 // first word of each page of the buffer before the request
	later   = 0x33333333
	threads = linux.CLONE_VM | linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SIGHAND | linux.CLONE_THREAD
)

// words stores a word at the beginning of each page of the buffer.
func words(u *user, v uint32) {
	u.store32(buffer, v)
	u.store32(buffer+mem.PageSize, v)
}

func wantWords(t *testing.T, what string, u *user, v uint32) {
	t.Helper()
	for at := uint64(buffer); at < buffer+bytesIn; at += mem.PageSize {
		if got := u.load32(at); got != v {
			t.Errorf("%s: %#x, want %#x", what, got, v)
		}
	}
}

// directFile creates a file with O_DIRECT and content on the disk.
func directFile(t *testing.T, u *user) (fd uint64) {
	fd = uint64(u.call(linux.SYS_OPEN, u.text(dataAt, "/disk/f"), linux.O_CREAT|linux.O_RDWR|linux.O_DIRECT, 0o644))
	words(u, inFile)
	is(t, "write", u.call(linux.SYS_PWRITE64, fd, buffer, bytesIn, 0), bytesIn)
	words(u, before)
	return fd
}

// Another thread unmaps the buffer during a read, and uses new memory there. The disk stores to neither.
func TestUnmapDuringRead(t *testing.T) {
	runOnDisk(t, func(u *user, d *slowDisk) {
		fd := directFile(t, u)
		d.arm()
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, threads, 0, 0, 0)
		is(t, "read", u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0), bytesIn)
		wantWords(t, "new memory", u, later)
		exit(u, 0)
	}, func(u *user, d *slowDisk) {
		<-d.held
		is(t, "munmap", u.call(linux.SYS_MUNMAP, buffer, bytesIn), 0)
		is(t, "mmap", u.call(linux.SYS_MMAP, buffer, bytesIn, linux.PROT_READ|linux.PROT_WRITE,
			linux.MAP_PRIVATE|linux.MAP_ANONYMOUS|linux.MAP_FIXED, 1<<64-1, 0), buffer)
		words(u, later)
		close(d.begin)
		u.call(linux.SYS_EXIT, 0)
	})
}

// A process forks during a read. The parent gets the content of the file, also in a page that it stores to after the fork; the child
// keeps what was in the buffer.
func TestForkDuringRead(t *testing.T) {
	runOnDisk(t, func(u *user, d *slowDisk) {
		fd := directFile(t, u)
		d.arm()
		u.frame.R15 = 1
		u.call(linux.SYS_CLONE, threads, 0, 0, 0)
		is(t, "read", u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0), bytesIn)
		wantWords(t, "the parent", u, inFile)
		is(t, "wait", u.call(linux.SYS_WAIT4, 1<<64-1, dataAt, 0, 0), int64(u.load32(dataAt+8)))
		is(t, "status of the child", int64(u.load32(dataAt)), 0)
		exit(u, 0)
	}, func(u *user, d *slowDisk) {
		<-d.held
		u.store32(dataAt+8, uint32(u.fork(2)))
		u.store32(buffer, later)
		close(d.begin)
		u.call(linux.SYS_EXIT, 0)
	}, func(u *user, d *slowDisk) {
		<-d.begin
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		wantWords(t, "the child", u, before)
		exit(u, 0)
	})
}

// A process forks during a read when no page is free, but the page cache can free some. If it cannot, a process ends.
func TestForkWithoutPages(t *testing.T) {
	for _, cached := range []bool{true, false} {
		var w *world
		status := runOnDiskIn(t, func(prepared *world) { w = prepared }, func(u *user, d *slowDisk) {
			fd := directFile(t, u)
			if cached {
				const size = 64 * mem.PageSize
				g := uint64(u.call(linux.SYS_OPEN, u.text(dataAt, "/disk/g"), linux.O_CREAT|linux.O_RDWR, 0o644))
				is(t, "ftruncate", u.call(linux.SYS_FTRUNCATE, g, size), 0)
				at := uint64(u.call(linux.SYS_MMAP, 0, size, linux.PROT_READ, linux.MAP_SHARED, g, 0))
				for i := uint64(0); i < size; i += mem.PageSize {
					u.load32(at + i)
				}
				is(t, "munmap", u.call(linux.SYS_MUNMAP, at, size), 0)
			}
			d.arm()
			u.frame.R15 = 1
			u.call(linux.SYS_CLONE, threads, 0, 0, 0)
			u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0)
			wantWords(t, "the parent", u, inFile)
			is(t, "wait", u.call(linux.SYS_WAIT4, 1<<64-1, dataAt, 0, 0), int64(u.load32(dataAt+8)))
			exit(u, 0)
		}, func(u *user, d *slowDisk) {
			<-d.held
			var taken []mem.Page
			for p := w.machine.memory.Allocate(); p != 0; p = w.machine.memory.Allocate() {
				taken = append(taken, p)
			}
			release := sync.OnceFunc(func() {
				for _, p := range taken {
					mem.Release(w.machine.memory, p)
				}
				close(d.begin)
			})
			defer release()
			child := u.fork(2)
			if !cached {
				t.Errorf("fork returns %d", child)
			}
			u.store32(dataAt+8, uint32(child))
			release()
			u.call(linux.SYS_EXIT, 0)
		}, func(u *user, d *slowDisk) { exit(u, 0) })
		if want := map[bool]int32{true: 0, false: linux.SIGKILL}[cached]; status != want {
			t.Errorf("cached %v: status %#x, want %#x", cached, status, want)
		}
	}
}

// A process is killed during a read or a write. Its pages are freed after the request, which is carried out.
func TestKillDuringTransfer(t *testing.T) {
	for _, number := range []uint64{linux.SYS_PREAD64, linux.SYS_PWRITE64} {
		runOnDisk(t, func(u *user, d *slowDisk) {
			fd := directFile(t, u)
			u.store32(dataAt+16, uint32(fd))
			d.arm()
			child := u.fork(1)
			<-d.held
			is(t, "kill", u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL), 0)
			time.AfterFunc(time.Second, func() { close(d.begin) })
			is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
			is(t, "status", int64(u.load32(dataAt)), linux.SIGKILL)
			want := uint32(inFile)
			if number == linux.SYS_PWRITE64 {
				want = later
			}
			is(t, "read", u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0), bytesIn)
			wantWords(t, "the file", u, want)
			exit(u, 0)
		}, func(u *user, d *slowDisk) {
			words(u, later)
			u.call(int(number), uint64(u.load32(dataAt+16)), buffer, bytesIn, 0)
			t.Error("the process is alive")
		})
	}
}

// As on Linux, a transfer with memory that is partly inaccessible returns EFAULT, and memory that can only be copied works: pages of
// a file, also of the same file.
func TestDirectMemory(t *testing.T) {
	runOnDisk(t, func(u *user, d *slowDisk) {
		fd := directFile(t, u)
		last := uint64(buffer + mem.PageSize)
		is(t, "odd memory", u.call(linux.SYS_PREAD64, fd, buffer+1, mem.PageSize, 0), failed(linux.EINVAL))
		is(t, "odd length", u.call(linux.SYS_PREAD64, fd, buffer, 100, 0), failed(linux.EINVAL))
		is(t, "a sector", u.call(linux.SYS_PREAD64, fd, buffer+512, 512, 0), 512)
		is(t, "its first word", int64(u.load32(buffer+512)), inFile)
		is(t, "beside it", int64(u.load32(buffer)), before)
		is(t, "no memory", u.call(linux.SYS_PREAD64, fd, 0x1000, 512, 0), failed(linux.EFAULT))
		is(t, "mprotect", u.call(linux.SYS_MPROTECT, last, mem.PageSize, linux.PROT_READ), 0)
		is(t, "read into read-only memory", u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0), failed(linux.EFAULT))
		u.store32(buffer, before)
		is(t, "write of read-only memory", u.call(linux.SYS_PWRITE64, fd, buffer, bytesIn, 0), bytesIn)
		is(t, "munmap", u.call(linux.SYS_MUNMAP, last, mem.PageSize), 0)
		is(t, "read into a hole", u.call(linux.SYS_PREAD64, fd, buffer, bytesIn, 0), failed(linux.EFAULT))
		is(t, "write of a hole", u.call(linux.SYS_PWRITE64, fd, buffer, bytesIn, 0), failed(linux.EFAULT))
		vector := func(buffers ...uint64) uint64 { // buffers of 512 bytes
			for i, addr := range buffers {
				u.store(dataAt+256+uint64(i)*16, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, addr), 512))
			}
			return dataAt + 256
		}
		u.store(buffer, make([]byte, mem.PageSize))
		u.store32(buffer, before)
		is(t, "pwritev", u.call(linux.SYS_PWRITEV, fd, vector(buffer, buffer+1024), 2, 0), 1024)
		is(t, "preadv", u.call(linux.SYS_PREADV, fd, vector(buffer+512, buffer+1536, buffer), 3, 0), 1536)
		is(t, "first buffer", int64(u.load32(buffer+512)), before)
		is(t, "third buffer", int64(u.load32(buffer)), 0)
		is(t, "the same buffer twice", u.call(linux.SYS_PREADV, fd, vector(buffer, buffer), 2, 0), 1024)
		is(t, "odd buffer", u.call(linux.SYS_PREADV, fd, vector(buffer, buffer+513), 2, 0), failed(linux.EINVAL))
		is(t, "bad buffer", u.call(linux.SYS_PREADV, fd, vector(buffer, 0x1000), 2, 0), failed(linux.EFAULT))
		is(t, "bad vector", u.call(linux.SYS_PREADV, fd, 0x1000, 2, 0), failed(linux.EFAULT))
		u.store32(buffer, before)
		is(t, "write", u.call(linux.SYS_PWRITE64, fd, buffer, mem.PageSize, 0), mem.PageSize)
		at := u.call(linux.SYS_MMAP, last, mem.PageSize, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_SHARED|linux.MAP_FIXED, fd, mem.PageSize)
		is(t, "mmap of the file", at, int64(last))
		u.store32(last, later)
		is(t, "read into a mapping of the file", u.call(linux.SYS_READ, fd, last, mem.PageSize), mem.PageSize)
		is(t, "first page, in the second", int64(u.load32(last)), before)
		u.store32(last, later)
		is(t, "write of a mapping of the file", u.call(linux.SYS_PWRITE64, fd, buffer, bytesIn, 0), bytesIn)
		is(t, "the rest", u.call(linux.SYS_READ, fd, buffer, mem.PageSize), mem.PageSize)
		is(t, "second page", int64(u.load32(buffer)), later)
		exit(u, 0)
	})
}

// As on Linux, a direct read at the end of the file needs no alignment: neither its memory, its offset nor its length. After a
// read of the last part of a sector, `dd iflag=direct,fullblock` makes such a read.
func TestDirectEnd(t *testing.T) {
	runOnDisk(t, func(u *user, d *slowDisk) {
		fd := directFile(t, u)
		const size, rest = mem.PageSize + 700, mem.PageSize - 700
		is(t, "ftruncate", u.call(linux.SYS_FTRUNCATE, fd, size), 0)
		is(t, "first page", u.call(linux.SYS_READ, fd, buffer, mem.PageSize), mem.PageSize)
		is(t, "last bytes", u.call(linux.SYS_READ, fd, buffer, mem.PageSize), 700)
		is(t, "read", u.call(linux.SYS_READ, fd, buffer+700, rest), 0)
		is(t, "read of one byte", u.call(linux.SYS_READ, fd, buffer+1, 1), 0)
		is(t, "pread64", u.call(linux.SYS_PREAD64, fd, buffer+1, rest, size), 0)
		is(t, "pread64 far behind the end", u.call(linux.SYS_PREAD64, fd, buffer+1, rest, 1<<40), 0)
		u.store(dataAt+256, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, buffer+1), rest))
		is(t, "readv", u.call(linux.SYS_READV, fd, dataAt+256, 1), 0)
		is(t, "preadv", u.call(linux.SYS_PREADV, fd, dataAt+256, 1, size), 0)
		is(t, "pread64 before the end", u.call(linux.SYS_PREAD64, fd, buffer+1, rest, mem.PageSize), failed(linux.EINVAL))
		is(t, "preadv before the end", u.call(linux.SYS_PREADV, fd, dataAt+256, 1, mem.PageSize), failed(linux.EINVAL))
		is(t, "write at the end", u.call(linux.SYS_PWRITE64, fd, buffer+1, 512, 2*mem.PageSize), failed(linux.EINVAL))
		exit(u, 0)
	})
}

// With RWF_DSYNC or RWF_SYNC, pwritev2 returns after the content is on the disk, and the disk was flushed. For a pipe, the flags have
// no effect.
func TestWriteWithSync(t *testing.T) {
	runOnDisk(t, func(u *user, d *slowDisk) {
		fd := uint64(u.call(linux.SYS_OPEN, u.text(dataAt, "/disk/f"), linux.O_CREAT|linux.O_RDWR, 0o644))
		is(t, "fsync", u.call(linux.SYS_FSYNC, fd), 0)
		u.store(dataAt+256, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, buffer), 100))
		for flag, synced := range map[uint64]bool{0: false, 1: false, 2: true, 4: true, 8: false} {
			for _, offset := range []uint64{1<<64 - 1, 5000} {
				is(t, "fsync", u.call(linux.SYS_FSYNC, fd), 0)
				before := d.Stats()
				is(t, "pwritev2", u.call(linux.SYS_PWRITEV2, fd, dataAt+256, 1, offset, 0, flag), 100)
				after := d.Stats()
				written, flushed := after.Done[block.Write] > before.Done[block.Write], after.Done[block.Flush] > before.Done[block.Flush]
				if written != synced || flushed != synced {
					t.Errorf("flag %d, offset %d: written %v, flushed %v", flag, int64(offset), written, flushed)
				}
			}
		}
		is(t, "pipe", u.call(linux.SYS_PIPE, dataAt+512), 0)
		is(t, "write to a pipe", u.call(linux.SYS_PWRITEV2, uint64(u.load32(dataAt+516)), dataAt+256, 1, 1<<64-1, 0, 4), 100)
		exit(u, 0)
	})
}
