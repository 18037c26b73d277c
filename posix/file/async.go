package file

import "loam/abi/linux"

// Signals about files (fcntl(2), F_SETOWN; signal(7), SIGIO). A description has an owner, which is a thread, a process or a process
// group. With O_ASYNC, a watch in the queue of the file reports events to the owner.

// Owner is the receiver of the signals about a file (F_SETOWN).
type Owner struct {
	Kind      int32  // type of ID: F_OWNER_TID, F_OWNER_PID or F_OWNER_PGRP
	ID        int32  // thread, process or process group; 0: no owner
	UID, EUID uint32 // user IDs of the process that has set the owner, which decide whether it may send the signal
	Signal    int32  // signal set by F_SETSIG; 0: SIGIO
}

// Asynchronous is implemented by files that can send SIGIO (FIOASYNC).
type Asynchronous interface{ Asynchronous() }

// asking is the watch by which a file reports events to its owner. A description has one if O_ASYNC is set, or if it is a
// socket with an owner.
type asking struct {
	watch Watch
	fd    int // the descriptor for which O_ASYNC was set; reported in si_fd of a siginfo
}

// GetOwner returns the owner of a description.
func (o *Description) GetOwner() Owner {
	if w := o.owner.Load(); w != nil {
		return *w
	}
	return Owner{}
}

// SetOwner sets the owner. For a socket, it also registers the function report to be
// called when urgent data arrives.
func (o *Description) SetOwner(w Owner, report func(Owner, int, Events)) {
	o.owner.Store(&w)
	if _, ok := o.File.(interface{ Urgent() }); ok {
		o.ask(-1, report)
	}
}

// SetAsync implements FIOASYNC and O_ASYNC: from now on, the function report is called
// with the owner, the descriptor and the events of the file. It must not block. Errors:
// ENOTTY for files that have no such events.
func (o *Description) SetAsync(on bool, fd int, report func(Owner, int, Events)) linux.Errno {
	if _, ok := o.File.(Asynchronous); !ok {
		return linux.ENOTTY
	}
	if !on {
		o.Flags.And(^linux.O_ASYNC)
		return 0
	}
	o.Flags.Or(linux.O_ASYNC)
	o.ask(fd, report)
	return 0
}

// ask makes the file report its events to the description, which raises SIGIO (O_ASYNC). It does nothing if this was done
// before for the same descriptor fd.
func (o *Description) ask(fd int, report func(Owner, int, Events)) {
	old := o.asking.Load()
	if old != nil && (fd < 0 || old.fd == fd) {
		return
	}
	a := &asking{fd: fd}
	a.watch.Notify = func(e Events) {
		w := o.owner.Load()
		if w == nil || w.ID == 0 {
			return
		}
		if o.Flags.Load()&linux.O_ASYNC == 0 {
			e &= PollPri
		}
		if e &^= PollGone; e != 0 {
			report(*w, a.fd, e)
		}
	}
	if !o.asking.CompareAndSwap(old, a) {
		return
	}
	if old != nil {
		o.Queue().Remove(&old.watch)
	}
	o.Queue().WantEvery()
	o.Queue().owned.Store(true)
	o.Queue().Add(&a.watch)
	o.File.Events() // a call of Events makes the file report its next event
}

// endAsync removes the watch of a description that is being closed.
func (o *Description) endAsync() {
	if a := o.asking.Swap(nil); a != nil {
		o.Queue().Remove(&a.watch)
	}
}
