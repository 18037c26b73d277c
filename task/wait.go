package task

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/account"
	"loam/task/family"
	"loam/task/signal"
)

// wait4 implements wait4(2).
func wait4(t *Task, a call.Args) (uint64, linux.Errno) {
	const known = linux.WNOHANG | linux.WUNTRACED | linux.WCONTINUED | 0xe0000000 // __WALL and the like
	options := number(a.A3)
	if uint32(options)&^known != 0 {
		return 0, linux.EINVAL
	}
	w := wanted{own: options&linux.WNOTHREAD != 0}
	w.Wanted = family.Wanted{Exited: true, Stopped: options&linux.WUNTRACED != 0, Continued: options&linux.WCONTINUED != 0}
	r, used, errno := t.waitFor(family.Selector(number(a.A1)), w, options&linux.WNOHANG != 0)
	if errno != 0 || r.Event == family.Nothing {
		return 0, errno
	}
	status := r.Status
	switch r.Event {
	case family.Stopped, family.Trapped:
		status = status<<8 | 0x7f
	case family.Continued:
		status = 0xffff
	}
	if a.A2 != 0 {
		if errno := (memory{t}).setWord(a.A2, uint32(status)); errno != 0 {
			return 0, errno
		}
	}
	if a.A4 != 0 {
		if errno := t.put(a.A4, account.Size, used.Put); errno != 0 {
			return 0, errno
		}
	}
	return uint64(r.PID), 0
}

// wanted are the events that a wait asks for.
type wanted struct {
	family.Wanted
	own bool // __WNOTHREAD: no threads that other threads of the process trace
}

// waitFor waits for news of a child, and returns the resources that it and its own children have used. Errors: ECHILD,
// EINTR.
func (t *Task) waitFor(of family.Selector, w wanted, poll bool) (family.Report, *account.Usage, linux.Errno) {
	p, s := t.process, t.process.system
	for {
		s.mu.Lock()
		only := t
		if !w.own {
			only = nil
		}
		r, some := p.tracedNews(only, of, w.Wanted)
		used, err := &account.Usage{}, error(nil)
		if r.Event == family.Nothing {
			if r, err = s.tree.Wait(p.node, of, w.Wanted); some {
				err = nil
			}
			used = p.reap(r, w.Keep)
		}
		news := p.news
		s.mu.Unlock()
		if err != nil || r.Event != family.Nothing || poll {
			return r, used, errnoOf(err)
		}
		if errno := t.await(news, forever); errno != 0 {
			return r, used, errno
		}
	}
}

// reap returns the resources that a reported child has used. The resources of an ended child are added to the process's own
// children. The caller holds System.mu.
func (p *Process) reap(r family.Report, keep bool) *account.Usage {
	used, s := &account.Usage{}, p.system
	child := s.zombies[r.PID]
	if child == nil {
		child = s.processes[r.PID]
	}
	if child == nil {
		return used
	}
	used.Add(child.used())
	used.Add(&child.children)
	if r.Event == family.Exited && !keep {
		p.children.Add(used)
		delete(s.zombies, r.PID)
	}
	return used
}

// forget removes the record of a process that is not waited for any more. The caller holds System.mu.
func (s *System) forget(pid family.PID) {
	if s.tree.Find(pid) == nil {
		delete(s.zombies, pid)
	}
}

// waitid implements waitid(2).
func waitid(t *Task, a call.Args) (uint64, linux.Errno) {
	const any = -1
	options := number(a.A4)
	of := family.Selector(number(a.A2))
	unready := false // a non-blocking pidfd: EAGAIN instead of a wait
	switch number(a.A1) {
	case linux.P_ALL:
		of = any
	case linux.P_PID:
		if of <= 0 {
			return 0, linux.EINVAL
		}
	case linux.P_PGID:
		if of < 0 {
			return 0, linux.EINVAL
		}
		of = -of
	case linux.P_PIDFD:
		p, nonblocking, errno := t.watched(a.A2)
		if errno != 0 {
			return 0, errno
		}
		of = family.Selector(p.node.PID)
		if unready = nonblocking && options&linux.WNOHANG == 0; unready {
			options |= linux.WNOHANG
		}
	default:
		return 0, linux.EINVAL
	}
	w := wanted{own: options&linux.WNOTHREAD != 0}
	w.Wanted = family.Wanted{
		Exited: options&linux.WEXITED != 0, Stopped: options&linux.WSTOPPED != 0,
		Continued: options&linux.WCONTINUED != 0, Keep: options&linux.WNOWAIT != 0,
	}
	if !w.Exited && !w.Stopped && !w.Continued {
		return 0, linux.EINVAL
	}
	r, used, errno := t.waitFor(of, w, options&linux.WNOHANG != 0)
	if errno == 0 && unready && r.Event == family.Nothing {
		errno = linux.EAGAIN
	}
	if errno != 0 {
		return 0, errno
	}
	if errno := t.put(a.A5, account.Size, used.Put); errno != 0 && r.Event != family.Nothing {
		return 0, errno
	}
	return 0, t.put(a.A3, signal.InfoSize, func(b []byte) {
		if r.Event == family.Nothing {
			return
		}
		i := signal.Info{Signal: signal.Child, PID: int32(r.PID), Status: r.Status}
		switch r.Event {
		case family.Stopped:
			i.Code = childStopped
		case family.Trapped:
			i.Code = childTrapped
		case family.Continued:
			i.Code, i.Status = childContinued, int32(signal.Continue)
		default:
			if i.Code = childCode(r.Status); i.Code == childExited {
				i.Status >>= 8
			} else {
				i.Status &= 0x7f
			}
		}
		i.Put(b)
	})
}
