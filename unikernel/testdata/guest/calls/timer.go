package main

import (
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

// timerSetting is struct itimerspec.
type timerSetting struct{ interval, value syscall.Timespec }

const (
	realtime  = 0
	monotonic = 1
	boottime  = 7
	absolute  = 1
)

// setTimer sets a timer and returns the previous setting.
func setTimer(fd uintptr, flags uintptr, value, interval time.Duration) (old timerSetting, err error) {
	s := timerSetting{syscall.NsecToTimespec(int64(interval)), syscall.NsecToTimespec(int64(value))}
	_, err = call(syscall.SYS_TIMERFD_SETTIME, fd, flags, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&old)))
	return old, err
}

// now returns the time of a clock.
func now(clock uintptr) time.Duration {
	var t syscall.Timespec
	_, err := call(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)))
	check.Nil(err, "clock_gettime")
	return time.Duration(t.Nano())
}

// timers uses descriptors of timerfd_create(2), by the poller of the runtime and by epoll.
func timers() {
	for _, clock := range []uintptr{realtime, monotonic, boottime} {
		fd, err := call(syscall.SYS_TIMERFD_CREATE, clock, syscall.O_NONBLOCK|syscall.O_CLOEXEC)
		check.Nil(err, "timerfd_create")
		timer := os.NewFile(fd, "timer")
		name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
		check.That(name == "anon_inode:[timerfd]" && err == nil, "its name: %s, %v", name, err)
		b := make([]byte, 8)
		_, err = syscall.Read(int(fd), b)
		check.Equal(err, error(syscall.EAGAIN), "a timer that is off")

		start := time.Now()
		_, err = setTimer(fd, 0, 30*time.Millisecond, 20*time.Millisecond)
		check.Nil(err, "timerfd_settime")
		var left timerSetting
		_, err = call(syscall.SYS_TIMERFD_GETTIME, fd, uintptr(unsafe.Pointer(&left)))
		check.That(err == nil && left.interval.Nano() == 20e6 && left.value.Nano() > 0 && left.value.Nano() <= 30e6, "left: %v, %v", left, err)
		n, err := timer.Read(b)
		times := binary.NativeEndian.Uint64(b)
		check.That(n == 8 && err == nil && times >= 1, "%d bytes, %d times, %v", n, times, err)
		check.That(time.Since(start) >= 30*time.Millisecond, "after %v", time.Since(start))

		old, err := setTimer(fd, absolute, now(clock)+40*time.Millisecond, 0)
		check.That(err == nil && old.interval.Nano() == 20e6, "before: %v, %v", old, err)
		start = time.Now()
		_, err = timer.Read(b)
		check.That(err == nil && binary.NativeEndian.Uint64(b) == 1 && time.Since(start) >= 35*time.Millisecond, "a time: %v after %v, %v", b, time.Since(start), err)
		_, err = setTimer(fd, absolute, time.Nanosecond, 0)
		check.Nil(err, "a time that has passed")
		_, err = syscall.Read(int(fd), b)
		check.Nil(err, "a time that has passed")
		check.Nil(timer.Close(), "close")
	}
	fd, err := call(syscall.SYS_TIMERFD_CREATE, monotonic, 0)
	check.Nil(err, "timerfd_create")
	_, err = setTimer(fd, 4, 0, 0)
	check.Equal(err, error(syscall.EINVAL), "unknown flags")
	_, err = setTimer(fd, 0, -time.Second, 0)
	check.Equal(err, error(syscall.EINVAL), "a time before all times")
	_, err = setTimer(0, 0, 0, 0)
	check.Equal(err, error(syscall.EINVAL), "no timer")
	_, err = syscall.Write(int(fd), make([]byte, 8))
	check.Equal(err, error(syscall.EINVAL), "write")
	_, err = setTimer(fd, 0, 20*time.Millisecond, 0)
	check.Nil(err, "timerfd_settime")
	_, err = syscall.Read(int(fd), make([]byte, 8)) // blocks until the timer expires
	check.Nil(err, "a read that waits")
	_, err = call(syscall.SYS_TIMERFD_CREATE, 2, 0)
	check.Equal(err, error(syscall.EINVAL), "a clock of the processor")
	syscall.Close(int(fd))
}
