package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

// events are the events of inotify(7) that the test requests.
var events = []struct {
	mask uint32
	name string
}{
	{syscall.IN_CREATE, "create"}, {syscall.IN_MODIFY, "modify"}, {syscall.IN_ATTRIB, "attrib"},
	{syscall.IN_CLOSE_WRITE, "close-write"}, {syscall.IN_DELETE, "delete"}, {syscall.IN_MOVED_FROM, "from"},
	{syscall.IN_MOVED_TO, "to"}, {syscall.IN_DELETE_SELF, "delete-self"}, {syscall.IN_MOVE_SELF, "move-self"},
	{syscall.IN_IGNORED, "ignored"}, {syscall.IN_ISDIR, "dir"},
}

// watcher reads the events of a folder "w" and of a file "f" in it.
type watcher struct {
	file *os.File
	buf  []byte
}

// want checks the events since the last call. Each event is written as its watch, its events and its name.
func (w *watcher) want(want string) {
	check.Nil(w.file.SetReadDeadline(time.Now().Add(10*time.Second)), "deadline")
	var got []string
	for len(got) < strings.Count(want, ",")+1 {
		n, err := w.file.Read(w.buf)
		check.Nil(err, "read after "+strings.Join(got, ", "))
		for b := w.buf[:n]; len(b) > 0; {
			size := 16 + binary.NativeEndian.Uint32(b[12:])
			text := fmt.Sprint(int32(binary.NativeEndian.Uint32(b)))
			for _, e := range events {
				if binary.NativeEndian.Uint32(b[4:])&e.mask != 0 {
					text += " " + e.name
				}
			}
			got = append(got, strings.TrimSpace(text+" "+strings.TrimRight(string(b[16:size]), "\x00")))
			b = b[size:]
		}
	}
	check.Equal(strings.Join(got, ", "), want, "what inotify tells")
}

// watch: inotify, by the poller of the runtime.
func watch() {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	check.Nil(err, "inotify")
	w := &watcher{os.NewFile(uintptr(fd), "inotify"), make([]byte, 4096)}
	defer w.file.Close()
	check.Nil(os.Mkdir("w", 0o755), "mkdir")
	mask := uint32(0)
	for _, e := range events[:9] {
		mask |= e.mask
	}
	n, err := syscall.InotifyAddWatch(fd, "w", mask)
	check.That(n == 1 && err == nil, "the first watch: %d, %v", n, err)
	_, err = syscall.InotifyAddWatch(fd, "missing", mask)
	check.Equal(err, error(syscall.ENOENT), "what is not there")
	_, err = syscall.InotifyAddWatch(fd, "w", 0)
	check.Equal(err, error(syscall.EINVAL), "no events")

	check.Nil(os.WriteFile("w/f", []byte("text"), 0o600), "write")
	w.want("1 create f, 1 modify f, 1 close-write f")
	n, err = syscall.InotifyAddWatch(fd, "w/f", mask)
	check.That(n == 2 && err == nil, "the second watch: %d, %v", n, err)
	check.Nil(os.Chmod("w/f", 0o640), "chmod")
	w.want("1 attrib f, 2 attrib")
	check.Nil(os.Truncate("w/f", 1), "truncate")
	w.want("1 modify f, 2 modify")
	check.Nil(os.Rename("w/f", "w/g"), "rename")
	w.want("1 from f, 1 to g, 2 move-self")
	check.Nil(os.Mkdir("w/d", 0o755), "mkdir")
	check.Nil(os.Symlink("g", "w/l"), "symlink")
	check.Nil(os.Link("w/g", "w/h"), "link")
	w.want("1 create dir d, 1 create l, 2 attrib, 1 create h")
	check.Nil(os.Remove("w/d"), "remove")
	check.Nil(os.Remove("w/h"), "remove")
	w.want("1 delete dir d, 2 attrib, 1 delete h")
	check.Nil(os.WriteFile("new", nil, 0o600), "write")
	check.Nil(os.Rename("new", "w/g"), "rename over")
	w.want("1 to g, 2 attrib, 2 delete-self, 2 ignored")
	_, err = syscall.InotifyRmWatch(fd, 2)
	check.Equal(err, error(syscall.EINVAL), "a watch that has gone")
	_, err = syscall.InotifyRmWatch(fd, 1)
	check.Nil(err, "remove the watch")
	w.want("1 ignored")
	check.Nil(os.RemoveAll("w"), "remove")
}

// counters: eventfd.
func counters() {
	const nonblock, semaphore = syscall.O_NONBLOCK, 1
	fd := eventFD(0, nonblock|syscall.O_CLOEXEC)
	b := make([]byte, 8)
	_, err := syscall.Read(fd, b)
	check.Equal(err, error(syscall.EAGAIN), "an eventfd of 0")
	f := os.NewFile(uintptr(fd), "eventfd")
	go func() {
		time.Sleep(time.Millisecond)
		one := binary.NativeEndian.AppendUint64(nil, 7)
		f.Write(one)
	}()
	n, err := f.Read(b)
	check.That(n == 8 && err == nil && binary.NativeEndian.Uint64(b) == 7, "an eventfd that was waited for: %v, %v", b, err)
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, ^uint64(0)))
	check.That(err != nil, "the largest number was taken")
	check.Nil(f.Close(), "close")
	fd = eventFD(2, nonblock|semaphore)
	for range 2 {
		_, err = syscall.Read(fd, b)
		check.That(err == nil && binary.NativeEndian.Uint64(b) == 1, "a semaphore: %v, %v", b, err)
	}
	_, err = syscall.Read(fd, b)
	check.Equal(err, error(syscall.EAGAIN), "a semaphore of 0")
	_, err = syscall.Read(fd, b[:4])
	check.Equal(err, error(syscall.EINVAL), "a short read")
	check.Nil(syscall.Close(fd), "close")
}

func eventFD(count, flags uintptr) int {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, count, flags, 0)
	check.That(errno == 0, "eventfd: %v", errno)
	return int(fd)
}
