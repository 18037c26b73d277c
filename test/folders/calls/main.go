// Command calls makes the system calls that the server of a `:rw` folder makes while program tree runs on Loam: the same calls
// on the same files, in one process, without messages and without copies for a client. The time that they take is a lower bound
// for a server that opens one name at a time below its folder.
//
//	calls create|stat|walk|read|remove|round FOLDER FILES BYTES
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// perFolder is the number of files in a folder, as in program tree.
const perFolder = 100

func main() {
	files, err := strconv.Atoi(os.Args[3])
	check(err)
	size, err := strconv.Atoi(os.Args[4])
	check(err)
	root, err := unix.Open(os.Args[2], unix.O_PATH|unix.O_DIRECTORY, 0)
	check(err)
	c := &calls{root: root, files: files, content: make([]byte, size), entries: make([]byte, 32<<10)}
	work := map[string]func(){
		"create": c.create, "stat": c.list, "walk": c.list, "read": c.read, "remove": c.remove, "round": c.round,
	}[os.Args[1]]
	start, before := time.Now(), cpu()
	work()
	took, used := time.Since(start), cpu()-before
	if c.done != files {
		check(fmt.Errorf("%s: %d files, want %d", os.Args[1], c.done, files))
	}
	fmt.Println(took.Nanoseconds(), used)
}

// cpu returns the CPU time of this process in nanoseconds.
func cpu() int64 {
	var r unix.Rusage
	check(unix.Getrusage(unix.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type calls struct {
	root    int
	files   int
	content []byte
	entries []byte // of getdents64(2)
	done    int    // number of files
}

// open opens a name in a folder, as the server does.
func open(dir int, name string, flags int) int {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS,
	}
	if flags&unix.O_PATH == 0 {
		how.Flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o644
	}
	fd, err := unix.Openat2(dir, name, &how)
	check(err)
	return fd
}

// stat reads the attributes of a name in a folder, or of the folder itself.
func stat(dir int, name string) (st unix.Statx_t) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	check(unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st))
	return st
}

// create creates the tree.
func (c *calls) create() {
	top, dir := -1, -1
	for i := range c.files {
		if i%(20*perFolder) == 0 {
			top = c.makeFolder(c.root, fmt.Sprintf("f%d", i/perFolder/20))
		}
		if i%perFolder == 0 {
			if dir >= 0 {
				unix.Close(dir)
			}
			dir = c.makeFolder(top, fmt.Sprintf("f%03d", i/perFolder))
		}
		fd := open(dir, fmt.Sprintf("file%05d.txt", i), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
		stat(fd, "")
		_, err := unix.Pwrite(fd, c.content, 0)
		check(err)
		unix.Close(fd)
		c.done++
	}
}

func (c *calls) makeFolder(parent int, name string) int {
	check(unix.Mkdirat(parent, name, 0o755))
	return open(parent, name, unix.O_PATH)
}

// list lists the tree with the attributes of all files.
func (c *calls) list() { c.walk(c.root, nil, nil) }

// read lists the tree and reads all files.
func (c *calls) read() {
	c.walk(c.root, func(dir int, names []string) {
		for _, name := range names {
			stat(dir, name)
			fd := open(dir, name, unix.O_RDONLY)
			_, err := unix.Pread(fd, c.content, 0)
			check(err)
			unix.Close(fd)
		}
	}, nil)
}

// remove lists the tree and removes it.
func (c *calls) remove() {
	c.walk(c.root, func(dir int, names []string) {
		for _, name := range names {
			check(unix.Unlinkat(dir, name, 0))
		}
	}, func(dir int, name string) { check(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)) })
}

// round reads the state of the file system once for each file.
func (c *calls) round() {
	var st unix.Statfs_t
	for range c.files {
		check(unix.Fstatfs(c.root, &st))
		c.done++
	}
}

// walk lists the folder dir and all folders below it. It calls files with the files of each folder, and after with each
// subfolder that was listed. Both may be nil.
func (c *calls) walk(dir int, files func(dir int, names []string), after func(parent int, name string)) {
	stat(dir, "")
	listed, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(err)
	var names, folders []string
	for {
		n, err := unix.Getdents(listed, c.entries)
		check(err)
		if n == 0 {
			break
		}
		for rest := c.entries[:n]; len(rest) > 0; rest = rest[binary.NativeEndian.Uint16(rest[16:]):] {
			name := unix.ByteSliceToString(rest[19:])
			if name == "." || name == ".." {
				continue
			}
			if st := stat(listed, name); st.Mode&unix.S_IFMT == unix.S_IFDIR {
				folders = append(folders, name)
			} else {
				names = append(names, name)
			}
		}
	}
	unix.Close(listed)
	if files != nil {
		files(dir, names)
	}
	c.done += len(names)
	for _, name := range folders {
		fd := open(dir, name, unix.O_PATH|unix.O_DIRECTORY)
		c.walk(fd, files, after)
		unix.Close(fd)
		if after != nil {
			after(dir, name)
		}
	}
}
