package call

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/posix"
	"loam/posix/mqueue"
)

// POSIX message queues (posix/mq.go).

// sizeofMqAttr is the size of a struct mq_attr in bytes: eight words of 64 bits. The last four are reserved.
const sizeofMqAttr = 64

// mqAttr reads a struct mq_attr; nil for the address 0.
func (c Caller) mqAttr(addr uint64) (*posix.MqAttributes, linux.Errno) {
	if addr == 0 {
		return nil, 0
	}
	a, errno := parse(c, addr, sizeofMqAttr, func(b []byte) posix.MqAttributes {
		word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
		return posix.MqAttributes{Flags: word(0), MaxMessages: word(1), MessageSize: word(2), Messages: word(3)}
	})
	return &a, errno
}

func mqOpen(c Caller, a Args) (uint64, linux.Errno) {
	attr, errno := c.mqAttr(a.A4)
	if errno != 0 {
		return fail(errno)
	}
	name, errno := c.path(a.A1)
	if errno != 0 {
		return fail(errno)
	}
	var limits *mqueue.Attributes
	if attr != nil {
		limits = &mqueue.Attributes{Messages: attr.MaxMessages, Size: attr.MessageSize}
	}
	return result(c.Process.MqOpen(name, number(a.A2), uint32(a.A3), limits))
}

func mqUnlink(c Caller, a Args) (uint64, linux.Errno) {
	return c.withPath(a.A1, c.Process.MqUnlink)
}

// deadline reads a struct timespec with a time of CLOCK_REALTIME. An address of 0 means none.
func (c Caller) deadline(addr uint64) (at time.Time, errno linux.Errno) {
	if addr == 0 {
		return at, 0
	}
	t, errno := parse(c, addr, linux.SizeofTimespec, linux.ParseTimespec)
	switch {
	case errno != 0:
		return at, errno
	case t.Sec < 0 || t.Nsec < 0 || t.Nsec >= int64(time.Second):
		return at, linux.EINVAL
	}
	return time.Unix(min(t.Sec, mostSeconds), t.Nsec), 0
}

func mqTimedsend(c Caller, a Args) (uint64, linux.Errno) {
	until, errno := c.deadline(a.A5)
	switch {
	case errno != 0:
		return fail(errno)
	case uint32(a.A4) >= mqueue.Priorities:
		return fail(linux.EINVAL)
	}
	size, errno := c.Process.MqSize(fd(a.A1))
	switch {
	case errno != 0:
		return fail(errno)
	case a.A3 > size:
		return fail(linux.EMSGSIZE)
	}
	data := make([]byte, a.A3)
	if errno := c.Memory.Read(data, a.A2); errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.MqSend(fd(a.A1), data, uint32(a.A4), until))
}

func mqTimedreceive(c Caller, a Args) (uint64, linux.Errno) {
	until, errno := c.deadline(a.A5)
	if errno != 0 {
		return fail(errno)
	}
	m, errno := c.Process.MqReceive(fd(a.A1), a.A3, until)
	if errno != 0 {
		return fail(errno)
	}
	if errno := c.Memory.Write(a.A2, m.Data); errno != 0 {
		return fail(errno)
	}
	if a.A4 != 0 {
		if errno := c.Memory.Write(a.A4, binary.LittleEndian.AppendUint32(nil, m.Priority)); errno != 0 {
			return fail(errno)
		}
	}
	return uint64(len(m.Data)), 0
}

func mqNotify(c Caller, a Args) (uint64, linux.Errno) {
	if a.A2 == 0 {
		return fail(c.Process.MqNotify(fd(a.A1), nil))
	}
	const sizeofSigevent, cookie = 64, 32
	e, errno := parse(c, a.A2, sizeofSigevent, func(b []byte) posix.MqEvent {
		return posix.MqEvent{
			Value:  binary.LittleEndian.Uint64(b),
			Signal: int(int32(binary.LittleEndian.Uint32(b[8:]))), Notify: int(int32(binary.LittleEndian.Uint32(b[12:]))),
		}
	})
	if errno == 0 && e.Notify == linux.SIGEV_THREAD {
		e.Cookie = make([]byte, cookie)
		errno = c.Memory.Read(e.Cookie, e.Value)
	}
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.MqNotify(fd(a.A1), &e))
}

func mqGetsetattr(c Caller, a Args) (uint64, linux.Errno) {
	set, errno := c.mqAttr(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	old, errno := c.Process.MqGetSetAttr(fd(a.A1), set)
	if errno != 0 || a.A3 == 0 {
		return fail(errno)
	}
	return c.put(a.A3, sizeofMqAttr, func(b []byte) {
		for i, v := range [...]int64{old.Flags, old.MaxMessages, old.MessageSize, old.Messages} {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
		}
	})
}
