// Direct uses O_DIRECT on a disk at /data, and makes the file system as large as the disk. It prints "direct" if both work.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"syscall"
	"unsafe"
)

// Requests of ioctl(2).
const (
	getSize = 0x80081272 // BLKGETSIZE64
	resize  = 0x40086610 // EXT4_IOC_RESIZE_FS
)

// file is a name on the disk.
const file = "/data/file"

func main() {
	transfers()
	if len(os.Args) > 1 { // with the argument "memory", for a process with memory of its own
		memory()
		threads()
	}
	flags()
	grow()
	fmt.Println("direct")
}

// aligned returns n bytes of memory at a multiple of a page.
func aligned(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err)
	return b
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// want ends the program unless a call had a result.
func want(what string, n int, err error, wantN int, wantErr error) {
	if err != wantErr || err == nil && n != wantN {
		log.Fatalf("%s: %d, %v; want %d, %v", what, n, err, wantN, wantErr)
	}
}

// transfers writes and reads with memory, offsets and lengths that are aligned, or not.
func transfers() {
	fd, err := syscall.Open(file, syscall.O_RDWR|syscall.O_CREAT|syscall.O_DIRECT, 0o644)
	check(err)
	defer syscall.Close(fd)
	b := aligned(8192)
	copy(b, bytes.Repeat([]byte("direct.."), 1024))
	n, err := syscall.Pwrite(fd, b, 0)
	want("write", n, err, len(b), nil)
	n, err = syscall.Pwrite(fd, b[1:4097], 0)
	want("write of odd memory", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pwrite(fd, b[:4096], 100)
	want("write at an odd offset", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pwrite(fd, b[:100], 0)
	want("short write", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pread(fd, b[8:4104], 0)
	want("read into odd memory", n, err, 0, syscall.EINVAL)
	n, err = readv(fd, b[:512], b[1024:1536])
	want("readv", n, err, 1024, nil)
	n, err = readv(fd, b[:512], b[1025:1537])
	want("readv into odd memory", n, err, 0, syscall.EINVAL)
	text, err := os.ReadFile(file)
	check(err)
	if len(text) != 8192 || string(text[8184:]) != "direct.." {
		log.Fatalf("the file has %d bytes", len(text))
	}
}

// memory reads and writes with buffers that begin inside a page, are read-only, or show the same file.
func memory() {
	fd, err := syscall.Open(file, syscall.O_RDWR|syscall.O_DIRECT, 0)
	check(err)
	defer syscall.Close(fd)
	b := aligned(128 << 10)
	copy(b, bytes.Repeat([]byte("memory.."), len(b)/8))
	n, err := syscall.Pwrite(fd, b, 0)
	want("write of 128 KiB", n, err, len(b), nil)
	n, err = syscall.Pwrite(fd, b[512:512+64<<10], 4096)
	want("write of 64 KiB", n, err, 64<<10, nil)
	got := aligned(128 << 10)
	n, err = syscall.Pread(fd, got[1536:1536+64<<10], 1024)
	want("read of 64 KiB", n, err, 64<<10, nil)
	if !bytes.Equal(got[1536:1536+64<<10], b[:64<<10]) || got[1535] != 0 || got[1536+64<<10] != 0 {
		log.Fatal("the content differs")
	}
	n, err = syscall.Pread(fd, got, 100<<10)
	want("read up to the end", n, err, 28<<10, nil)
	check(syscall.Mprotect(got, syscall.PROT_READ))
	n, err = syscall.Pwrite(fd, got[:8192], 0)
	want("write of read-only memory", n, err, 8192, nil)
	n, err = syscall.Pread(fd, got[:8192], 0)
	want("read into read-only memory", n, err, 0, syscall.EFAULT)
	shown, err := syscall.Mmap(fd, 0, 16384, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	copy(shown[8192:], "stored..")
	n, err = syscall.Pread(fd, shown[:4096], 8192)
	want("read into a mapping of the file", n, err, 4096, nil)
	n, err = syscall.Pwrite(fd, shown[:4096], 64<<10)
	want("write of a mapping of the file", n, err, 4096, nil)
	n, err = syscall.Pread(fd, b[:4096], 64<<10)
	want("read of it", n, err, 4096, nil)
	if string(b[:8]) != "stored.." || string(shown[:8]) != "stored.." {
		log.Fatalf("read %q, the mapping shows %q", b[:8], shown[:8])
	}
	check(syscall.Munmap(shown))
	check(syscall.Truncate(file, 8192))
	n, err = syscall.Pwrite(fd, bytes.Repeat([]byte("direct.."), 1024), 0)
	if err == nil {
		want("write of a slice", n, nil, 8192, nil)
	}
}

// threads reads into memory that another thread unmaps and maps meanwhile. Each read succeeds or returns EFAULT.
func threads() {
	fd, err := syscall.Open(file, syscall.O_RDWR|syscall.O_DIRECT, 0)
	check(err)
	defer syscall.Close(fd)
	b := aligned(8192)
	at := uintptr(unsafe.Pointer(&b[0]))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			syscall.Syscall(syscall.SYS_MUNMAP, at+4096, 4096, 0)
			syscall.Syscall6(syscall.SYS_MMAP, at+4096, 4096, syscall.PROT_READ|syscall.PROT_WRITE,
				syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_FIXED, ^uintptr(0), 0)
		}
	}()
	for range 200 {
		if n, err := syscall.Pread(fd, b, 0); err != syscall.EFAULT {
			want("read beside munmap", n, err, 8192, nil)
		}
	}
	<-done
	n, err := syscall.Pread(fd, b, 0)
	want("read afterwards", n, err, 8192, nil)
}

// readv reads into two buffers.
func readv(fd int, a, b []byte) (int, error) {
	v := []syscall.Iovec{{Base: &a[0], Len: uint64(len(a))}, {Base: &b[0], Len: uint64(len(b))}}
	n, _, errno := syscall.Syscall(syscall.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// flags sets and clears the flag, and opens what has no direct I/O.
func flags() {
	fd, err := syscall.Open(file, syscall.O_RDONLY, 0)
	check(err)
	defer syscall.Close(fd)
	b := aligned(4096)
	for _, flag := range []uintptr{syscall.O_DIRECT, 0} {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFL, flag)
		want("F_SETFL", 0, error(errno), 0, error(syscall.Errno(0)))
		got, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
		want("F_GETFL", int(got&syscall.O_DIRECT), nil, int(flag), nil)
		n, err := syscall.Pread(fd, b[1:100], 0)
		if flag != 0 {
			want("read with the flag", n, err, 0, syscall.EINVAL)
		} else {
			want("read without the flag", n, err, 99, nil)
		}
	}
	for _, name := range []string{"/data", "/dev/null"} {
		_, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_DIRECT, 0)
		want(name, 0, err, 0, syscall.EINVAL)
	}
	disk, err := syscall.Open("/dev/vda", syscall.O_RDONLY|syscall.O_DIRECT, 0)
	check(err)
	defer syscall.Close(disk)
	n, err := syscall.Pread(disk, b, 0)
	want("read of the disk", n, err, len(b), nil)
	n, err = syscall.Pread(disk, b[:100], 0)
	want("short read of the disk", n, err, 0, syscall.EINVAL)
}

// grow makes the file system as large as the disk.
func grow() {
	disk, err := os.Open("/dev/vda")
	check(err)
	var size uint64
	ioctl(disk, getSize, &size)
	var before, after syscall.Statfs_t
	check(syscall.Statfs("/data", &before))
	data, err := os.Open("/data")
	check(err)
	blocks := size / uint64(before.Bsize)
	ioctl(data, resize, &blocks)
	check(syscall.Statfs("/data", &after))
	if after.Blocks < 2*before.Blocks || after.Blocks > blocks {
		log.Fatalf("%d blocks became %d on a disk of %d", before.Blocks, after.Blocks, blocks)
	}
	check(os.WriteFile("/data/large", make([]byte, before.Bfree*uint64(before.Bsize)), 0o644))
}

func ioctl(f *os.File, request uintptr, arg *uint64) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		log.Fatalf("ioctl %#x of %s: %v", request, f.Name(), errno)
	}
}
